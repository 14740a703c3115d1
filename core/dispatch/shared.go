package dispatch

import (
	"math"
	"slices"

	"isthmus/core"
)

// turnMost is how many entries a member gets in one turn. Less if everybody with credit could not get as many, so that
// members with equal credit are never further apart than one turn, and than one entry whenever all was handed out.
// Spec: Pulsar dispatcherMaxRoundRobinBatchSize
const turnMost = 20

// mostWanted keeps sums of credit small, whatever a client grants.
const mostWanted = math.MaxInt32

// shared hands entries to all members in turn. It remembers each entry from its first delivery until it is acknowledged, as
// held by a member or waiting for redelivery.
// Spec: Pulsar PersistentDispatcherMultipleConsumers
type shared struct {
	feed
	place   Placement
	members []*member // by priority, then time of joining
	held    table
	replay  heap // bases of held entries that no member has; some may be acknowledged by now
	turn    *Turn
}

func newShared(p Placement, cur core.Cursor) *shared {
	s := &shared{feed: newFeed(cur), place: p, turn: p.Turn}
	if s.turn == nil {
		s.turn = new(Turn)
	}
	return s
}

func (s *shared) Join(c Consumer) error {
	m, err := newMember(s.members, c)
	if err != nil {
		return err
	}
	i := len(s.members)
	for i > 0 && s.members[i-1].Priority > c.Priority {
		i--
	}
	s.members = slices.Insert(s.members, i, m)
	return nil
}

// Leave puts what the member held up for redelivery, without raising the attempt. With the last one all attempts are
// forgotten and reading begins again at the mark; acknowledgements stay.
func (s *shared) Leave(id ConsumerID) {
	i := indexOf(s.members, id)
	if i < 0 {
		return
	}
	m := s.members[i]
	if s.turn.last == id { // the one after m is next, as before
		s.turn.last = s.members[(i+len(s.members)-1)%len(s.members)].ID
	}
	s.members = slices.Delete(s.members, i, i+1)
	if len(s.members) == 0 {
		s.forget()
		s.rewind()
		return
	}
	s.release(m, 0)
}

func (s *shared) Reset(cur core.Cursor) {
	s.forget()
	s.feed.reset(cur)
}

// forget drops what is known of entries in flight.
func (s *shared) forget() {
	s.held.clear()
	s.replay = s.replay[:0]
	for _, m := range s.members {
		m.pending = 0
	}
}

func (s *shared) Skip(r core.Range) {
	if s.skip(r) {
		s.settle(r)
	}
}

// Ack counts whoever it comes from: what is pending at another member, or waiting for redelivery, is settled there.
func (s *shared) Ack(_ ConsumerID, r core.Range) {
	if s.ack(r) {
		s.settle(r)
	}
}

// AckThrough does nothing: nobody knows what lies below next at other members.
// Spec: Pulsar: cumulative ack on Shared is ignored
func (s *shared) AckThrough(ConsumerID, core.Offset) {}

// settle brings held entries in line with the cursor after an ack of r.
func (s *shared) settle(r core.Range) {
	t := &s.held
	for i := t.find(r.From); i < len(t.items) && t.items[i].Base < r.To; i++ {
		h := &t.items[i]
		if h.left == 0 {
			continue
		}
		left := int64(0)
		if h.Base < r.From || h.end() > r.To {
			left = s.cur.Unacked(h.span())
		}
		if h.owner != nil {
			h.owner.pending -= h.left - left
		}
		t.settle(h, left)
	}
	t.trim()
}

// Nack raises the attempt of the entry that holds base, if id has it.
// Spec: Pulsar CommandRedeliverUnacknowledgedMessages: only what is pending at this consumer, redelivery_count + 1
func (s *shared) Nack(id ConsumerID, base core.Offset) {
	i := s.held.find(base)
	if i == len(s.held.items) {
		return
	}
	if h := &s.held.items[i]; h.Base <= base && h.owner != nil && h.owner.ID == id {
		s.put(h, 1)
	}
}

func (s *shared) NackAll(id ConsumerID) {
	if i := indexOf(s.members, id); i >= 0 {
		s.release(s.members[i], 1)
	}
}

// release puts all that m holds up for redelivery.
func (s *shared) release(m *member, raise int32) {
	for i := 0; i < len(s.held.items) && m.pending > 0; i++ {
		if h := &s.held.items[i]; h.owner == m {
			s.put(h, raise)
		}
	}
}

func (s *shared) put(h *held, raise int32) {
	h.owner.pending -= h.left
	h.owner = nil
	h.attempt += raise
	s.replay.push(h.Base)
}

func (s *shared) InFlight() int {
	n := int64(0)
	for _, m := range s.members {
		n += m.pending
	}
	return int(n)
}

// Want leaves room for what waits already: redelivery comes first.
func (s *shared) Want() int {
	credit, pending := int64(0), int64(0)
	for _, m := range s.members {
		pending += m.pending
		if s.ready(m) {
			credit = min(credit+min(m.Account.Permits, s.place.Limits.Consumer-m.pending), mostWanted)
		}
	}
	waiting := s.held.messages - pending
	room := s.place.Limits.Group - s.held.messages
	return int(max(0, min(credit-waiting, room)-s.queue.messages))
}

// ready tells whether m can take an entry now.
func (s *shared) ready(m *member) bool {
	return m.Account.Permits > 0 && m.pending < s.place.Limits.Consumer
}

// Ready goes round the members as long as something waits and somebody of the best priority with credit can take it.
func (s *shared) Ready() Ready {
	s.begin()
	for {
		level, able := s.level()
		waiting := s.waiting()
		if able == 0 || waiting == 0 {
			return s.end()
		}
		s.round(level, min(max(waiting/able, 1), turnMost))
	}
}

// level returns the members of the best priority where somebody is ready, and how many of them are.
// Spec: Pulsar priority_level: lower levels only when all of a higher level have no permits
func (s *shared) level() (level []*member, able int) {
	for lo := 0; lo < len(s.members); {
		hi := lo
		for hi < len(s.members) && s.members[hi].Priority == s.members[lo].Priority {
			if s.ready(s.members[hi]) {
				able++
			}
			hi++
		}
		if able > 0 {
			return s.members[lo:hi], able
		}
		lo = hi
	}
	return nil, 0
}

// waiting counts the entries that could be handed out. At the group's limit only redelivery goes on.
func (s *shared) waiting() int {
	if s.held.messages >= s.place.Limits.Group {
		return len(s.replay)
	}
	return len(s.replay) + s.queue.len()
}

// round gives each ready member of a level one turn, beginning after the one who had the last.
func (s *shared) round(level []*member, entries int) {
	first := s.first(level)
	for i := range level {
		m := level[(first+i)%len(level)]
		for n := 0; n < entries && s.ready(m) && s.waiting() > 0; {
			if s.give(m) {
				n++
				s.turn.last, s.turn.set = m.ID, true
			}
		}
	}
}

// first is the place in level after the member who was served last. Where that one is unknown, partitions begin at different
// members, lest the first in line gets the first message of each.
func (s *shared) first(level []*member) int {
	if s.turn.set {
		if i := indexOf(level, s.turn.last); i >= 0 {
			return i + 1
		}
	}
	return int(max(s.place.Partition, 0)) % len(level)
}

// give hands m the next entry: lowest redelivery first, then what was read. False: that one is acknowledged by now.
func (s *shared) give(m *member) bool {
	if len(s.replay) == 0 {
		return s.giveNew(m)
	}
	base := s.replay.pop()
	i := s.held.find(base)
	if i == len(s.held.items) || s.held.items[i].Base != base || s.held.items[i].left == 0 {
		return false
	}
	h := &s.held.items[i]
	h.owner = m
	m.pending += h.left
	s.hand(m, h.Entry, h.attempt, h.left)
	return true
}

func (s *shared) giveNew(m *member) bool {
	e := s.queue.pop()
	left := s.cur.Unacked(e.span())
	if left == 0 {
		return false
	}
	s.held.push(held{Entry: e, owner: m, left: left})
	m.pending += left
	s.hand(m, e, 0, left)
	return true
}
