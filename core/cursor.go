package core

import (
	"iter"
	"slices"
	"sort"
)

// Cursor is a group's place in one partition: everything below Next is acknowledged (the mark-delete), and so are some
// ranges beyond it, which neither touch each other nor Next, so that one state has one form.
//
// The zero Cursor stands at the beginning. A copy shares the ranges: use Clone to keep one while the other goes on.
//
// The ranges lie in leaves of bounded size, in order, so that an ack among 200 000 of them moves a few hundred bytes, and a
// clone copies a leaf only when one of both changes it.
type Cursor struct {
	Next   Offset
	leaves []*leaf // none is empty
	count  int     // ranges in all leaves
	spare  *leaf   // emptied and nobody else's: groups at work make and fill one hole after the other
}

const leafMost = 128

type leaf struct {
	ranges []Range
	shared bool // another Cursor has it too, so it is copied before it is changed
}

// NewCursor makes a cursor at next with some ranges acknowledged beyond it, in any form.
func NewCursor(next Offset, acked ...Range) Cursor {
	c := Cursor{Next: next}
	for _, r := range acked {
		c.Ack(r)
	}
	return c
}

// Holes counts the acknowledged ranges beyond Next.
func (c *Cursor) Holes() int { return c.count }

// Acked yields the acknowledged ranges beyond Next, in order.
func (c *Cursor) Acked() iter.Seq[Range] {
	return func(yield func(Range) bool) {
		for _, l := range c.leaves {
			for _, r := range l.ranges {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// End is the offset from which on nothing is acknowledged.
func (c *Cursor) End() Offset {
	if n := len(c.leaves); n > 0 {
		return c.leaves[n-1].end()
	}
	return c.Next
}

// Ack acknowledges r, whatever of it was acknowledged before, and tells whether that changed anything.
func (c *Cursor) Ack(r Range) bool {
	r.From = max(r.From, c.Next)
	if r.From >= r.To {
		return false
	}
	if r.From == c.Next {
		return c.AckThrough(r.To)
	}
	at := c.search(r.From - 1) // the first range that touches r or lies beyond it
	if !c.valid(at) {
		c.push(r)
		return true
	}
	x := c.at(at)
	if x.From <= r.From && x.To >= r.To {
		return false
	}
	if x.From > r.To {
		c.insert(at, r)
		return true
	}
	behind := at
	for c.valid(behind) && c.at(behind).From <= r.To {
		r.From = min(r.From, c.at(behind).From)
		r.To = max(r.To, c.at(behind).To)
		behind = c.after(behind)
	}
	c.own(at.leaf).ranges[at.i] = r
	c.remove(c.after(at), behind)
	return true
}

// AckThrough acknowledges everything below next and tells whether that changed anything.
func (c *Cursor) AckThrough(next Offset) bool {
	if next <= c.Next {
		return false
	}
	to := spot{}
	if c.count > 0 {
		to = c.search(next) // what touches next is swallowed by it
		if c.valid(to) && c.at(to).From <= next {
			next = c.at(to).To
			to = c.after(to)
		}
	}
	c.Next = next
	c.remove(spot{}, to)
	return true
}

// Covers tells whether o is acknowledged.
func (c *Cursor) Covers(o Offset) bool { return c.NextUnacked(o) != o }

// NextUnacked returns the first offset at or after o that is not acknowledged.
func (c *Cursor) NextUnacked(o Offset) Offset {
	o = max(o, c.Next)
	if s := c.search(o); c.valid(s) && c.at(s).From <= o {
		return c.at(s).To
	}
	return o
}

// NextAcked returns where the first acknowledged range behind o begins, o being unacknowledged; false when there is none.
func (c *Cursor) NextAcked(o Offset) (Offset, bool) {
	s := c.search(o)
	if !c.valid(s) {
		return 0, false
	}
	return c.at(s).From, true
}

// Unacked counts the offsets of r that are not acknowledged.
func (c *Cursor) Unacked(r Range) int64 {
	r.From = max(r.From, c.Next)
	if r.From >= r.To {
		return 0
	}
	n := r.To - r.From
	for s := c.search(r.From); c.valid(s) && c.at(s).From < r.To; s = c.after(s) {
		n -= min(c.at(s).To, r.To) - max(c.at(s).From, r.From)
	}
	return n
}

// AppendAcked appends the acknowledged parts of r to dst, in order.
func (c *Cursor) AppendAcked(dst []Range, r Range) []Range {
	if r.From >= r.To {
		return dst
	}
	if r.From < c.Next {
		dst = append(dst, Range{r.From, min(r.To, c.Next)})
	}
	for s := c.search(r.From); c.valid(s) && c.at(s).From < r.To; s = c.after(s) {
		dst = append(dst, Range{max(c.at(s).From, r.From), min(c.at(s).To, r.To)})
	}
	return dst
}

// Clone returns a cursor that goes its own way. Leaves are shared until one of both changes them, whatever goroutine it is in.
func (c *Cursor) Clone() Cursor {
	for _, l := range c.leaves {
		if !l.shared { // one that is shared already is only read
			l.shared = true
		}
	}
	return Cursor{Next: c.Next, leaves: slices.Clone(c.leaves), count: c.count}
}

// Equal tells whether both stand at the same place.
func (c *Cursor) Equal(d Cursor) bool {
	if c.Next != d.Next || c.count != d.count {
		return false
	}
	s, t := spot{}, spot{}
	for range c.count {
		if c.at(s) != d.at(t) {
			return false
		}
		s, t = c.after(s), d.after(t)
	}
	return true
}

// spot is the place of a range: a leaf and an index in it. Behind the last range it is the leaf after the last.
type spot struct{ leaf, i int }

func (c *Cursor) valid(s spot) bool { return s.leaf < len(c.leaves) }
func (c *Cursor) at(s spot) Range   { return c.leaves[s.leaf].ranges[s.i] }

func (c *Cursor) after(s spot) spot {
	if s.i+1 < len(c.leaves[s.leaf].ranges) {
		return spot{s.leaf, s.i + 1}
	}
	return spot{s.leaf + 1, 0}
}

func (l *leaf) end() Offset { return l.ranges[len(l.ranges)-1].To }

// search returns the spot of the first range that ends after o.
func (c *Cursor) search(o Offset) spot {
	n := len(c.leaves)
	if n == 0 || c.leaves[n-1].end() <= o {
		return spot{n, 0}
	}
	if c.leaves[0].ranges[0].To > o {
		return spot{}
	}
	i := sort.Search(n-1, func(i int) bool { return c.leaves[i].end() > o })
	ranges := c.leaves[i].ranges
	return spot{i, sort.Search(len(ranges)-1, func(k int) bool { return ranges[k].To > o })}
}

// own returns a leaf that only c has.
func (c *Cursor) own(i int) *leaf {
	l := c.leaves[i]
	if l.shared {
		l = &leaf{ranges: append(make([]Range, 0, min(leafMost, len(l.ranges)+8)), l.ranges...)}
		c.leaves[i] = l
	}
	return l
}

// push appends r behind all others.
func (c *Cursor) push(r Range) {
	n := len(c.leaves)
	if n == 0 || len(c.leaves[n-1].ranges) == leafMost {
		l := c.spare
		if c.spare = nil; l == nil {
			l = &leaf{}
		}
		c.leaves = append(c.leaves, l)
		n++
	}
	l := c.own(n - 1)
	l.ranges = append(l.ranges, r)
	c.count++
}

// insert puts r at s. A full leaf is cut in half before.
func (c *Cursor) insert(s spot, r Range) {
	l := c.own(s.leaf)
	if len(l.ranges) == leafMost {
		const half = leafMost / 2
		upper := &leaf{ranges: append(make([]Range, 0, leafMost), l.ranges[half:]...)}
		l.ranges = l.ranges[:half]
		c.leaves = slices.Insert(c.leaves, s.leaf+1, upper)
		if s.i > half {
			s, l = spot{s.leaf + 1, s.i - half}, upper
		}
	}
	l.ranges = slices.Insert(l.ranges, s.i, r)
	c.count++
}

// remove takes out the ranges from one spot up to another. A leaf that gets small goes into the one before.
func (c *Cursor) remove(from, to spot) {
	if from == to {
		return
	}
	if from.leaf == to.leaf {
		c.shorten(from.leaf, from.i, to.i)
	} else {
		if c.valid(to) && to.i > 0 {
			c.shorten(to.leaf, 0, to.i)
		}
		if from.i > 0 {
			c.shorten(from.leaf, from.i, len(c.leaves[from.leaf].ranges))
			from.leaf++
		}
		for _, l := range c.leaves[from.leaf:to.leaf] {
			c.count -= len(l.ranges)
			if !l.shared {
				l.ranges = l.ranges[:0]
				c.spare = l
			}
		}
		c.leaves = slices.Delete(c.leaves, from.leaf, to.leaf)
	}
	if i := from.leaf; i > 0 && i < len(c.leaves) && len(c.leaves[i-1].ranges)+len(c.leaves[i].ranges) <= leafMost/2 {
		l := c.own(i - 1)
		l.ranges = append(l.ranges, c.leaves[i].ranges...)
		c.leaves = slices.Delete(c.leaves, i, i+1)
	}
}

// shorten takes ranges i to j, which are not all, out of a leaf.
func (c *Cursor) shorten(leaf, i, j int) {
	l := c.own(leaf)
	l.ranges = slices.Delete(l.ranges, i, j)
	c.count -= j - i
}
