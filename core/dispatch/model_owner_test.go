package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"unicode/utf16"

	"isthmus/core"
)

// Who receives, as the published rules say it and without any code of the States.

// elect chooses the active member of each partition, and makes it wait while the one before may still acknowledge: that one
// is connected and has something, and the grace is not over. Otherwise it begins at once.
func (s *sim) elect() {
	if s.many() {
		return
	}
	for _, p := range s.parts {
		chosen := s.line(p)
		switch {
		case chosen == p.active:
			p.grace = false
		case s.grace > 0 && s.here(p.active) && len(p.holder) > 0:
			if !p.grace {
				p.until = s.now + s.grace
			}
			p.heir, p.grace = chosen, true
		default:
			p.takeOver(chosen)
		}
	}
}

// takeOver makes id the active member; it gets the tail from the first unacknowledged message on.
func (p *simPart) takeOver(id ConsumerID) {
	p.active, p.grace, p.pause = id, false, 0
	p.forget(p.mark())
}

// line chooses among those of the best priority: by partition in order of their names, or by the ring of an unpartitioned topic.
// Spec: protocols/pulsar.md 3.2
func (s *sim) line(p *simPart) ConsumerID {
	line := slices.Clone(s.members)
	slices.SortStableFunc(line, func(a, b Consumer) int { return javaCompare(a, b) })
	line = slices.DeleteFunc(line, func(c Consumer) bool { return c.Priority != line[0].Priority })
	switch {
	case len(line) == 0:
		return 0
	case p.Partitioned:
		return line[int(p.Partition)%len(line)].ID
	}
	ring := map[uint32]ConsumerID{}
	for _, c := range line {
		for j := range 100 {
			ring[core.Murmur3_32(fmt.Append(nil, c.Name, j))&0x7fffffff] = c.ID
		}
	}
	return ceiling(ring, core.Murmur3_32([]byte(p.Topic))&0x7fffffff)
}

// S1.22 The ring of an unpartitioned topic has 100 points a name and the published hash: over many topics each of them counts.
func TestS1_22_RingIsThePublishedOne(t *testing.T) {
	names := []string{"a", "b", "c", "é", "😀"}
	for i := range 1500 {
		p := &simPart{Placement: Placement{Topic: fmt.Sprint("persistent://t/n/x", i)}}
		st, err := New(core.Failover, p.Placement, core.Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		s := &sim{}
		for k, name := range names[:2+i%4] {
			c := Consumer{ID: ConsumerID(k + 1), Name: name, Account: &Account{}}
			if err := st.Join(c); err != nil {
				t.Fatal(err)
			}
			s.members = append(s.members, c)
		}
		for _, n := range st.Ready().Notices {
			if want := s.line(p); n.Active != (n.To == want) {
				t.Fatalf("%s: %+v, want %d", p.Topic, n, want)
			}
		}
	}
}

// ceiling is who has the first point at or after at, around the end if need be; 0: nobody has any.
func ceiling(ring map[uint32]ConsumerID, at uint32) ConsumerID {
	first, next, beyond := ConsumerID(0), ConsumerID(0), false
	least, nearest := uint32(1<<32-1), uint32(1<<32-1)
	for h, id := range ring {
		if h <= least {
			least, first = h, id
		}
		if h >= at && h <= nearest {
			nearest, next, beyond = h, id, true
		}
	}
	if beyond {
		return next
	}
	return first
}

func javaCompare(a, b Consumer) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), slices.Compare(utf16.Encode([]rune(a.Name)), utf16.Encode([]rune(b.Name))))
}

// simSplit says whose a slot is.
// Spec: protocols/pulsar.md 3.4
type simSplit struct {
	split   Split
	members []simOwner            // in the order of joining; halves: in the order of their ranges
	ring    map[uint32]ConsumerID // points
	known   map[uint32]ConsumerID // slots that somebody asked for since the last change
}

type simOwner struct {
	Consumer
	number int    // among members of one name
	end    uint32 // halves: of its range, included
}

func newSimSplit(split Split) simSplit {
	return simSplit{split: split, ring: map[uint32]ConsumerID{}, known: map[uint32]ConsumerID{}}
}

func (s *simSplit) join(c Consumer) {
	defer s.change()
	m := simOwner{Consumer: c, end: core.KeySlots}
	for slices.ContainsFunc(s.members, func(x simOwner) bool { return x.Name == c.Name && x.number == m.number }) {
		m.number++
	}
	at := len(s.members)
	if s.split == Halves && at > 0 { // the lower half of the largest range
		size := func(i int) uint32 {
			if i == 0 {
				return s.members[0].end
			}
			return s.members[i].end - s.members[i-1].end
		}
		at = 0
		for i := range s.members {
			if size(i) > size(at) {
				at = i
			}
		}
		m.end = s.members[at].end - size(at)/2
	}
	s.members = slices.Insert(s.members, at, m)
}

func (s *simSplit) leave(id ConsumerID) {
	defer s.change()
	i := slices.IndexFunc(s.members, func(m simOwner) bool { return m.ID == id })
	s.members = slices.Delete(s.members, i, i+1)
	if n := len(s.members); n > 0 && s.split == Halves { // whose upper neighbour has it now, or the last one
		s.members[n-1].end = core.KeySlots
	}
}

func (s *simSplit) owner(slot uint32) ConsumerID {
	id, asked := s.known[slot]
	if !asked {
		id = s.find(slot)
		s.known[slot] = id
	}
	return id
}

func (s *simSplit) find(slot uint32) ConsumerID {
	for _, m := range s.members {
		if s.split == Halves && slot <= m.end || s.split == Declared && slot >= m.Slots[0].From && slot <= m.Slots[0].To {
			return m.ID
		}
	}
	return ceiling(s.ring, slot)
}

// change draws the ring: of colliding points the one of who joined first counts.
func (s *simSplit) change() {
	clear(s.known)
	clear(s.ring)
	for _, m := range s.members {
		for i := range 100 {
			at := core.KeySlot(fmt.Append(nil, m.Name, "\x00", m.number, "\x00", i))
			if _, taken := s.ring[at]; !taken && s.split == Ring {
				s.ring[at] = m.ID
			}
		}
	}
}
