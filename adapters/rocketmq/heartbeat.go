package rocketmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// A client's first heartbeat begins its groups; without one for Config.Idle, or with its connection, it leaves them.
const (
	maxGroups        = 256 // of one heartbeat
	maxSubscriptions = 4096
	timestampWindow  = 30 * time.Minute // how far back clients start with CONSUME_FROM_TIMESTAMP, unless told otherwise
)

// heartbeat handles code 34.
//
// Spec: RocketMQ RequestCode.HEART_BEAT=34; ClientManageProcessor.heartBeat, ConsumerManager.registerConsumer@5.x
func (s *session) heartbeat(_ context.Context, h *wire.Header, body []byte) error {
	hb, err := wire.ParseHeartbeat(body)
	if err != nil {
		return err
	}
	if hb.ClientID == "" || len(hb.ClientID) > maxGroup || len(hb.Consumers)+len(hb.Producers) > maxGroups {
		return fmt.Errorf("heartbeat of client %.80q with %d groups: %w", hb.ClientID, len(hb.Consumers)+len(hb.Producers), core.ErrInvalid)
	}
	s.beatProducers(hb.Producers, time.Now())
	for i := range hb.Consumers { // one group that is refused does not cost the client its others
		err = cmp.Or(err, s.beat(hb.ClientID, &hb.Consumers[i]))
	}
	if err != nil {
		return err
	}
	return s.ok(h, nil)
}

// beat registers a client in one group.
func (s *session) beat(client string, d *wire.ConsumerData) error {
	if err := checkName("group", d.Group, maxGroup); err != nil {
		return err
	}
	if len(d.Subscriptions) > maxSubscriptions {
		return fmt.Errorf("%d subscriptions: %w", len(d.Subscriptions), core.ErrInvalid)
	}
	subs := make(map[string]subscription, len(d.Subscriptions))
	var absent []string
	for _, sub := range d.Subscriptions {
		f, err := parseFilter(sub.ExpressionType, sub.Expression)
		if err != nil {
			return fmt.Errorf("topic %.127q: %w", sub.Topic, err)
		}
		subs[sub.Topic] = subscription{text: sub.Expression, kind: sub.ExpressionType, filter: f}
		if d.Model != wire.Broadcasting {
			exists, err := s.beginAt(sub.Topic, d.Group, client, d.FromWhere)
			if err != nil {
				return err
			}
			if !exists {
				absent = append(absent, sub.Topic)
			}
		}
	}
	after, err := s.srv.registry.beat(s, client, d, subs, absent, time.Now())
	if err != nil {
		return err
	}
	if after.differs {
		s.srv.log.Warn("members of a group subscribe differently, the last one counts", "protocol", protocol, "group", d.Group, "client_id", client)
	}
	s.srv.forget(d.Group, client, after.dropped)
	s.srv.notify(d.Group, after.notify)
	return nil
}

// beginAt begins the group of an existing topic and notes the member. A topic that does not exist yet is met again with
// the next heartbeat, or when the client asks for an offset.
func (s *session) beginAt(topic, groupName, client, fromWhere string) (exists bool, err error) {
	n, err := s.srv.resolve(topic)
	if err != nil {
		return false, err
	}
	if err := s.allow(auth.Consume, n.String()+"#"+groupName); err != nil {
		return false, err
	}
	t, err := s.srv.eng.Topic(n)
	if errors.Is(err, core.ErrTopicNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	in := s.srv.registry.interest(groupName, topic)
	g, err := t.BeginGroup(groupName, start(fromWhere, in.awaited || isRetry(topic)))
	if err != nil {
		return false, err
	}
	g.Heartbeat(client)
	return true, nil
}

// start translates consumeFromWhere; all tells that the group is older than the topic. The timestamp itself is not in the heartbeat: the client looks its offset up, and
// until it commits one, the group holds what the default would need.
//
// Spec: RocketMQ ConsumeFromWhere@5.x
func start(fromWhere string, all bool) engine.Start {
	switch {
	case fromWhere == wire.FromFirst || all:
		return engine.Start{At: engine.Earliest}
	case fromWhere == wire.FromTimestamp:
		return engine.Start{At: engine.AtTime, Time: time.Now().Add(-timestampWindow).UnixMilli()}
	}
	return engine.Start{At: engine.Latest}
}

// unregister handles code 35; Java clients send it when they shut down.
//
// Spec: RocketMQ RequestCode.UNREGISTER_CLIENT=35; ClientManageProcessor.unregisterClient@5.x
func (s *session) unregister(_ context.Context, h *wire.Header, _ []byte) error {
	client, groupName := h.String("clientID"), h.String("consumerGroup")
	if groupName != "" {
		s.srv.left(s.srv.registry.leave(s, groupName, client))
	}
	if producers := h.String("producerGroup"); producers != "" {
		s.srv.producers.drop(s, producers)
	}
	return s.ok(h, nil)
}

// checkConfig handles code 46: a Java consumer asks before it starts whether its expression will do.
//
// Spec: RocketMQ RequestCode.CHECK_CLIENT_CONFIG=46; ClientManageProcessor.checkClientConfig@5.x
func (s *session) checkConfig(_ context.Context, h *wire.Header, body []byte) error {
	c, err := wire.ParseClientConfig(body)
	if err != nil {
		return err
	}
	if _, err := parseFilter(c.Subscription.ExpressionType, c.Subscription.Expression); err != nil {
		return err
	}
	return s.ok(h, nil)
}
