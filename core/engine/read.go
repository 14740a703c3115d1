package engine

import (
	"context"
	"fmt"
	"sync"

	"isthmus/core"
	"isthmus/core/journal"
)

// readRequest collects entries of one partition up to its limits.
type readRequest struct {
	from       core.Offset
	end        core.Offset // of what is committed
	maxEntries int
	maxBytes   int
	entries    []core.Entry
	some       bool // one was added
	spot       *spot
}

// spot is where a reader left an extent of the tail, to go on from there: large blocks are read in many portions. It holds
// no memory. The zero spot is none.
type spot struct {
	first, next core.Offset // of the extent; where the reader left it
	at          int         // in its data
}

// resume moves x to where the reader left it.
func (s *spot) resume(x *tailExtent, from core.Offset) {
	if s != nil && s.at > 0 && s.first == x.first && s.next <= from {
		x.first, x.data = s.next, x.data[s.at:]
	}
}

// leave notes how far x was read, which begins at first and has so many bytes.
func (s *spot) leave(x *tailExtent, first core.Offset, size int) {
	if s != nil {
		*s = spot{first, x.first, size - len(x.data)}
	}
}

// done tells that there is no more to take.
func (r *readRequest) done() bool { return r.full() || r.from >= r.end }

func (r *readRequest) full() bool { return len(r.entries) >= r.maxEntries || r.maxBytes <= 0 }

// take adds the entries of an extent that end after r.from.
func (r *readRequest) take(x *tailExtent) error {
	x.skipTo(r.from)
	for len(x.data) > 0 && x.first < r.end && !r.full() {
		_, size := core.PeekEntry(x.data)
		if r.some && size > r.maxBytes {
			r.maxBytes = 0
			return nil
		}
		n := len(r.entries)
		r.entries = append(r.entries, core.Entry{})
		if err := x.next(&r.entries[n]); err != nil {
			r.entries = r.entries[:n]
			return err
		}
		r.maxBytes -= size
		r.some = true
		r.from = x.first
	}
	return nil
}

// Health tells why the partition takes no messages: its log has failed, or nil.
func (p *Partition) Health() error { return p.log.failure() }

// Read returns committed entries from an offset on: whole ones, the first may begin before it; at least one if there is
// any, and no more than the limits say. It is empty at the end, and ErrOffsetOutOfRange before the first retained offset.
// Any goroutine may call it; recent entries come from memory, others through the cold cache.
func (p *Partition) Read(ctx context.Context, from core.Offset, maxEntries, maxBytes int) ([]core.Entry, error) {
	return p.AppendEntries(ctx, nil, from, maxEntries, maxBytes)
}

// AppendEntries is Read into memory of the caller: it appends to dst.
func (p *Partition) AppendEntries(ctx context.Context, dst []core.Entry, from core.Offset, maxEntries, maxBytes int) ([]core.Entry, error) {
	return p.appendFrom(ctx, dst, from, maxEntries, maxBytes, nil)
}

// appendFrom is AppendEntries for one who reads on and on.
func (p *Partition) appendFrom(ctx context.Context, dst []core.Entry, from core.Offset, maxEntries, maxBytes int, s *spot) ([]core.Entry, error) {
	first, end := p.Bounds()
	if from < first {
		return dst, p.outOfRange(from, first)
	}
	if from >= end {
		return dst, nil
	}
	r := readRequest{from: from, end: end, entries: dst, maxEntries: len(dst) + max(maxEntries, 1), maxBytes: max(maxBytes, 1), spot: s}
	ok, err := p.readTail(&r)
	if !ok && err == nil && p.log.volatile {
		return dst, p.outOfRange(from, p.first.Load())
	}
	if !ok && err == nil {
		err = p.readCold(ctx, &r)
	}
	if err != nil {
		return dst, fmt.Errorf("read %s partition %d at offset %d: %w", p.topic.name, p.index, from, err)
	}
	if first = p.first.Load(); from < first && (!r.some || r.entries[len(dst)].Base > from) { // trimmed under the reader
		return dst, p.outOfRange(from, first)
	}
	return r.entries, nil
}

func (p *Partition) outOfRange(from, first core.Offset) error {
	return fmt.Errorf("%s partition %d: offset %d, first is %d: %w", p.topic.name, p.index, from, first, core.ErrOffsetOutOfRange)
}

// OffsetAt returns the offset of the first message that was committed at or after a time in unix ms: the first retained
// one when all are younger, the end when all are older.
func (p *Partition) OffsetAt(ctx context.Context, ms int64) (core.Offset, error) {
	l := p.log
	first, end := p.Bounds()
	l.tail.RLock()
	seq := l.markedAt(ms)
	l.tail.RUnlock()
	hint := journal.Hint{Partition: p.number, HasPartition: true, From: first, Since: ms}
	for rec, err := range l.journal.Read(ctx, seq, hint) {
		if err != nil {
			return 0, fmt.Errorf("offset of %s partition %d by time: %w", p.topic.name, p.index, err)
		}
		b, err := journal.Header(rec.Block)
		if err != nil {
			return 0, err
		}
		if b.Time < ms {
			continue
		}
		for x := range b.Of(p.number) {
			if x.Next() > first {
				return min(max(x.First, first), end), nil
			}
		}
	}
	return end, nil
}

// watchers are those who want to hear of new messages of a partition. The mutex is a leaf; functions are called outside it.
type watchers struct {
	mu      sync.Mutex
	always  []*func() // runners
	waiting []*waiter // one call each
	due     []*waiter // scratch of notify, which one goroutine calls
}

type waiter struct {
	from core.Offset
	wake func()
	at   int // index in waiting, -1 = not there
}

// notify is called by the committer.
func (w *watchers) notify(end core.Offset) {
	w.mu.Lock()
	always := w.always
	keep := w.waiting[:0]
	w.due = w.due[:0]
	for _, x := range w.waiting {
		if end > x.from {
			x.at = -1
			w.due = append(w.due, x)
		} else {
			x.at = len(keep)
			keep = append(keep, x)
		}
	}
	clear(w.waiting[len(keep):])
	w.waiting = keep
	w.mu.Unlock()
	for _, f := range always {
		(*f)()
	}
	for i, x := range w.due {
		x.wake()
		w.due[i] = nil
	}
}

// subscribe calls f after each commit until cancelled. The list is replaced, never changed, because notify reads it
// outside the mutex.
func (w *watchers) subscribe(f func()) (cancel func()) {
	key := &f
	w.mu.Lock()
	w.always = append(w.always[:len(w.always):len(w.always)], key)
	w.mu.Unlock()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		rest := make([]*func(), 0, len(w.always))
		for _, k := range w.always {
			if k != key {
				rest = append(rest, k)
			}
		}
		w.always = rest
	}
}

// Await calls wake once, when there are messages beyond from: at once if there are some already, otherwise from a
// committer goroutine, so it must not block. cancel forgets it; a call may be under way then.
func (p *Partition) Await(from core.Offset, wake func()) (cancel func()) {
	x := &waiter{from: from, wake: wake, at: -1}
	w := &p.watch
	w.mu.Lock()
	ready := p.committed.Load() > from
	if !ready {
		x.at = len(w.waiting)
		w.waiting = append(w.waiting, x)
	}
	w.mu.Unlock()
	if ready {
		wake()
		return func() {}
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if x.at < 0 {
			return
		}
		last := len(w.waiting) - 1
		w.waiting[x.at] = w.waiting[last]
		w.waiting[x.at].at = x.at
		w.waiting[last] = nil
		w.waiting = w.waiting[:last]
		x.at = -1
	}
}
