package rocketmq

import (
	"context"
	"fmt"
	"math"
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
	pool := math.MaxInt
	for _, topic := range topics {
		if g := s.srv.groupOf(topic, name); g != nil {
			clients = append(clients, g.Members()...)
			if !isRetry(topic) {
				pool = min(pool, g.PoolSize())
			}
		}
	}
	if len(clients) == 0 {
		return errNoConsumers
	}
	slices.Sort(clients)
	clients = append(slices.Compact(clients), phantoms(pool)...)
	return s.ok(h, func(a *wire.Answer) {
		a.Body()
		a.Dst = wire.AppendStrings(a.Dst, "consumerIdList", clients)
	})
}

// maxPhantoms is far beyond the queues of a topic that mixed groups would share.
const maxPhantoms = 256

// phantoms stand for the consumers of other protocols in every topic of the group, so that clients leave them their share of
// the queues. They sort behind all real ids; where only some topics have such consumers there are none, or queues of the
// others would be nobody's.
func phantoms(n int) (ids []string) {
	if n > maxPhantoms {
		return nil
	}
	for i := range n {
		ids = append(ids, fmt.Sprintf("~pool-%03d", i))
	}
	return ids
}

// poolChanged tells the members of a group that consumers of other protocols came or went.
func (s *Server) poolChanged(g *engine.Group) {
	s.notify(g.Name(), s.registry.others(nil, g.Name()))
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
