package dispatch

import (
	"sort"

	"isthmus/core"
)

// held is an entry that was handed out and is not acknowledged as a whole.
type held struct {
	Entry
	owner   *member // nil: waits for redelivery, its base is in the heap
	attempt int32
	left    int64 // messages not acknowledged; 0: settled, and only still in its place
}

// table keeps held entries in the order of their offsets, which is the order of their first delivery: entries join at the
// end, and a search finds them. Settled ones leave when they are the majority.
type table struct {
	items    []held
	settled  int // of items
	messages int64
}

func (t *table) push(h held) {
	t.items = append(t.items, h)
	t.messages += h.left
}

// find returns the index of the first item that ends after o.
func (t *table) find(o core.Offset) int {
	if len(t.items) == 0 || t.items[0].end() > o {
		return 0
	}
	return sort.Search(len(t.items), func(i int) bool { return t.items[i].end() > o })
}

func (t *table) settle(h *held, left int64) {
	t.messages -= h.left - left
	h.left = left
	if left == 0 {
		h.owner = nil
		t.settled++
	}
}

// trim drops settled items once they are half of the table, so each item is moved once on average.
func (t *table) trim() {
	if t.settled == len(t.items) {
		t.clear()
	}
	const few = 32
	if t.settled < few || t.settled < len(t.items)/2 {
		return
	}
	live := t.items[:0]
	for _, h := range t.items {
		if h.left > 0 {
			live = append(live, h)
		}
	}
	clear(t.items[len(live):])
	t.items, t.settled = live, 0
}

func (t *table) clear() {
	clear(t.items)
	*t = table{items: t.items[:0]}
}

// heap yields the lowest offset first.
type heap []core.Offset

func (h *heap) push(o core.Offset) {
	a := append(*h, o)
	i := len(a) - 1
	for i > 0 && a[(i-1)/2] > o {
		a[i] = a[(i-1)/2]
		i = (i - 1) / 2
	}
	a[i] = o
	*h = a
}

func (h *heap) pop() core.Offset {
	a := *h
	top, n := a[0], len(a)-1
	o := a[n]
	a = a[:n]
	i := 0
	for c := 1; c < n; c = 2*i + 1 {
		if c+1 < n && a[c+1] < a[c] {
			c++
		}
		if a[c] >= o {
			break
		}
		a[i] = a[c]
		i = c
	}
	if n > 0 {
		a[i] = o
	}
	*h = a
	return top
}
