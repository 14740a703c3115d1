package dispatch

import (
	"fmt"
	"slices"
	"sort"

	"isthmus/core"
)

// single serves one active member: the only one (exclusive) or the chosen one (failover). It remembers no deliveries: they
// are what lies unacknowledged between the mark and sent. Whenever another member becomes active it rewinds, so that the
// unacknowledged tail goes out again in its order. While the predecessor is connected its acks may be on their way, so the
// hand-over waits for them, for Grace at most.
// Spec: Pulsar PersistentDispatcherSingleActiveConsumer; activeConsumerFailoverDelayTimeMillis
type single struct {
	feed
	exclusive bool
	place     Placement
	members   []*member   // by priority, then name, then time of joining
	active    *member     // nil: nobody is there
	heir      *member     // takes over from active, which holds the tail; nil: nobody is about to
	sent      core.Offset // end of what was handed out since the last rewind
	until     int64       // when the heir takes over at the latest
	pause     int64       // when a delayed nack lets reading go on; 0: there is none
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

// Leave of the active member hands over at once: no acks of its will follow.
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
// Who is chosen again during its own hand-over goes on as if nothing had been.
// Spec: Pulsar AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer
func (s *single) elect() {
	chosen := choose(s.members, s.place)
	switch {
	case chosen == s.active:
		s.heir = nil
	case s.place.Grace > 0 && s.InFlight() > 0 && s.active != nil && s.indexOf(s.active.ID) >= 0:
		if s.heir == nil {
			s.until = s.now + s.place.Grace
		}
		s.heir = chosen
	default:
		s.handOver(chosen)
	}
}

// handOver makes m the active member: it starts with the unacknowledged tail, and everybody is told.
func (s *single) handOver(m *member) {
	s.active, s.heir, s.pause = m, nil, 0
	s.rewind()
	for _, m := range s.members {
		m.tell = true
	}
}

// Expire ends a hand-over that waited long enough, or has nothing to wait for any more.
func (s *single) Expire(now int64) {
	s.tick(now)
	if s.heir != nil && (s.now >= s.until || s.InFlight() == 0) {
		s.handOver(s.heir)
	}
	if s.pause <= s.now {
		s.pause = 0
	}
}

func (s *single) rewind() {
	s.feed.rewind()
	s.sent = s.read
}

func (s *single) Reset(cur core.Cursor) {
	s.feed.reset(cur)
	s.sent, s.pause = s.read, 0
}

// resting tells whether nothing is to be handed out, whatever credit there is.
func (s *single) resting() bool { return s.active == nil || s.heir != nil || s.pause > s.now }

func (s *single) Want() int {
	if s.resting() || s.tooManyHoles() {
		return 0
	}
	return int(max(0, min(s.active.Account.Permits, lookAhead)-s.queue.messages))
}

// tooManyHoles stops reading beyond the last hole, never reading again of what lies between them.
func (s *single) tooManyHoles() bool {
	return s.cur.Holes() >= s.place.Limits.Holes && s.Next() >= s.cur.End()
}

func (s *single) Skip(r core.Range)                      { s.skip(r) }
func (s *single) Ack(_ ConsumerID, r core.Range)         { s.ack(r) }
func (s *single) AckThrough(_ ConsumerID, n core.Offset) { s.ack(core.Range{From: s.cur.Next, To: n}) }

// Nack rewinds: order is kept, so what came after base comes again as well, and all of it waits until at.
// Spec: Pulsar CommandRedeliverUnacknowledgedMessages on Exclusive and Failover: by the active consumer only
func (s *single) Nack(id ConsumerID, base core.Offset, at int64) {
	if base >= s.sent || s.active == nil || s.active.ID != id {
		return
	}
	s.rewind()
	if at > s.now {
		s.pause = at
	}
}

func (s *single) Return(id ConsumerID, base core.Offset) {
	if base < s.sent && s.active != nil && s.active.ID == id {
		s.rewindTo(max(base, s.cur.Next))
		s.sent = s.read
	}
}

func (s *single) NackAll(id ConsumerID) {
	if s.active != nil && s.active.ID == id {
		s.rewind()
	}
}

// Hold does nothing: what the active member holds is not taken back while it is there.
func (s *single) Hold(ConsumerID, core.Offset, int64) {}

func (s *single) Ready() Ready {
	s.begin()
	s.notify()
	for !s.resting() && s.active.Account.Permits > 0 && s.queue.len() > 0 {
		w := s.queue.pop()
		s.hand(s.active, w.Entry, 0, w.left) // Spec: Pulsar redelivery_count is 0 for Exclusive and Failover
		s.sent = w.end()
	}
	r := s.end()
	if s.heir != nil {
		r.Wake = s.until
	} else {
		r.Wake = s.pause
	}
	return r
}

// notify tells each member once whether it is active; during a hand-over nobody, since that is about to change.
func (s *single) notify() {
	if s.heir != nil {
		return
	}
	for _, m := range s.members {
		if m.tell && !s.exclusive {
			s.notices = append(s.notices, Notice{To: m.ID, Active: m == s.active})
		}
		m.tell = false
	}
}

func (s *single) InFlight() int { return int(s.cur.Unacked(core.Range{From: s.cur.Next, To: s.sent})) }
