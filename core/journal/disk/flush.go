package disk

import (
	"context"
	"errors"
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
			f.armed.Store(false)
			if err := j.flush(); err != nil {
				j.opt.Log.Error("sync failed", "journal", j.name, "err", err)
			}
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

// Deferred implements journal.Syncer.
func (j *Journal) Deferred() bool { return j.opt.Sync == Interval }

// Sync implements journal.Syncer.
func (j *Journal) Sync(ctx context.Context) error {
	if err := errors.Join(j.stopped(), ctx.Err()); err != nil || j.opt.Sync == Fsync {
		return err
	}
	return j.flush()
}

// flush syncs the segment being written; the ones before it were synced when they were sealed.
func (j *Journal) flush() error {
	file := <-j.flusher.file
	defer func() { j.flusher.file <- file }()
	if file == nil { // none yet, closed, or a roll failed
		return j.stopped()
	}
	if err := file.Sync(); err != nil {
		return j.fail(err)
	}
	return nil
}
