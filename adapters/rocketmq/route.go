package rocketmq

import (
	"context"
	"errors"
	"fmt"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// bareKeysBelow is the first client version that reads standard JSON (V4_9_4).
const bareKeysBelow = 401

// route handles code 105: where the queues of a topic are.
//
// Producers that get no route for a topic ask for that of TBW102 and send there; consumers wait for the topic.
// Spec: RocketMQ RequestCode.GET_ROUTEINFO_BY_TOPIC=105; ClientRequestProcessor.getRouteInfoByTopic@5.x
func (s *session) route(_ context.Context, h *wire.Header, _ []byte) error {
	topic := h.String("topic")
	r := wire.Route{Broker: s.broker(h), Perm: wire.PermRead | wire.PermWrite}
	d := s.srv.eng.Defaults()
	if topic == wire.TemplateTopic && d.AutoCreate {
		r.Queues, r.Perm = d.RocketMQQueues, r.Perm|wire.PermInherit
	} else {
		n, err := s.srv.resolve(topic)
		if err != nil {
			return err
		}
		if err := s.allow(auth.Lookup, n.String()); err != nil {
			return err
		}
		switch t, err := s.srv.eng.Topic(n); {
		case err == nil:
			r.Queues = t.Logs()
		case errors.Is(err, core.ErrTopicNotFound) && (isRetry(topic) || topic == wire.TraceTopic):
			r.Queues = 1
		case errors.Is(err, core.ErrTopicNotFound):
			return fmt.Errorf("No topic route info in name server for the topic: %s: %w", topic, core.ErrTopicNotFound) //nolint:staticcheck // the real name server's words, which people search for
		default:
			return err
		}
	}
	return s.ok(h, func(a *wire.Answer) {
		a.Body()
		a.Dst = r.Append(a.Dst)
	})
}

// broker describes the one broker, in the form that this client reads.
func (s *session) broker(h *wire.Header) wire.Broker {
	addr := s.srv.cfg.Advertise
	if addr == "" {
		addr = s.store.String()
	}
	standard := string(h.Get("acceptStandardJsonOnly")) == "true"
	return wire.Broker{Cluster: s.srv.cfg.Cluster, Name: brokerName, Address: addr,
		BareKeys: !standard && (h.Version < bareKeysBelow || h.Language == wire.CPP)}
}

// cluster handles code 106.
//
// Spec: RocketMQ RequestCode.GET_BROKER_CLUSTER_INFO=106; DefaultRequestProcessor.getBrokerClusterInfo@5.x
func (s *session) cluster(_ context.Context, h *wire.Header, _ []byte) error {
	b := s.broker(h)
	return s.ok(h, func(a *wire.Answer) {
		a.Body()
		a.Dst = b.AppendCluster(a.Dst)
	})
}
