package dispatch

import "isthmus/core"

// shared hands entries to all members in turn. It remembers each entry from its first delivery until it is acknowledged, as
// held by a member or waiting for redelivery.
// Spec: Pulsar PersistentDispatcherMultipleConsumers
type shared struct {
	feed
	place   Placement
	limits  Limits
	members ranks
	held    table
	replay  replays // bases of held entries that wait for redelivery; some may be acknowledged by now
}

func newShared(p Placement, cur core.Cursor) *shared {
	return &shared{feed: newFeed(cur), place: p, limits: p.Limits, members: newRanks(p)}
}

func (s *shared) Join(c Consumer) error {
	m, err := newMember(c, s.members.byID[c.ID] != nil)
	if err != nil {
		return err
	}
	s.members.add(m)
	return nil
}

// Leave puts what the member held up for redelivery, without raising the attempt. With the last one all attempts are
// forgotten and reading begins again at the mark; acknowledgements stay.
func (s *shared) Leave(id ConsumerID) {
	m := s.members.byID[id]
	if m == nil {
		return
	}
	s.members.remove(m)
	if len(s.members.byID) > 0 {
		s.release(m, 0)
		return
	}
	s.forget()
	s.rewind()
}

func (s *shared) Reset(cur core.Cursor) {
	s.forget()
	s.feed.reset(cur)
}

// forget drops what is known of entries in flight.
func (s *shared) forget() {
	s.held.clear()
	s.replay = s.replay[:0]
	for _, m := range s.members.byID {
		m.pending = 0
	}
}

func (s *shared) Skip(r core.Range) {
	if s.skip(r) {
		s.settle(r)
	}
}

// Ack counts whoever it comes from: what is pending at another member, or waits for redelivery, is settled there.
func (s *shared) Ack(_ ConsumerID, r core.Range) {
	if s.ack(r) {
		s.settle(r)
	}
}

// AckThrough does nothing: who says it does not know what lies below next at other members.
// Spec: Pulsar: cumulative ack on Shared is ignored
func (s *shared) AckThrough(ConsumerID, core.Offset) {}

// settle brings held entries in line with the cursor after an ack of r.
func (s *shared) settle(r core.Range) {
	t := &s.held
	for i := t.find(r.From); i < len(t.items) && t.items[i].Base < r.To; i++ {
		h, left := &t.items[i], int64(0)
		if h.left == 0 {
			continue
		}
		if h.Base < r.From || h.end() > r.To {
			left = s.cur.Unacked(h.span())
		}
		t.settle(h, left)
	}
	t.trim()
}

// Nack raises the attempt of the entry that holds base, if id has it.
// Spec: Pulsar CommandRedeliverUnacknowledgedMessages: only what is pending at this consumer, redelivery_count + 1
func (s *shared) Nack(id ConsumerID, base core.Offset, at int64) {
	if h := s.heldBy(id, base); h != nil {
		if at <= s.now {
			at = s.place.backoff(s.now, h.attempt)
		}
		s.put(h, 1, at)
	}
}

func (s *shared) Return(id ConsumerID, base core.Offset) {
	if h := s.heldBy(id, base); h != nil {
		s.put(h, 0, 0)
	}
}

func (s *shared) Hold(id ConsumerID, base core.Offset, until int64) {
	if h := s.heldBy(id, base); h != nil {
		s.held.alarm(h, until)
	}
}

// heldBy returns the entry that holds base, nil if it is not id that has it.
func (s *shared) heldBy(id ConsumerID, base core.Offset) *held {
	if h := s.held.at(base); h != nil && h.owner != nil && h.owner.ID == id {
		return h
	}
	return nil
}

// Expire takes back what was held for too long, which raises the attempt, and lets what was delayed wait for redelivery.
// Spec: Pulsar ackTimeout; RocketMQ POP invisible time
func (s *shared) Expire(now int64) {
	s.tick(now)
	for h := s.held.rings(s.now); h != nil; h = s.held.rings(s.now) {
		if h.owner != nil {
			s.put(h, 1, 0)
			continue
		}
		s.held.ripen(h)
		s.replay.push(place(h.Base))
	}
}

func (s *shared) NackAll(id ConsumerID) {
	if m := s.members.byID[id]; m != nil {
		s.release(m, 1)
	}
}

// release puts all that m holds up for redelivery.
func (s *shared) release(m *member, raise int32) {
	for i := s.held.head; i < len(s.held.items) && m.pending > 0; i++ {
		if h := &s.held.items[i]; h.owner == m {
			at := int64(0)
			if raise > 0 {
				at = s.place.backoff(s.now, h.attempt)
			}
			s.put(h, raise, at)
		}
	}
}

// put takes h from its owner, for redelivery now (0) or from at on.
func (s *shared) put(h *held, raise int32, at int64) {
	h.attempt += raise
	s.held.take(h, at)
	if at == 0 {
		s.replay.push(place(h.Base))
	}
}

func (s *shared) InFlight() int { return int(s.held.messages - s.held.waiting - s.held.delayed) }

// Want leaves room for what waits already: redelivery comes first.
func (s *shared) Want() int {
	need := lookAhead + s.held.waiting
	credit := min(s.credit(need), need)
	room := s.limits.Group - s.held.messages
	return int(max(0, min(credit-s.held.waiting, room)-s.queue.messages))
}

// credit adds up what members can take, until it is enough.
func (s *shared) credit(enough int64) (sum int64) {
	for _, l := range s.members.levels {
		for _, m := range l.members {
			if s.ready(m) {
				sum += min(m.Account.Permits, s.limits.Consumer-m.pending)
			}
			if sum >= enough {
				return sum
			}
		}
	}
	return sum
}

// ready tells whether m can take an entry now.
func (s *shared) ready(m *member) bool {
	return m.Account.Permits > 0 && m.pending < s.limits.Consumer
}

// waiting counts the entries that could be handed out. At the group's limit only redelivery goes on.
func (s *shared) waiting() int {
	if s.held.messages >= s.limits.Group {
		return len(s.replay)
	}
	return len(s.replay) + s.queue.len()
}

// Ready gives turns as long as something waits and somebody can take it.
func (s *shared) Ready() Ready {
	s.begin()
	for waiting := s.waiting(); waiting > 0; waiting = s.waiting() {
		level, able := s.members.best(s.ready, waiting)
		if able == 0 {
			break
		}
		s.round(level, min(max(waiting/able, 1), turnMost))
	}
	r := s.end()
	r.Wake = soonest(s.held.alarms)
	return r
}

// round gives each ready member of a level one turn of so many entries, beginning after the one who had the last.
func (s *shared) round(l *level, entries int) {
	for i, first := 0, s.members.first(l); i < len(l.members) && s.waiting() > 0; i++ {
		m := l.members[(first+i)%len(l.members)]
		for n := 0; n < entries && s.ready(m) && s.waiting() > 0; {
			if s.give(m) {
				n++
			}
		}
	}
}

// give hands m the next entry: the lowest that waits for redelivery, else what was read. False: it is acknowledged by now.
func (s *shared) give(m *member) bool {
	if len(s.replay) > 0 {
		h := s.held.at(core.Offset(s.replay.pop()))
		if h == nil {
			return false
		}
		s.held.give(h, m)
		s.limit(h, m)
		s.hand(m, h.Entry, h.attempt, h.left)
	} else {
		w := s.queue.pop()
		s.limit(s.held.push(held{Entry: w.Entry, owner: m, left: w.left}), m)
		m.pending += w.left
		s.hand(m, w.Entry, 0, w.left)
	}
	s.members.served(m)
	return true
}

// limit sets until when m may hold h.
func (s *shared) limit(h *held, m *member) {
	if m.Timeout > 0 {
		s.held.alarm(h, s.now+m.Timeout)
	}
}
