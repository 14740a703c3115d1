package engine

import (
	"time"

	"isthmus/core"
	"isthmus/core/journal"
)

// A producer that has stored nothing for this long is forgotten, as in Pulsar; so is the one that has been silent the
// longest where a partition knows more than maxSequences. What such a producer sends again after that is stored again.
const (
	sequenceIdle = 6 * time.Hour
	maxSequences = 10_000
)

// dedup is what a partition knows of the producers that number their messages: per name and handle the highest sequence.
// Guarded by its log's buffer mutex, and nil where the topic does not de-duplicate.
//
// Entries are checked and counted when they are accepted, under the same mutex that gives them their offset. They count as
// durable when their block is: snapshots hold nothing else.
type dedup struct {
	since core.Offset // entries before it were published without de-duplication, and say nothing
	begun int64       // so were parked ones that were committed before this, unix ms
	known map[source]*sequence
	// A ring of those of which something is durable: next of it is the one that was silent the longest.
	silent sequence
}

// source is a producer as one of its partitions sees it: placement by key lets several of a name write to one partition.
type source struct {
	name   string
	handle int32
}

// sequence is what is known of one source.
type sequence struct {
	source
	high  int64  // of what was accepted
	block uint64 // the last buffer that holds something of it
	at    int    // its place in that buffer's list

	durable    int64       // of what is durable; the rest is about the newest durable entry
	seen       int64       // commit time, unix ms; 0: nothing is durable yet
	seq        journal.Seq // block; 0: an older one than the last restore
	prev, next *sequence
}

// counted is a source that has something in a buffer, and how high.
type counted struct {
	d    *dedup
	s    *sequence
	high int64
}

func newDedup(since core.Offset, begun int64) *dedup {
	d := &dedup{since: since, begun: begun, known: map[source]*sequence{}}
	d.silent.prev, d.silent.next = &d.silent, &d.silent
	return d
}

// numbered tells whether de-duplication has anything to go by.
func numbered(e *core.Entry) bool { return e.Flags&core.FlagSequenced != 0 && len(e.Producer) > 0 }

// admit tells whether an entry is new, and counts it in the active buffer. now is no later than its block's commit time.
// The last chunk counts for all of its message; the others are only looked at.
func (d *dedup) admit(b *buffer, e *core.Entry, now int64) bool {
	s := d.known[source{string(e.Producer), e.Handle}]
	if s != nil && s.expired(now) && s.high == s.durable {
		d.forget(s)
		s = nil
	}
	switch {
	case s != nil && e.SeqHigh <= s.high:
		return false
	case e.Flags&core.FlagMoreChunks != 0:
		return true
	case s == nil:
		s = &sequence{source: source{string(e.Producer), e.Handle}}
		d.known[s.source] = s
	}
	s.high = e.SeqHigh
	if s.block != b.number {
		s.block, s.at = b.number, len(b.counted)
		b.counted = append(b.counted, counted{d: d, s: s})
	}
	b.counted[s.at].high = s.high
	return true
}

// landed notes that what a buffer has counted is durable.
func (b *buffer) landed(seq journal.Seq, time int64) {
	for _, c := range b.counted {
		c.d.store(c.s, c.high, seq, time)
	}
	for _, c := range b.counted {
		c.d.tidy(time)
	}
}

// store is what a durable entry means.
func (d *dedup) store(s *sequence, high int64, seq journal.Seq, time int64) {
	again := s.seq == seq && seq != 0 // in one block: the first entry says who came before whom
	s.durable, s.seq, s.seen = high, seq, time
	if again {
		return
	}
	if s.next != nil {
		s.prev.next, s.next.prev = s.next, s.prev
	}
	s.prev, s.next = d.silent.prev, &d.silent
	s.prev.next, s.next.prev = s, s
}

// replay takes in an entry that is durable already.
func (d *dedup) replay(e *core.Entry, seq journal.Seq) {
	if e.Flags&core.FlagMoreChunks != 0 {
		return
	}
	d.put(source{string(e.Producer), e.Handle}, e.SeqHigh, seq, e.Commit)
}

func (d *dedup) put(of source, high int64, seq journal.Seq, time int64) {
	d.tidy(time)
	s := d.known[of]
	if s == nil {
		s = &sequence{source: of, high: high}
		d.known[of] = s
	}
	s.high = max(s.high, high)
	d.store(s, s.high, seq, time)
	d.tidy(time)
}

// tidy forgets who has been silent for too long at a time, and who is too many.
func (d *dedup) tidy(now int64) {
	for s := d.silent.next; s != &d.silent; s = d.silent.next {
		if s.high != s.durable || !s.expired(now) && len(d.known) <= maxSequences {
			return
		}
		d.forget(s)
	}
}

func (s *sequence) expired(now int64) bool {
	return s.seen > 0 && now-s.seen > sequenceIdle.Milliseconds()
}

func (d *dedup) forget(s *sequence) {
	delete(d.known, s.source)
	s.prev.next, s.next.prev = s.next, s.prev
}
