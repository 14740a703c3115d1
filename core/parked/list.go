package parked

import (
	"slices"
	"sort"

	"isthmus/core"
)

// Bounds of what an Item packs into one word: as in every id that clients keep, 43 bits of offset and 20 of partition number.
const (
	targetBits = 20
	maxTarget  = 1<<targetBits - 1
	maxOffset  = 1<<43 - 1
)

// Item is one parked message and when something is to be done about it.
type Item struct {
	Due int64  // unix ms
	ref uint64 // offset and target
}

func item(due int64, off core.Offset, target uint32) Item {
	return Item{due, uint64(off)<<targetBits | uint64(target)}
}

// Offset is the place of its record in the internal partition.
func (i Item) Offset() core.Offset { return core.Offset(i.ref >> targetBits) }

// Target is the number of the partition it goes to.
func (i Item) Target() uint32 { return uint32(i.ref & maxTarget) }

func (i Item) less(j Item) bool { return i.Due < j.Due || i.Due == j.Due && i.ref < j.ref }

// chunkItems is how many items a chunk has room for: 4 KiB, what one insertion moves at most.
const chunkItems = 256

// chunk is a sorted run of items. low is the lowest ref in it. Its list may change it if they are of one age; else a
// snapshot has it too.
type chunk struct {
	items []Item
	low   uint64
	age   int
}

func (l *list) newChunk(items ...Item) *chunk {
	c := &chunk{items: append(make([]Item, 0, chunkItems), items...), age: l.age}
	c.measure()
	return c
}

func (c *chunk) measure() {
	c.low = ^uint64(0)
	for _, i := range c.items {
		c.low = min(c.low, i.ref)
	}
}

// list keeps items in order of (due, offset): sorted chunks, any two neighbours of which hold more than one has room for,
// or as many. So it is at least half full.
type list struct {
	chunks []*chunk
	n      int
	age    int // snapshots taken
}

// snapshot returns a list that stays as it is: it shares the chunks until one of them changes.
func (l *list) snapshot() list {
	l.age++
	return list{chunks: slices.Clone(l.chunks), n: l.n}
}

// own returns a chunk that may be changed.
func (l *list) own(at int) *chunk {
	if l.chunks[at].age != l.age {
		l.chunks[at] = l.newChunk(l.chunks[at].items...)
	}
	return l.chunks[at]
}

// find returns the chunk that an item is in, or belongs into.
func (l *list) find(it Item) int {
	at := sort.Search(len(l.chunks), func(i int) bool { return it.less(l.chunks[i].items[0]) })
	return max(at-1, 0)
}

func (c *chunk) find(it Item) int {
	return sort.Search(len(c.items), func(i int) bool { return !c.items[i].less(it) })
}

func (l *list) insert(it Item) {
	l.n++
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, l.newChunk(it))
		return
	}
	at := l.find(it)
	c := l.chunks[at]
	place := c.find(it)
	switch {
	case len(c.items) < chunkItems:
		c = l.own(at)
	case place == chunkItems && at == len(l.chunks)-1: // growing at an end leaves full chunks behind
		l.chunks = append(l.chunks, l.newChunk(it))
		return
	case place == 0: // of the first chunk
		l.chunks = slices.Insert(l.chunks, 0, l.newChunk(it))
		return
	default:
		c = l.own(at)
		right := l.newChunk(c.items[chunkItems/2:]...)
		c.items = c.items[:chunkItems/2]
		c.measure()
		l.chunks = slices.Insert(l.chunks, at+1, right)
		if place > chunkItems/2 {
			c, place = right, place-chunkItems/2
		}
	}
	c.items = slices.Insert(c.items, place, it)
	c.low = min(c.low, it.ref)
}

// remove takes out the item of this due time and offset, whatever its target.
func (l *list) remove(due int64, off core.Offset) (Item, bool) {
	if len(l.chunks) == 0 {
		return Item{}, false
	}
	at := l.find(item(due, off, maxTarget))
	c := l.chunks[at]
	place := c.find(item(due, off, 0))
	if place == len(c.items) || c.items[place].Due != due || c.items[place].Offset() != off {
		return Item{}, false
	}
	it := c.items[place]
	c = l.own(at)
	c.items = slices.Delete(c.items, place, place+1)
	if it.ref == c.low {
		c.measure()
	}
	l.n--
	l.settle(at)
	return it, true
}

// settle joins a chunk that has lost items with a neighbour, where one chunk has room for both.
func (l *list) settle(at int) {
	if len(l.chunks[at].items) == 0 {
		l.chunks = slices.Delete(l.chunks, at, at+1)
		return
	}
	for _, left := range [2]int{at - 1, at} {
		if left < 0 || left+1 >= len(l.chunks) {
			continue
		}
		a, b := l.chunks[left], l.chunks[left+1]
		if len(a.items)+len(b.items) <= chunkItems {
			a = l.own(left)
			a.items, a.low = append(a.items, b.items...), min(a.low, b.low)
			l.chunks = slices.Delete(l.chunks, left+1, left+2)
			return
		}
	}
}

// filter keeps the items that keep wants and tells how many went.
func (l *list) filter(keep func(Item) bool) int {
	out := list{age: l.age}
	for _, c := range l.chunks {
		for _, it := range c.items {
			if keep(it) {
				out.insert(it)
			}
		}
	}
	gone := l.n - out.n
	if gone > 0 {
		*l = out
	}
	return gone
}

// until appends the items that are due, in order, up to max of them.
func (l *list) until(now int64, dst []Item, max int) []Item {
	for _, c := range l.chunks {
		for _, it := range c.items {
			if it.Due > now || max <= 0 {
				return dst
			}
			dst = append(dst, it)
			max--
		}
	}
	return dst
}

func (l *list) first() (Item, bool) {
	if l.n == 0 {
		return Item{}, false
	}
	return l.chunks[0].items[0], true
}

// floor is the lowest offset in it.
func (l *list) floor() (core.Offset, bool) {
	low := ^uint64(0)
	for _, c := range l.chunks {
		low = min(low, c.low)
	}
	return core.Offset(low >> targetBits), l.n > 0
}
