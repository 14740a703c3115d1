package parked

import (
	"maps"
	"slices"

	"isthmus/core"
)

// HalfState is what is known about one half message.
type HalfState struct {
	Target uint32
	Check  int64  // unix ms, when to ask its producer
	Checks uint32 // how often it was asked
	next   int64  // Check, or when it was postponed to
}

// Index is what is parked in one log. One owner calls it.
type Index struct {
	delays list                      // by due time
	checks list                      // half messages by check time
	halves map[core.Offset]HalfState // by offset
	counts map[uint32]int            // by target
}

// New returns an empty index.
func New() *Index {
	return &Index{halves: make(map[core.Offset]HalfState), counts: make(map[uint32]int)}
}

// Apply notes a durable record; off is its offset. Records come in the order of the journal. One that names a message
// which is not parked, or no longer, changes nothing.
func (x *Index) Apply(off core.Offset, r *Record) {
	switch r.Kind {
	case Delay:
		x.delays.insert(item(r.Due, off, r.Target))
		x.counts[r.Target]++
	case Half:
		x.halves[off] = HalfState{Target: r.Target, Check: r.Check, next: r.Check}
		x.checks.insert(item(r.Check, off, r.Target))
		x.counts[r.Target]++
	case Done:
		x.done(r.Of, r.Due)
	case Checked:
		if h, ok := x.halves[r.Of]; ok {
			h.Check, h.Checks = r.Check, r.Checks
			x.move(r.Of, h, r.Check)
		}
	}
}

func (x *Index) done(off core.Offset, due int64) {
	if h, ok := x.halves[off]; ok {
		delete(x.halves, off)
		x.checks.remove(h.next, off)
		x.gone(h.Target)
	} else if it, ok := x.delays.remove(due, off); ok {
		x.gone(it.Target())
	}
}

func (x *Index) gone(target uint32) {
	if x.counts[target]--; x.counts[target] <= 0 {
		delete(x.counts, target)
	}
}

func (x *Index) move(off core.Offset, h HalfState, next int64) {
	x.checks.remove(h.next, off)
	h.next = next
	x.checks.insert(item(next, off, h.Target))
	x.halves[off] = h
}

// Postpone moves the next check of a half message. It is in no journal and no snapshot: a rebuilt index asks earlier.
func (x *Index) Postpone(off core.Offset, next int64) {
	if h, ok := x.halves[off]; ok {
		x.move(off, h, next)
	}
}

// Due appends what is to be released by now, in order of (due, offset), up to max of them. They stay until their Done.
func (x *Index) Due(now int64, dst []Item, max int) []Item { return x.delays.until(now, dst, max) }

// Checks appends the half messages whose producers are to be asked by now, in order of (check time, offset).
func (x *Index) Checks(now int64, dst []Item, max int) []Item { return x.checks.until(now, dst, max) }

// Next is the earliest time at which something is to be done.
func (x *Index) Next() (at int64, ok bool) {
	d, delayed := x.delays.first()
	c, half := x.checks.first()
	if delayed && (!half || d.Due <= c.Due) {
		return d.Due, true
	}
	return c.Due, half
}

// Half returns the state of a half message that is still parked.
func (x *Index) Half(off core.Offset) (HalfState, bool) {
	h, ok := x.halves[off]
	return h, ok
}

// Delayed tells whether the message of this offset and due time is still parked.
func (x *Index) Delayed(due int64, off core.Offset) bool {
	if x.delays.n == 0 {
		return false
	}
	c := x.delays.chunks[x.delays.find(item(due, off, maxTarget))]
	at := c.find(item(due, off, 0))
	return at < len(c.items) && c.items[at].Due == due && c.items[at].Offset() == off
}

// Len is the number of parked messages, and how many of them are half messages.
func (x *Index) Len() (all, halves int) { return x.delays.n + len(x.halves), len(x.halves) }

// Count is the number of messages parked for a partition.
func (x *Index) Count(target uint32) int { return x.counts[target] }

// Floor is the lowest offset whose record is still needed.
func (x *Index) Floor() (off core.Offset, ok bool) {
	d, delayed := x.delays.floor()
	c, half := x.checks.floor()
	if delayed && (!half || d <= c) {
		return d, true
	}
	return c, half
}

// Drop forgets what is parked for partitions that are gone, and tells how many messages that was.
func (x *Index) Drop(gone func(target uint32) bool) (n int) {
	any := false
	for target := range x.counts {
		any = any || gone(target)
	}
	if !any {
		return 0 // without a look at every message
	}
	keep := func(it Item) bool { return !gone(it.Target()) }
	n = x.delays.filter(keep) + x.checks.filter(keep)
	for off, h := range x.halves {
		if gone(h.Target) {
			delete(x.halves, off)
		}
	}
	for target := range x.counts {
		if gone(target) {
			delete(x.counts, target)
		}
	}
	return n
}

// Snapshot is an index as it was: reading it takes no lock, and costs memory only for what changes meanwhile.
type Snapshot struct {
	delays list
	halves map[core.Offset]HalfState
}

// Snapshot costs a copy of the half messages and of one word in 128 delayed ones.
func (x *Index) Snapshot() *Snapshot { return &Snapshot{x.delays.snapshot(), maps.Clone(x.halves)} }

// Each calls f with records that make the same of an empty index. They hold no entries.
func (s *Snapshot) Each(f func(core.Offset, *Record) error) error {
	for _, c := range s.delays.chunks {
		for _, it := range c.items {
			if err := f(it.Offset(), &Record{Kind: Delay, Target: it.Target(), Due: it.Due}); err != nil {
				return err
			}
		}
	}
	for _, off := range slices.Sorted(maps.Keys(s.halves)) {
		h := s.halves[off]
		err := f(off, &Record{Kind: Half, Target: h.Target, Check: h.Check})
		if err == nil && h.Checks > 0 {
			err = f(0, &Record{Kind: Checked, Of: off, Check: h.Check, Checks: h.Checks})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
