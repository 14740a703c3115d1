package engine

import (
	"sort"

	"isthmus/core"
)

// What a partition weighs is known exactly at marks and at its end, and taken in proportion to its offsets in between: so
// a measure is wrong by no more than lies between two marks, and costs a search.

// anchor is an offset of a partition and how many bytes it had written by then.
type anchor struct {
	offset core.Offset
	bytes  int64
}

// end is the newest anchor. The caller holds l.tail.
func (p *Partition) end() anchor { return anchor{p.committed.Load(), p.bytes} }

// around returns the anchors that enclose what the search says. The caller holds l.tail.
func (p *Partition) around(beyond func(anchor) bool) (lo, hi anchor) {
	ms := p.log.tail.marks
	at := func(i int) anchor { return anchor{ms[i].next[p.number], ms[i].bytes[p.number]} }
	i := sort.Search(len(ms), func(i int) bool { return beyond(at(i)) })
	if i > 0 {
		lo = at(i - 1)
	}
	if hi = p.end(); i < len(ms) {
		hi = at(i)
	}
	return lo, hi
}

// written estimates the bytes of a partition before an offset.
func (p *Partition) written(o core.Offset) int64 {
	l := p.log
	l.tail.RLock()
	defer l.tail.RUnlock()
	if e := p.end(); o >= e.offset {
		return e.bytes
	}
	lo, hi := p.around(func(a anchor) bool { return a.offset > o })
	return scale(lo.bytes, hi.bytes, o-lo.offset, hi.offset-lo.offset)
}

// total is what a partition has written in its life.
func (p *Partition) total() int64 {
	p.log.tail.RLock()
	defer p.log.tail.RUnlock()
	return p.bytes
}

// last estimates the offset after which only so many bytes lie.
func (p *Partition) last(bytes int64) core.Offset {
	l := p.log
	l.tail.RLock()
	defer l.tail.RUnlock()
	e := p.end()
	want := e.bytes - bytes
	if want <= 0 {
		return 0
	}
	lo, hi := p.around(func(a anchor) bool { return a.bytes > want })
	return scale(lo.offset, hi.offset, want-lo.bytes, hi.bytes-lo.bytes)
}

// scale is the place between lo and hi that part is of whole.
func scale(lo, hi, part, whole int64) int64 {
	if whole <= 0 || part >= whole {
		return hi
	}
	return lo + int64(float64(hi-lo)*(float64(max(part, 0))/float64(whole)))
}
