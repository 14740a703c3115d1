package dispatch

import (
	"sort"

	"isthmus/core"
)

// slot is a hash slot that something is known of.
type slot struct {
	slot     uint32     // 0: this place is unused
	flying   int32      // entries in flight
	owner    *keyMember // who gets what waits; nil: nobody
	holder   *keyMember // who has what is in flight (who got the last of it, if any order will do)
	again    int32      // what waits for redelivery: a heap, all of it before what is fresh
	first    int32      // what was never handed out, in order
	last     int32
	messages int64       // that wait
	queued   core.Offset // the place that it has in its owner's line; none: it has none
	lined    int64       // what its owner counts for it
}

// node is an entry that was read and is not acknowledged as a whole.
type node struct {
	Entry
	owner   *keyMember // nil: it waits in its slot
	left    int64      // messages not acknowledged; 0 while it waits: it goes when its turn comes
	attempt int32
	due     int64 // unix ms: when it is taken back from its owner; 0: never
	slot    int32 // in the list
	given   bool  // it was handed out before, so it may be acknowledged
	next    int32 // behind it in its slot; beside it in the heap
	child   int32 // of the heap
}

// slots are the nodes and the slots that have any, in lists with free places, so that a group at work allocates nothing.
// Place 0 of both means none.
type slots struct {
	nodes     []node
	list      []slot
	freeNodes []int32
	freeSlots []int32
	pages     [core.KeySlots / slotPage]*[slotPage]int32 // where each slot is in list
}

const slotPage = 256

func (t *slots) clear() {
	clear(t.nodes)
	clear(t.list)
	*t = slots{nodes: t.nodes[:0], list: t.list[:0], freeNodes: t.freeNodes[:0], freeSlots: t.freeSlots[:0]}
}

func (t *slots) node(e Entry, slot int32, left int64) (at int32) {
	if n := len(t.freeNodes); n > 0 {
		at, t.freeNodes = t.freeNodes[n-1], t.freeNodes[:n-1]
	} else {
		at = int32(max(1, len(t.nodes)))
		for len(t.nodes) <= int(at) {
			t.nodes = append(t.nodes, node{})
		}
	}
	t.nodes[at] = node{Entry: e, slot: slot, left: left}
	return at
}

func (t *slots) drop(at int32) {
	t.nodes[at] = node{}
	t.freeNodes = append(t.freeNodes, at)
}

// at returns a slot's place in the list, known or new. It may move the list.
func (t *slots) at(number uint32) int32 {
	page := t.pages[number/slotPage]
	if page == nil {
		page = new([slotPage]int32)
		t.pages[number/slotPage] = page
	}
	at := &page[number%slotPage]
	if *at == 0 {
		if n := len(t.freeSlots); n > 0 {
			*at, t.freeSlots = t.freeSlots[n-1], t.freeSlots[:n-1]
		} else {
			*at = int32(max(1, len(t.list)))
			for len(t.list) <= int(*at) {
				t.list = append(t.list, slot{})
			}
		}
		t.list[*at] = slot{slot: number, queued: none}
	}
	return *at
}

func (s *slot) idle() bool { return s.flying == 0 && s.again == 0 && s.first == 0 }

func (s *slot) head() int32 {
	if s.again != 0 {
		return s.again
	}
	return s.first
}

func (s *slot) addFresh(t *slots, at int32, left int64) {
	if s.first == 0 {
		s.first = at
	} else {
		t.nodes[s.last].next = at
	}
	s.last = at
	s.messages += left
}

// addAgain takes back what was handed out. Whatever is fresh comes after it, since a slot goes out in order.
func (s *slot) addAgain(t *slots, at int32, left int64) {
	s.again = t.meld(s.again, at)
	s.messages += left
}

// pop takes the first node out of what waits.
func (s *slot) pop(t *slots) (at int32) {
	at = s.head()
	n := &t.nodes[at]
	if s.again != 0 {
		s.again = t.pairs(n.child)
	} else {
		s.first = n.next
	}
	n.next, n.child = 0, 0
	return at
}

// land notes that an entry of the slot is not in flight any more.
func (t *slots) land(s *slot) {
	if s.flying--; s.flying == 0 {
		s.holder = nil
	}
}

// sweep drops what was acknowledged while it waited, once its turn has come.
func (t *slots) sweep(s *slot) {
	for at := s.head(); at != 0 && t.nodes[at].left == 0; at = s.head() {
		t.drop(s.pop(t))
	}
}

// meld joins two heaps of waiting nodes: the one with the higher offset becomes the other's child.
func (t *slots) meld(a, b int32) int32 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	case t.nodes[b].Base < t.nodes[a].Base:
		a, b = b, a
	}
	t.nodes[b].next = t.nodes[a].child
	t.nodes[a].child = b
	return a
}

// pairs melds the children of a root that is gone: neighbours first, then all from the right.
func (t *slots) pairs(child int32) (root int32) {
	var done int32
	for child != 0 {
		a, b := child, t.nodes[child].next
		child = 0
		if b != 0 {
			child = t.nodes[b].next
			t.nodes[b].next = 0
		}
		t.nodes[a].next = 0
		p := t.meld(a, b)
		t.nodes[p].next = done
		done = p
	}
	for done != 0 {
		next := t.nodes[done].next
		t.nodes[done].next = 0
		root = t.meld(root, done)
		done = next
	}
	return root
}

// settle brings a slot in line with what waits in it; one that nothing is known of any more goes. It has to follow whatever
// changes the slot.
func (t *slots) settle(at int32, free bool) {
	s := &t.list[at]
	head := s.head()
	if head == 0 || !free {
		if s.lined > 0 {
			s.owner.lined -= s.lined
			s.lined, s.queued = 0, none
		}
		if head == 0 && s.flying == 0 {
			t.pages[s.slot/slotPage][s.slot%slotPage] = 0
			t.freeSlots = append(t.freeSlots, at)
			*s = slot{queued: none}
		}
		return
	}
	s.owner.lined += s.messages - s.lined
	s.lined = s.messages
	if base := t.nodes[head].Base; base != s.queued {
		s.queued = base
		s.owner.line.push(queued{base, at})
	}
}

// none is no offset.
const none core.Offset = -1

// line is the slots that a member could be sent something of, by the offset of their first entry. A place in it that its
// slot does not know of any more is passed over.
type line struct {
	items []queued // in order: what came at the end
	head  int
	rest  heap[queued] // what did not
}

type queued struct {
	base core.Offset
	slot int32
}

func (q queued) less(r queued) bool { return q.base < r.base }

func (l *line) push(q queued) {
	n := len(l.items)
	if n > l.head && l.items[n-1].base > q.base {
		l.rest.push(q)
		return
	}
	if l.head > 0 && n == cap(l.items) { // make room from what is gone rather than grow
		l.items = l.items[:copy(l.items, l.items[l.head:])]
		l.head = 0
	}
	l.items = append(l.items, q)
}

// pop takes the place with the lowest offset; false when there is none.
func (l *line) pop() (q queued, ok bool) {
	inOrder := l.head < len(l.items)
	switch {
	case inOrder && (len(l.rest) == 0 || l.items[l.head].base < l.rest[0].base):
		q = l.items[l.head]
		if l.head++; l.head == len(l.items) {
			l.items, l.head = l.items[:0], 0
		}
		return q, true
	case len(l.rest) > 0:
		return l.rest.pop(), true
	}
	return q, false
}

func (l *line) clear() { *l = line{items: l.items[:0], rest: l.rest[:0]} }

// index finds known entries by offset. They join at the end; those that are settled leave in numbers, so that each is moved
// about once in its life.
type index struct {
	items []known
	head  int // the first that is not settled
	gone  int // settled ones behind head
}

type known struct {
	base  core.Offset
	count int32
	node  int32 // 0: settled
}

func (x *index) push(e Entry, node int32) {
	x.items = append(x.items, known{e.Base, e.Count, node})
}

// find returns the index of the first item at or behind head that ends after o.
func (x *index) find(o core.Offset) int {
	items := x.items[x.head:]
	ends := func(i int) bool { return items[i].base+core.Offset(items[i].count) > o }
	if len(items) == 0 || ends(0) {
		return x.head
	}
	return x.head + sort.Search(len(items), ends)
}

// at returns the node of the entry that holds o, 0 if there is none.
func (x *index) at(o core.Offset) int32 {
	if i := x.find(o); i < len(x.items) && x.items[i].base <= o {
		return x.items[i].node
	}
	return 0
}

func (x *index) drop(i int) {
	x.items[i].node = 0
	x.gone++
}

func (x *index) trim() {
	for x.head < len(x.items) && x.items[x.head].node == 0 {
		x.head++
		x.gone--
	}
	const few = 8
	if gone := x.head + x.gone; gone < few || gone < len(x.items)/2 {
		return
	}
	live := x.items[:0]
	for _, p := range x.items[x.head:] {
		if p.node != 0 {
			live = append(live, p)
		}
	}
	*x = index{items: live}
}

func (x *index) clear() { *x = index{items: x.items[:0]} }
