package rocketmq

import (
	"context"
	"slices"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core/engine"
)

// consumerList handles code 38. All members must see the same list, since each computes its share of the queues from it.
// Members of before a restart are in it until they are heard of or presumed dead.
//
// Spec: RocketMQ RequestCode.GET_CONSUMER_LIST_BY_GROUP=38; ConsumerManageProcessor.getConsumerListByGroup@5.x
func (s *session) consumerList(_ context.Context, h *wire.Header, _ []byte) error {
	name := h.String("consumerGroup")
	clients, topics := s.srv.registry.members(name)
	for _, topic := range topics {
		if g := s.srv.groupOf(topic, name); g != nil {
			clients = append(clients, g.Members()...)
		}
	}
	if len(clients) == 0 {
		return errNoConsumers
	}
	slices.Sort(clients)
	clients = slices.Compact(clients)
	return s.ok(h, func(a *wire.Answer) {
		a.Body()
		a.Dst = wire.AppendStrings(a.Dst, "consumerIdList", clients)
	})
}

// groupOf looks a group up by the topic's client name; nil when either does not exist.
func (s *Server) groupOf(topic, name string) *engine.Group {
	t, err := s.topic(topic)
	if err != nil {
		return nil
	}
	g, err := t.Group(name)
	if err != nil {
		return nil
	}
	return g
}

// left does what follows from departures: locks are freed, and those who stay share out the queues again at once.
func (s *Server) left(ds []departure) {
	for _, d := range ds {
		s.forget(d.group, d.client, d.topics)
		s.notify(d.group, d.remaining)
	}
}

// forget takes a client off the rosters of topics that it no longer reads.
func (s *Server) forget(groupName, client string, topics []string) {
	for _, topic := range topics {
		if g := s.groupOf(topic, groupName); g != nil {
			g.Forget(client)
		}
	}
}

// notify calls the members of a group: their list has changed.
//
// Spec: RocketMQ RequestCode.NOTIFY_CONSUMER_IDS_CHANGED=40; Broker2Client.notifyConsumerIdsChanged@5.x
func (s *Server) notify(groupName string, to []*session) {
	h := wire.Header{Code: wire.NotifyConsumers, Version: wire.BrokerVersion, Flag: wire.FlagOneway,
		Ext: []wire.Field{{Key: []byte("consumerGroup"), Value: []byte(groupName)}}}
	for _, ses := range to {
		ses.out.Append(func(dst []byte) []byte { return wire.AppendFrame(dst, &h, nil) })
		ses.out.Flush() // a failed connection is its reader's business
	}
}
