package dispatch

import (
	"fmt"
	"slices"
	"sort"

	"isthmus/core"
)

// single serves one active member: the only one (exclusive) or the chosen one (failover). It remembers no deliveries: they
// are what lies unacknowledged between the mark and sent. Whenever another member becomes active it rewinds, so that the
// unacknowledged tail goes out again in its order.
// Spec: Pulsar PersistentDispatcherSingleActiveConsumer
type single struct {
	feed
	exclusive bool
	place     Placement
	members   []*member // by priority, then name, then time of joining
	active    *member   // nil: nobody is there
	sent      core.Offset
}

func newSingle(exclusive bool, p Placement, cur core.Cursor) *single {
	s := &single{feed: newFeed(cur), exclusive: exclusive, place: p}
	s.sent = s.read
	return s
}

// Spec: Pulsar ConsumerBusy: an exclusive subscription has one consumer
func (s *single) Join(c Consumer) error {
	m, err := newMember(c, s.indexOf(c.ID) >= 0)
	if err != nil {
		return err
	}
	if s.exclusive && len(s.members) > 0 {
		return fmt.Errorf("join %q beside the exclusive %q: %w", c.Name, s.members[0].Name, core.ErrBusy)
	}
	i := sort.Search(len(s.members), func(i int) bool { return before(m, s.members[i]) })
	s.members = slices.Insert(s.members, i, m)
	m.tell = true
	s.elect()
	return nil
}

func (s *single) Leave(id ConsumerID) {
	if i := s.indexOf(id); i >= 0 {
		s.members = slices.Delete(s.members, i, i+1)
		s.elect()
	}
}

func (s *single) indexOf(id ConsumerID) int {
	return slices.IndexFunc(s.members, func(m *member) bool { return m.ID == id })
}

// elect chooses again after each join and leave. There is no stickiness: a newcomer may take over from a healthy member.
// Spec: Pulsar AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer
func (s *single) elect() {
	chosen := choose(s.members, s.place)
	if chosen == s.active {
		return
	}
	s.active = chosen
	s.rewind()
	for _, m := range s.members {
		m.tell = true
	}
}

func (s *single) rewind() {
	s.feed.rewind()
	s.sent = s.read
}

func (s *single) Reset(cur core.Cursor) {
	s.feed.reset(cur)
	s.sent = s.read
}

func (s *single) Want() int {
	if s.active == nil || s.tooManyHoles() {
		return 0
	}
	return int(max(0, min(s.active.Account.Permits, lookAhead)-s.queue.messages))
}

// tooManyHoles stops reading beyond the last hole, never reading again of what lies between them.
func (s *single) tooManyHoles() bool {
	n := len(s.cur.Acked)
	return n >= s.place.Limits.Holes && s.Next() >= s.cur.Acked[n-1].To
}

func (s *single) Skip(r core.Range)                      { s.skip(r) }
func (s *single) Ack(_ ConsumerID, r core.Range)         { s.ack(r) }
func (s *single) AckThrough(_ ConsumerID, n core.Offset) { s.ack(core.Range{From: s.cur.Next, To: n}) }

// Nack rewinds: order is kept, so what came after base comes again as well.
// Spec: Pulsar CommandRedeliverUnacknowledgedMessages on Exclusive and Failover: by the active consumer only
func (s *single) Nack(id ConsumerID, base core.Offset) {
	if base < s.sent {
		s.NackAll(id)
	}
}

func (s *single) NackAll(id ConsumerID) {
	if s.active != nil && s.active.ID == id {
		s.rewind()
	}
}

func (s *single) Ready() Ready {
	s.begin()
	s.notify()
	for s.active != nil && s.active.Account.Permits > 0 && s.queue.len() > 0 {
		w := s.queue.pop()
		s.hand(s.active, w.Entry, 0, w.left) // Spec: Pulsar redelivery_count is 0 for Exclusive and Failover
		s.sent = w.end()
	}
	return s.end()
}

func (s *single) notify() {
	for _, m := range s.members {
		if m.tell && !s.exclusive {
			s.notices = append(s.notices, Notice{To: m.ID, Active: m == s.active})
		}
		m.tell = false
	}
}

func (s *single) InFlight() int { return int(s.cur.Unacked(core.Range{From: s.cur.Next, To: s.sent})) }
