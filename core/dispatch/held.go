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
// end, and a search finds them. Settled ones leave in numbers, so that each entry is moved about once in its life.
type table struct {
	items    []held
	head     int // the first item that is not settled
	settled  int // of the items behind head
	messages int64
	waiting  int64 // of messages, those whose entry waits for redelivery
}

func (t *table) push(h held) {
	t.items = append(t.items, h)
	t.messages += h.left
}

// find returns the index of the first item at or behind head that ends after o.
func (t *table) find(o core.Offset) int {
	items := t.items[t.head:]
	if len(items) == 0 || items[0].end() > o {
		return t.head
	}
	return t.head + sort.Search(len(items), func(i int) bool { return items[i].end() > o })
}

// at returns the entry that holds o, nil if there is none or it is settled.
func (t *table) at(o core.Offset) *held {
	i := t.find(o)
	if i == len(t.items) || t.items[i].Base > o || t.items[i].left == 0 {
		return nil
	}
	return &t.items[i]
}

// take takes h from its owner.
func (t *table) take(h *held) {
	h.owner.pending -= h.left
	h.owner = nil
	t.waiting += h.left
}

// give gives h, which waits, to m.
func (t *table) give(h *held, m *member) {
	h.owner = m
	m.pending += h.left
	t.waiting -= h.left
}

// settle notes that only left messages of h are not acknowledged.
func (t *table) settle(h *held, left int64) {
	done := h.left - left
	if h.owner != nil {
		h.owner.pending -= done
	} else {
		t.waiting -= done
	}
	t.messages -= done
	h.left = left
	if left == 0 {
		h.owner = nil
		t.settled++
	}
}

// trim lets settled items go: at the front always, in the middle when they are half of what is there.
func (t *table) trim() {
	for t.head < len(t.items) && t.items[t.head].left == 0 {
		t.head++
		t.settled--
	}
	const few = 8
	if gone := t.head + t.settled; gone < few || gone < len(t.items)/2 {
		return
	}
	live := t.items[:0]
	for _, h := range t.items[t.head:] {
		if h.left > 0 {
			live = append(live, h)
		}
	}
	clear(t.items[len(live):])
	t.items, t.head, t.settled = live, 0, 0
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
