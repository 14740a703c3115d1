package mqtt

import (
	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// subscription is one filter of a session. It is replaced, never changed, but for its members, which the reader owns.
type subscription struct {
	session     *session
	group       string // of $share/group/filter
	filter      string
	qos         byte
	noLocal     bool
	asPublished bool
	id          uint32
	stamp       uint64 // what was committed up to here is not for it
	members     []*member
}

// SUBSCRIBE, all versions.
// Declined: QoS 2 is granted as 1; there are no retained messages to send.
// Deviates: $share from a version 3 client is handled as configured (v311_shared).
// Spec: MQTT5 3.8, 3.9 [MQTT-3.2.2-10] [MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-3.8.4-6]; MQTT3 3.8, 3.9
func (s *session) subscribe(body []byte) error {
	var p wire.Subscribe
	if err := p.Parse(body, s.version, s.limits); err != nil {
		return err
	}
	ack := wire.Suback{ID: p.ID, Codes: make([]wire.Reason, len(p.Filters))}
	for i := range p.Filters {
		code, err := s.subscribeOne(&p.Filters[i], p.Properties.SubscriptionIDs)
		if err != nil {
			return err
		}
		ack.Codes[i] = code
	}
	if err := s.answer(wire.SUBACK, &ack); err != nil {
		return err
	}
	s.open()
	return nil
}

// answer appends a SUBACK or UNSUBACK. A client that cannot take it cannot be answered otherwise.
// Spec: MQTT5 3.1.2.11.4 [MQTT-3.1.2-24]
func (s *session) answer(t wire.Type, ack *wire.Suback) error {
	tooLarge := false
	_, err := s.out.Append(func(dst []byte) []byte {
		before := len(dst)
		dst = ack.Append(dst, t, s.version)
		if tooLarge = s.maxPacket > 0 && len(dst)-before > s.maxPacket; tooLarge {
			return dst[:before]
		}
		return dst
	})
	if tooLarge {
		return refuse(wire.PacketTooLarge, "the answer exceeds the client's maximum packet size")
	}
	return err
}

// subscribeOne returns the code of one filter; an error ends the connection.
func (s *session) subscribeOne(f *wire.Filter, ids []uint32) (wire.Reason, error) {
	full := string(f.Topic)
	group, filter, ok := splitShare(full)
	if !ok || !wire.ValidFilter(filter, s.limits) {
		return s.failure(wire.TopicFilterInvalid), nil
	}
	if group != "" {
		// Spec: MQTT5 3.8.3.1 [MQTT-3.8.3-4]
		if f.NoLocal {
			return 0, refuse(wire.ProtocolError, "no local on a shared subscription")
		}
		if s.version < wire.V5 {
			switch s.srv.cfg.V311Shared {
			case V311SharedDisconnect:
				return 0, refuse(wire.SharedNotSupported, "$share from a version 3 client")
			case V311SharedRefuse:
				return s.failure(wire.SharedNotSupported), nil
			}
		}
	}
	old := s.subs[full]
	if old == nil && len(s.subs) >= s.srv.cfg.MaxFilters {
		return s.failure(wire.QuotaExceeded), nil
	}
	sub := &subscription{
		session: s, group: group, filter: filter, qos: min(f.QoS, 1),
		noLocal: f.NoLocal, asPublished: f.RetainAsPublished, stamp: s.srv.eng.Stamp(),
	}
	if len(ids) > 0 {
		sub.id = ids[0]
	}
	if err := s.install(sub, old); err != nil {
		s.srv.log.Debug("subscription refused", "client_id", s.id, "filter", full, "err", err)
		return s.failure(codesOf(err).suback), nil
	}
	if s.subs == nil {
		s.subs = map[string]*subscription{}
	}
	s.subs[full] = sub
	return wire.Reason(sub.qos), nil
}

// install makes the subscription take effect, in place of the former one of the same filter if there was one, so
// that no message falls between the two.
// Spec: MQTT5 3.8.4 [MQTT-3.8.4-3]; MQTT3 3.8.4 [MQTT-3.8.4-3]
func (s *session) install(sub, old *subscription) error {
	if err := s.mayRead(sub); err != nil {
		return err
	}
	switch {
	case sub.group == "":
		if old != nil {
			sub.stamp = old.stamp
		}
		s.srv.tree.add(sub)
	case old != nil:
		sub.members, old.members = old.members, nil
		for _, m := range sub.members {
			m.sub.Store(sub)
		}
	default:
		return s.join(sub)
	}
	return nil
}

// mayRead asks for every topic that the filter can reach: one that is forbidden refuses the filter.
func (s *session) mayRead(sub *subscription) error {
	for _, c := range s.srv.routes().Covers(sub.filter) {
		if err := s.srv.ac.Allow(s.principal, auth.Consume, c.Topic.String()); err != nil {
			return err
		}
	}
	return nil
}

// failure is a SUBACK code, which in version 3 there is only one of.
func (s *session) failure(code wire.Reason) wire.Reason {
	if s.version < wire.V5 {
		return wire.UnspecifiedError
	}
	return code
}

// UNSUBSCRIBE, all versions.
// Spec: MQTT5 3.10.4 [MQTT-3.10.4-1] [MQTT-3.10.4-5]; MQTT5 3.11; MQTT3 3.10, 3.11
func (s *session) unsubscribe(body []byte) error {
	var p wire.Unsubscribe
	if err := p.Parse(body, s.version, s.limits); err != nil {
		return err
	}
	ack := wire.Suback{ID: p.ID, Codes: make([]wire.Reason, len(p.Filters))}
	for i, f := range p.Filters {
		sub := s.subs[string(f)]
		if sub == nil {
			ack.Codes[i] = wire.NoSubscriptionExisted
			continue
		}
		s.remove(sub)
		delete(s.subs, string(f))
	}
	return s.answer(wire.UNSUBACK, &ack)
}

func (s *session) remove(sub *subscription) {
	if sub.group == "" {
		s.srv.tree.remove(sub)
		return
	}
	s.leave(sub)
}

// leaveAll ends all subscriptions.
func (s *session) leaveAll() {
	for _, sub := range s.subs {
		s.remove(sub)
	}
	s.subs = nil
}

var errNoMapping = core.ErrTopicNotFound // no mapping can match the filter
