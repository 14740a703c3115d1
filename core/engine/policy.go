package engine

import (
	"fmt"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// Policy says what becomes of a topic's messages. Three words are kept apart: retention is about what all groups have
// consumed, the backlog about what they have not, and the TTL ends a message whether it was consumed or not.
type Policy struct {
	Retention Retention
	TTL       time.Duration // 0: none
	Backlog   Backlog

	GroupExpiry time.Duration // after which a durable group is deleted that a client began and nobody uses; 0: never
}

// Retention says how long consumed data stays: until it is older than Age, or more than Size lies before what somebody
// still needs; whichever is first of those that are set. Without both it stays for Config.TrimFloor, and so does, in any
// case, what a topic without groups was sent.
type Retention struct {
	Age  time.Duration
	Size int64
}

// Backlog bounds what is not consumed, measured over the slowest durable group.
type Backlog struct {
	Age      time.Duration
	Size     int64
	WhenFull WhenFull
}

// WhenFull says what happens at the bounds of a backlog.
type WhenFull uint8

// The choices: producers get an error, they wait, or slow groups lose their oldest messages.
const (
	Reject WhenFull = iota
	Block
	DropOldest
)

var whenFull = [...]string{Reject: "reject", Block: "block", DropOldest: "drop_oldest"}

func (w WhenFull) String() string {
	if int(w) < len(whenFull) {
		return whenFull[w]
	}
	return fmt.Sprintf("when_full(%d)", uint8(w))
}

// ParseWhenFull reads a word of the configuration; empty means reject.
func ParseWhenFull(s string) (WhenFull, error) {
	for w, name := range whenFull {
		if s == name {
			return WhenFull(w), nil
		}
	}
	if s == "" {
		return Reject, nil
	}
	return 0, fmt.Errorf("%q is none of reject, block, drop_oldest: %w", s, core.ErrInvalid)
}

// limited tells whether the backlog has a bound.
func (b Backlog) limited() bool { return b.Age > 0 || b.Size > 0 }

func (p Policy) validate() error {
	switch {
	case p.Retention.Age < 0 || p.Retention.Size < 0 || p.TTL < 0 || p.Backlog.Age < 0 || p.Backlog.Size < 0 || p.GroupExpiry < 0:
		return fmt.Errorf("a negative bound: %w", core.ErrInvalid)
	case p.Backlog.WhenFull > DropOldest:
		return fmt.Errorf("%v: %w", p.Backlog.WhenFull, core.ErrInvalid)
	}
	return nil
}

// putPolicy writes the policy into a topic's record.
func putPolicy(rec *meta.TopicRecord, p Policy) {
	rec.Retention, rec.RetentionSize, rec.TTL = p.Retention.Age, p.Retention.Size, p.TTL
	rec.BacklogAge, rec.BacklogSize, rec.WhenFull = p.Backlog.Age, p.Backlog.Size, ""
	rec.GroupExpiry = p.GroupExpiry
	if p.Backlog.limited() {
		rec.WhenFull = p.Backlog.WhenFull.String()
	}
}

// policy is what a topic's record says, or the defaults for one that nobody declared.
func (e *Engine) policy(rec *meta.TopicRecord) (Policy, error) {
	if !rec.Declared {
		return e.cfg.Defaults.Policy, nil
	}
	w, err := ParseWhenFull(rec.WhenFull)
	return Policy{
		Retention: Retention{rec.Retention, rec.RetentionSize}, TTL: rec.TTL,
		Backlog: Backlog{rec.BacklogAge, rec.BacklogSize, w}, GroupExpiry: rec.GroupExpiry,
	}, err
}

// holding is what a log's partition asks of a trim.
type holding struct {
	first  core.Offset // what lies before is gone already
	needed core.Offset // from here on a durable group needs it
	weight int64       // bytes before needed
	old    int64       // unix ms: what was committed until then is beyond the age; never: no bound by age
	size   int64       // consumed bytes that stay; 0: no bound by size
	spare  int64       // unix ms: what was committed later stays whatever its size
}

const never = -1 << 63 // older than everything

// hold states a policy at a time. grouped tells whether a durable group exists. share is the
// partition's part of the size.
func (r Retention) hold(now time.Time, floor time.Duration, grouped bool, share int64) holding {
	h := holding{old: now.Add(-max(r.Age, floor)).UnixMilli(), spare: now.UnixMilli()}
	if !grouped {
		h.spare = now.Add(-floor).UnixMilli()
	}
	if r.Size > 0 {
		h.size = max(1, share)
		if r.Age == 0 {
			h.old = never
		}
	}
	return h
}

// frees tells whether everything of the partition before the mark may go.
func (h *holding) frees(m mark, number uint32) bool {
	o := m.next[number]
	switch {
	case o <= h.first:
		return true
	case o > h.needed:
		return false
	case m.time <= h.old:
		return true
	}
	return h.size > 0 && m.time <= h.spare && h.weight-m.bytes[number] >= h.size
}

// trimmable returns the index of the newest mark before which nobody needs anything, 0 when there is none. Metadata has
// these marks, and the position saved.
func trimmable(marks []mark, saved journal.Seq, hold map[uint32]*holding) (floor int) {
	for i, m := range marks {
		if m.seq > saved {
			return floor
		}
		for n, h := range hold {
			if !h.frees(m, n) {
				return floor
			}
		}
		floor = i
	}
	return floor
}

// cut returns how many bytes each part of a backlog keeps so that together they are at most size, in proportion.
func cut(parts []int64, size int64) []int64 {
	total := int64(0)
	for _, b := range parts {
		total += b
	}
	keep := make([]int64, len(parts))
	for i, b := range parts {
		keep[i] = b
		if total > size {
			keep[i] = int64(float64(b) * float64(size) / float64(total))
		}
	}
	return keep
}
