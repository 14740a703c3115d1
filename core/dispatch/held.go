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
	due     int64 // unix ms: with an owner, when it is taken back; without, from when on it waits for redelivery. 0: no alarm
}

// table keeps held entries in the order of their offsets, which is the order of their first delivery: entries join at the
// end, and a search finds them. Settled ones leave in numbers, so that each entry is moved about once in its life.
type table struct {
	items    []held
	head     int // the first item that is not settled
	settled  int // of the items behind head
	messages int64
	waiting  int64 // of messages, those whose entry waits for redelivery
	delayed  int64 // of messages, those whose entry will wait from its due time on
	alarms   alarms
}

func (t *table) push(h held) *held {
	t.items = append(t.items, h)
	t.messages += h.left
	return &t.items[len(t.items)-1]
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

// take takes h from its owner. It waits for redelivery now (0) or from at on.
func (t *table) take(h *held, at int64) {
	h.owner.pending -= h.left
	h.owner = nil
	if at == 0 {
		h.due = 0
		t.waiting += h.left
		return
	}
	t.delayed += h.left
	t.alarm(h, at)
}

// ripen lets h, which was delayed, wait.
func (t *table) ripen(h *held) {
	h.due = 0
	t.delayed -= h.left
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
	switch {
	case h.owner != nil:
		h.owner.pending -= done
	case h.due != 0:
		t.delayed -= done
	default:
		t.waiting -= done
	}
	t.messages -= done
	h.left = left
	if left == 0 {
		h.owner, h.due = nil, 0
		t.settled++
	}
}

// alarm sets when h is due; 0: never. An alarm that is set anew or whose entry is settled stays in the heap and rings for
// nobody; when those are the most, the heap is made anew.
func (t *table) alarm(h *held, at int64) {
	h.due = at
	if at == 0 {
		return
	}
	t.alarms.push(alarm{at, h.Base})
	if !stale(t.alarms, len(t.items)-t.head) {
		return
	}
	t.alarms = t.alarms[:0]
	for i := t.head; i < len(t.items); i++ {
		if h := &t.items[i]; h.due != 0 {
			t.alarms.push(alarm{h.due, h.Base})
		}
	}
}

// rings returns an entry that is due, nil if there is none.
func (t *table) rings(now int64) *held {
	for len(t.alarms) > 0 && t.alarms[0].at <= now {
		a := t.alarms.pop()
		if h := t.at(a.base); h != nil && h.due == a.at && h.Base == a.base {
			return h
		}
	}
	return nil
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
	*t = table{items: t.items[:0], alarms: t.alarms[:0]}
}
