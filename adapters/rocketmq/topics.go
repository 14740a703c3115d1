package rocketmq

import (
	"context"
	"fmt"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// topicList handles code 206: the topics that clients of this protocol have a name for.
//
// Spec: RocketMQ RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER=206; TopicList@5.x
func (s *session) topicList(_ context.Context, h *wire.Header, _ []byte) error {
	var names []string
	for _, t := range s.srv.eng.Topics() {
		if name, ok := s.srv.clientName(t); ok && s.allow(auth.Lookup, t.Name().String()) == nil {
			names = append(names, name)
		}
	}
	return s.ok(h, func(a *wire.Answer) {
		a.Body()
		a.Dst = wire.AppendStrings(a.Dst, "topicList", names)
	})
}

// createTopic handles code 17. The number of queues of an existing topic stays: keys would move.
//
// Spec: RocketMQ RequestCode.UPDATE_AND_CREATE_TOPIC=17; AdminBrokerProcessor.updateAndCreateTopic@5.x
func (s *session) createTopic(_ context.Context, h *wire.Header, _ []byte) error {
	n, err := s.srv.resolve(h.String("topic"))
	if err != nil {
		return err
	}
	if err := s.allow(auth.Admin, n.String()); err != nil {
		return err
	}
	queues, err := h.Int("writeQueueNums")
	if err != nil {
		return err
	}
	if queues < 1 || queues > 1<<16 {
		return fmt.Errorf("%d queues: %w", queues, core.ErrInvalid)
	}
	t, err := s.srv.eng.EnsureTopic(n, int32(queues))
	if err != nil {
		return err
	}
	if int64(t.Logs()) != queues {
		return fmt.Errorf("topic %s has %d queues, their number stays: %w", n, t.Logs(), core.ErrInvalid)
	}
	return s.ok(h, nil)
}
