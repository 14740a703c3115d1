package mqtt

import (
	"context"
	"fmt"
	"time"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/routing"
)

// follow feeds the plain subscriptions with what is committed, until ctx ends.
func (s *Server) follow(ctx context.Context, place *engine.Follower) {
	f := &fanout{srv: s}
	place.Run(ctx, func() bool { return s.tree.count.Load() > 0 }, f.entries)
}

// fanout gives each committed message to the clients whose filters match. One goroutine owns it.
type fanout struct {
	srv     *Server
	now     int64
	stamp   uint64
	round   uint64
	targets []target
	touched []*session // have something to flush
	msgs    []core.Message
	addrs   []routing.Address
	fwd     forwarder
	out     outgoing
}

// target is one client's copy: overlapping subscriptions of it are merged.
// Spec: MQTT5 3.3.4 [MQTT-3.3.4-2] [MQTT-3.3.4-3] [MQTT-3.3.4-4]; MQTT3 3.3.5 [MQTT-3.3.5-1]
type target struct {
	session     *session
	qos         byte
	asPublished bool
	ids         []uint32
}

// fanMark is the fan-out's note on a session: in which round it became which target, and whether it is to be flushed.
type fanMark struct {
	round   uint64
	at      int
	touched bool
}

// flushAt is how many bytes of one batch wait for its end.
const flushAt = 64 << 10

func (f *fanout) entries(p *engine.Partition, stamp uint64, es []core.Entry) {
	f.now, f.stamp = time.Now().UnixMilli(), stamp
	for i := range es {
		f.entry(p.Topic().Name(), &es[i])
	}
	for _, s := range f.touched {
		s.fan.touched = false
		_ = s.flush() // it has stopped the session
	}
	clear(f.touched)
	f.touched = f.touched[:0]
}

func (f *fanout) entry(topic core.TopicName, e *core.Entry) {
	if e.Expiry > 0 && e.Expiry <= f.now {
		return
	}
	var err error
	if f.msgs, err = f.srv.eng.Messages(e, f.msgs[:0]); err != nil {
		f.srv.log.Debug("entry not readable for subscribers", "topic", topic.String(), "offset", e.Base, "err", err)
		return
	}
	for i := range f.msgs {
		m := &f.msgs[i]
		if m.Address != "" {
			f.message(m.Address, publishedQoS(e.Flags), m, e)
		}
		f.addrs = f.srv.routes().Down(topic, m, f.addrs[:0])
		for _, a := range f.addrs {
			f.message(a.Topic, a.QoS, m, e)
		}
	}
	clear(f.msgs)
}

func publishedQoS(flags core.Flags) byte {
	if flags&(core.FlagQoS1|core.FlagQoS2) != 0 {
		return 1
	}
	return 0
}

// message delivers under one MQTT topic.
func (f *fanout) message(topic string, qos byte, m *core.Message, e *core.Entry) {
	f.round++
	f.targets = f.targets[:0]
	f.srv.tree.match(topic, func(sub *subscription) {
		// Spec: MQTT5 3.8.3.1 [MQTT-3.8.3-3]
		own := sub.noLocal && m.Address != "" && m.Producer == sub.session.id
		if f.stamp > sub.stamp && !own {
			f.add(sub)
		}
	})
	if len(f.targets) == 0 {
		return
	}
	f.fwd.message(&f.out.Message, topic, m)
	f.out.expiry, f.out.kept = e.Expiry, nil
	f.out.refresh(f.now)
	for i := range f.targets {
		t := &f.targets[i]
		// Spec: MQTT5 3.3.1.3 [MQTT-3.3.1-12] [MQTT-3.3.1-13]; MQTT3 3.3.1.3 [MQTT-3.3.1-9]
		retain := t.asPublished && e.Flags&core.FlagRetain != 0
		f.deliver(t.session, wire.Forward{QoS: min(t.qos, qos), Retain: retain, SubscriptionIDs: t.ids})
	}
}

func (f *fanout) add(sub *subscription) {
	s := sub.session
	if s.fan.round != f.round {
		s.fan.round, s.fan.at = f.round, len(f.targets)
		if len(f.targets) < cap(f.targets) {
			f.targets = f.targets[:len(f.targets)+1]
			t := &f.targets[len(f.targets)-1]
			*t = target{session: s, ids: t.ids[:0]}
		} else {
			f.targets = append(f.targets, target{session: s})
		}
	}
	t := &f.targets[s.fan.at]
	t.qos = max(t.qos, sub.qos)
	t.asPublished = t.asPublished || sub.asPublished
	if sub.id > 0 {
		t.ids = append(t.ids, sub.id)
	}
}

func (f *fanout) deliver(s *session, fwd wire.Forward) {
	var result outcome
	congested := s.congested()
	n, err := s.out.Append(func(dst []byte) []byte {
		dst, result = s.outbox.push(dst, s, &f.out, fwd, lease{}, congested)
		return dst
	})
	if err != nil {
		s.stop(err)
		return
	}
	f.srv.count(result)
	switch {
	case result == overflow:
		s.stop(fmt.Errorf("%d messages wait: %w", s.srv.cfg.MaxQueued, errSlow))
	case n > flushAt:
		_ = s.flush() // it has stopped the session
	case result <= queued && !s.fan.touched:
		s.fan.touched = true
		f.touched = append(f.touched, s)
	}
}

// congested tells whether the client is behind with reading what it was sent.
func (s *session) congested() bool { return s.out.Buffered() > s.srv.cfg.MaxOutput/2 }

// count notes what became of a message for one client.
func (s *Server) count(r outcome) {
	switch r {
	case sent, queued:
		s.metrics.deliveries.Inc()
	case dropped, overflow:
		s.metrics.slow.Inc()
	case tooLarge:
		s.metrics.tooLarge.Inc()
	}
}
