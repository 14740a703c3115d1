package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
)

// commit is the committer goroutine of a log: the only one that appends to its journal. It ends when ctx has ended and
// nothing is pending, or when the journal failed.
func (l *log) commit(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		if ctx.Err() != nil {
			l.refuse(core.ErrClosed)
		}
		if l.views.due.Load() && l.capture() {
			l.eng.kickCheckpointer()
		}
		wait, ok := l.due(ctx.Err() != nil)
		switch {
		case ok:
			if b := l.take(); !l.write(b) {
				return
			}
		case ctx.Err() != nil:
			return
		case wait > 0:
			timer.Reset(wait)
			select {
			case <-l.kick:
			case <-timer.C:
			case <-ctx.Done():
			}
		default:
			select {
			case <-l.kick:
			case <-ctx.Done():
			}
		}
	}
}

// due tells whether the active buffer is to be committed now, or after what time to look again (0: when kicked).
func (l *log) due(ending bool) (wait time.Duration, now bool) {
	l.buf.Lock()
	defer l.buf.Unlock()
	b := l.buf.active
	if b.n == 0 {
		return 0, len(b.touched) > 0 // duplicates, of what is durable by now
	}
	if ending {
		return 0, true
	}
	wait, trial := l.buf.pace.wait(&b.pending, b.first, time.Now())
	if wait > 0 {
		b.held, b.trial = true, b.trial || trial
	}
	return wait, wait == 0
}

// take swaps the buffers.
func (l *log) take() *buffer {
	l.buf.Lock()
	b := l.buf.active
	for i := range b.extents[:b.n] {
		b.extents[i].p.extent = -1
	}
	l.buf.active, l.buf.spare = l.buf.spare, nil
	l.buf.active.number = b.number + 1
	l.buf.flying = b.number
	l.buf.pace.took(time.Now(), len(b.touched), b.again, b.held, b.trial, b.found)
	l.buf.space.Broadcast()
	l.buf.Unlock()
	return b
}

// write makes a block durable, shows it, and tells everybody; false when the journal failed.
func (l *log) write(b *buffer) bool {
	start := time.Now()
	if b.n == 0 {
		l.landed(b, 0, start)
		l.complete(b, nil)
		l.recycle(b)
		return true
	}
	l.last = max(l.last, start.UnixMilli(), b.notBefore)
	l.extents = l.extents[:0]
	for i := range b.extents[:b.n] {
		x := &b.extents[i]
		l.extents = append(l.extents, journal.Extent{Partition: x.p.number, First: x.first, Count: uint32(x.count), Data: x.data})
	}
	block := journal.AppendBlock(make([]byte, 0, journal.BlockSize(l.extents...)), l.epoch, l.last, l.extents...)
	if err := l.covers(l.extents); err != nil {
		return l.stop(b, fmt.Errorf("reserve offsets: %w", err))
	}
	// An accepted entry is written whatever happens to the engine's context.
	l.scanner.fly()
	seq, err := l.journal.Append(context.Background(), block)
	l.scanner.land()
	if err != nil {
		return l.stop(b, err)
	}
	l.show(seq, block)
	if err := l.look(seq, block); err != nil {
		return l.stop(b, err)
	}
	now := time.Now()
	l.landed(b, seq, now)
	l.eng.metrics.committed(now.Sub(start), b.count, len(block))
	if l.volatile {
		l.sifted(b) // before a producer is told, who may begin a group then
	}
	l.complete(b, nil)
	for i := range b.extents[:b.n] {
		b.extents[i].p.watch.notify(b.extents[i].p.committed.Load())
	}
	l.eng.notifyFollowers()
	l.recycle(b)
	l.eng.evict()
	return true
}

// stop ends the log for good: neither b nor anything after it is acknowledged.
func (l *log) stop(b *buffer, err error) bool {
	l.eng.cfg.Log.Error("journal failed", "journal", l.name, "err", err)
	err = fmt.Errorf("journal %s: %w", l.name, errors.Join(core.ErrUnavailable, err))
	l.refuse(err)
	l.complete(b, err)
	l.fail(err)
	return false
}

// complete hands each producer its receipts of the block: one call each.
func (l *log) complete(b *buffer, err error) {
	for _, a := range b.touched {
		rs := a.receipts[b.number&1]
		if err != nil {
			for i := range rs {
				rs[i].Err = err
			}
		}
		if n := a.accepted[b.number&1]; n > 0 {
			a.producer.published.Add(float64(n))
		}
		a.producer.done(rs)
	}
}

// landed notes that nothing is on its way to the disk, before anybody is acknowledged: who writes after its
// acknowledgement has waited for it.
func (l *log) landed(b *buffer, seq journal.Seq, now time.Time) {
	l.buf.Lock()
	defer l.buf.Unlock()
	l.buf.flying, l.buf.landed = 0, b.number
	l.buf.pace.land(now, b.entries, l.buf.active.entries)
	b.landed(seq, l.last)
	if l.buf.settling > 0 {
		l.buf.space.Broadcast()
	}
}

// maxReceipts bounds the memory that a producer keeps for its next block.
const maxReceipts = 4096

// recycle makes the buffer the spare one.
func (l *log) recycle(b *buffer) {
	l.buf.Lock()
	defer l.buf.Unlock()
	for _, a := range b.touched {
		p := b.number & 1
		clear(a.receipts[p])
		a.receipts[p], a.accepted[p] = a.receipts[p][:0], 0
		if cap(a.receipts[p]) > maxReceipts {
			a.receipts[p] = nil
		}
	}
	b.reset()
	l.buf.spare = b
}

// refuse refuses all later publishes and wakes those that wait for room; what was accepted is still committed.
func (l *log) refuse(err error) {
	l.buf.Lock()
	defer l.buf.Unlock()
	if l.buf.failed == nil {
		l.buf.failed = err
	}
	l.buf.space.Broadcast()
}

// fail refuses all later publishes, wakes those that wait for room, and answers what was accepted but not committed.
// The committer ends with it.
func (l *log) fail(err error) {
	l.buf.Lock()
	l.buf.failed = err
	rest := l.buf.active
	l.buf.active = &buffer{number: rest.number + 1}
	l.buf.space.Broadcast()
	l.buf.Unlock()
	l.complete(rest, err)
}

// broken tells why nothing of the log may be recorded any more; that it has ended in order is no reason.
func (l *log) broken() error {
	if err := l.failure(); err != core.ErrClosed { //nolint:errorlint // a failed journal's error may wrap it
		return err
	}
	return nil
}

func (l *log) failure() error {
	l.buf.Lock()
	defer l.buf.Unlock()
	return l.buf.failed
}
