package mqtt

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
	"isthmus/routing"
)

// member is a session's seat in one core group: what a $share subscription is made of. Runner goroutines deliver to
// it; what they touch is immutable, atomic, or under the session's output.
type member struct {
	session  *session
	sub      atomic.Pointer[subscription]
	topic    core.TopicName
	levels   []string // the filter
	consumer *engine.Consumer
	opened   bool // owned by the session's reader
}

// lease is one message of a group that a client holds. The zero lease is a message of a plain subscription.
type lease struct {
	member    *member
	partition int32
	offset    core.Offset
}

// finish acknowledges the message for the group and lets the next one come.
func (l lease) finish() {
	if l.member != nil {
		l.member.consumer.Ack(l.partition, core.Range{From: l.offset, To: l.offset + 1})
		l.member.consumer.Permit(1)
	}
}

// join makes the session a consumer of the core groups that stand for $share/group/filter: the topic's group of that
// name where the filter covers all of the topic's mappings, else one that only such subscriptions share.
// Spec: MQTT5 4.8.2
func (s *session) join(sub *subscription) error {
	covers := s.srv.routes().Covers(sub.filter)
	if len(covers) == 0 {
		return errNoMapping
	}
	for _, c := range covers {
		if err := s.joinTopic(sub, c); err != nil {
			s.leave(sub)
			return fmt.Errorf("join %s of %s: %w", sub.group, c.Topic, err)
		}
	}
	return nil
}

func (s *session) joinTopic(sub *subscription, c routing.Coverage) error {
	m := &member{session: s, topic: c.Topic, levels: strings.Split(sub.filter, "/")}
	m.sub.Store(sub)
	seat := engine.Member{Protocol: protocol, Name: s.id, Mode: core.Shared, Sink: m}
	if s.srv.cfg.ByKey[GroupName{c.Topic, sub.group}] {
		seat.Mode = core.KeyShared // as Pulsar clients ask for by default, so that both can be in one group
	}
	name := sub.group
	if !c.Whole {
		name += "@" + sub.filter
		seat.Filter = m.wants
	}
	if err := s.srv.ac.Allow(s.principal, auth.Consume, c.Topic.String()+"#"+name); err != nil {
		return err
	}
	topic, err := s.srv.eng.EnsureTopic(c.Topic, s.srv.eng.Defaults().Partitions)
	if err != nil {
		return err
	}
	if m.consumer, err = s.seat(topic, name, !c.Whole, seat); err != nil {
		return err
	}
	sub.members = append(sub.members, m)
	return nil
}

// open lets messages come to the seats that got none yet: after the SUBACK, which clients like to see first.
func (s *session) open() {
	for _, sub := range s.subs {
		for _, m := range sub.members {
			if !m.opened {
				m.opened = true
				m.consumer.Permit(min(s.outbox.window, memberCredit))
			}
		}
	}
}

// seat joins a group, which begins with its first member. One of a filter's own ends with its last member, as a shared
// subscription does when no session holds it any more; it may do so between the two steps here, then it begins anew.
func (s *session) seat(topic *engine.Topic, name string, own bool, m engine.Member) (*engine.Consumer, error) {
	for tries := 0; ; tries++ {
		group, err := topic.BeginGroup(name, engine.Start{At: engine.Latest, NonDurable: own})
		if err != nil {
			return nil, err
		}
		c, err := group.Join(s.ctx, m)
		if !errors.Is(err, core.ErrGroupNotFound) || tries == 9 {
			return c, err
		}
	}
}

// memberCredit bounds what one member holds, in flight and queued. The client's receive maximum bounds what of it
// is in flight.
const memberCredit = 128

// leave gives up the seats; what the client has not acknowledged goes to others.
func (s *session) leave(sub *subscription) {
	for _, m := range sub.members {
		m.consumer.Leave()
		s.out.With(func() { s.outbox.drop(m) })
	}
	sub.members = nil
}

// wants is the filter of a group of its own.
func (m *member) wants(e *core.Entry) bool {
	if a := core.NeutralAddress(e); len(a) > 0 && matches(m.levels, text(a)) {
		return true
	}
	msgs, err := m.session.srv.eng.Messages(e, nil)
	if err != nil {
		return false
	}
	for i := range msgs {
		if _, _, ok := m.address(&msgs[i], e.Flags, m.topic, nil); ok {
			return true
		}
	}
	return false
}

// address is the MQTT topic and QoS under which the member gets a message: the first one that its filter matches.
func (m *member) address(msg *core.Message, flags core.Flags, topic core.TopicName, scratch []routing.Address) (string, byte, bool) {
	if msg.Address != "" && matches(m.levels, msg.Address) {
		return msg.Address, publishedQoS(flags), true
	}
	for _, a := range m.session.srv.routes().Down(topic, msg, scratch) {
		if matches(m.levels, a.Topic) {
			return a.Topic, a.QoS, true
		}
	}
	return "", 0, false
}

// handover is the memory of one Deliver.
type handover struct {
	now   int64
	msgs  []core.Message
	addrs []routing.Address
	fwd   forwarder
	out   outgoing
	ids   [1]uint32
}

var handovers = sync.Pool{New: func() any { return new(handover) }}

// Deliver implements engine.Sink.
func (m *member) Deliver(ds []engine.Delivery) {
	h := handovers.Get().(*handover)
	defer handovers.Put(h)
	h.now = time.Now().UnixMilli()
	for i := range ds {
		m.entry(h, &ds[i])
	}
	clear(h.msgs)
	h.out = outgoing{}
	_ = m.session.flush() // it has stopped the session
}

func (m *member) entry(h *handover, d *engine.Delivery) {
	s, e := m.session, &d.Entry
	var err error
	if h.msgs, err = s.srv.eng.Messages(e, h.msgs[:0]); err != nil {
		s.srv.log.Warn("entry not readable for a group", "topic", d.Partition.Topic().Name().String(), "offset", e.Base, "err", err)
		s.srv.metrics.noTopic.Add(float64(e.Count))
		for off := e.Base; off < e.End(); off++ {
			if !contains(d.Acked, off) {
				m.skip(d, off)
			}
		}
		return
	}
	for i := range h.msgs {
		if off := e.Base + int64(i); !contains(d.Acked, off) {
			m.message(h, d, &h.msgs[i], off)
		}
	}
}

func (m *member) message(h *handover, d *engine.Delivery, msg *core.Message, off core.Offset) {
	s, sub := m.session, m.sub.Load()
	topic, qos, ok := m.address(msg, d.Entry.Flags, d.Partition.Topic().Name(), h.addrs[:0])
	if !ok { // a message of another protocol that no mapping can name
		s.srv.metrics.noTopic.Inc()
		m.skip(d, off)
		return
	}
	h.fwd.message(&h.out.Message, topic, msg)
	h.out.expiry, h.out.kept = d.Entry.Expiry, nil
	if !h.out.refresh(h.now) {
		s.srv.metrics.expired.Inc()
		m.skip(d, off)
		return
	}
	l := lease{m, d.Partition.Index(), off}
	// Spec: MQTT5 4.8.2 [MQTT-4.8.2-3]
	f := wire.Forward{QoS: min(qos, sub.qos), Retain: sub.asPublished && d.Entry.Flags&core.FlagRetain != 0}
	if sub.id > 0 {
		h.ids[0] = sub.id
		f.SubscriptionIDs = h.ids[:]
	}
	var result outcome
	congested := s.congested()
	n, err := s.out.Append(func(dst []byte) []byte {
		dst, result = s.outbox.push(dst, s, &h.out, f, l, congested)
		return dst
	})
	switch {
	case err != nil:
		s.stop(err) // unacknowledged: it goes to another member
	case result == tooLarge:
		s.srv.metrics.tooLarge.Inc()
		l.finish()
	case result == sent && f.QoS == 0:
		l.finish()
	}
	if n > flushAt {
		_ = s.flush() // it has stopped the session
	}
}

func (m *member) skip(d *engine.Delivery, off core.Offset) {
	lease{m, d.Partition.Index(), off}.finish()
}

func contains(rs []core.Range, off core.Offset) bool {
	for _, r := range rs {
		if off >= r.From && off < r.To {
			return true
		}
	}
	return false
}

// Active implements engine.Sink; no mode of $share has an active member.
func (m *member) Active(int32, bool) {}

// Detached implements engine.Sink: the group ended under the client, who would wait for ever.
func (m *member) Detached(err error) { m.session.stop(fmt.Errorf("group ended: %w", err)) }
