package rocketmq

import (
	"context"
	"errors"
	"fmt"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// recall handles code 370: a delayed message is taken back, once, until it is due.
// Deviates: any delayed message has a handle, also one that was delayed by level.
//
// Spec: RocketMQ RequestCode.RECALL_MESSAGE=370; RecallMessageProcessor@5.x
func (s *session) recall(_ context.Context, h *wire.Header, _ []byte) error {
	topic := h.String("topic")
	t, err := s.srv.topic(topic)
	if err != nil {
		return err
	}
	if err := s.allow(auth.Produce, t.Name().String()); err != nil {
		return err
	}
	var r wire.RecallHandle
	if err := r.Parse([]byte(h.String("recallHandle"))); err != nil {
		return fmt.Errorf("%w: %w", errIllegalOperation, err)
	}
	if r.Topic != topic || r.Broker != brokerName {
		return fmt.Errorf("%w: the handle is one of topic %.127q at broker %.80q", errIllegalOperation, r.Topic, r.Broker)
	}
	id := engine.ParkedID(r.Message)
	m, err := s.srv.eng.Parked(id)
	if err == nil && (m.Half || m.Partition.Topic() != t) {
		err = engine.ErrNotParked
	}
	if err == nil {
		token := tokenKept | tokenDecision | uint64(uint32(h.Opaque))
		s.kept.put(h.Opaque, kept{recall: true, unique: r.Unique})
		s.flight.add(1)
		if err = s.producer.Cancel(id, token); err != nil {
			s.kept.take(uint32(h.Opaque))
			s.flight.add(-1)
		}
	}
	if errors.Is(err, engine.ErrNotParked) {
		return fmt.Errorf("%w: %w", errIllegalOperation, err)
	}
	return err
}
