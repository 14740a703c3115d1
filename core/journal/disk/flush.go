package disk

import (
	"sync"
	"sync/atomic"
	"time"
)

// flusher syncs in mode Interval, once per interval in which something was written.
type flusher struct {
	file  chan File // one place: the file being written, when nobody syncs, seals or closes it
	armed atomic.Bool
	timer *time.Timer // owned by whoever has the writer
	busy  sync.WaitGroup
}

func (j *Journal) arm() {
	f := &j.flusher
	if f.armed.CompareAndSwap(false, true) {
		f.busy.Add(1)
		f.timer = time.AfterFunc(j.opt.Interval, func() {
			defer f.busy.Done()
			j.flush()
		})
	}
}

func (j *Journal) disarm() {
	if f := &j.flusher; f.timer != nil {
		if f.timer.Stop() {
			f.busy.Done()
		}
		f.busy.Wait()
		f.timer = nil
	}
}

func (j *Journal) flush() {
	j.flusher.armed.Store(false)
	file := <-j.flusher.file
	defer func() { j.flusher.file <- file }()
	if file == nil {
		return
	}
	j.mu.Lock()
	upTo := j.mu.next - 1
	j.mu.Unlock()
	if err := file.Sync(); err != nil {
		j.opt.Log.Error("sync failed", "journal", j.name, "err", j.fail(err))
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.synced = max(j.mu.synced, upTo)
}
