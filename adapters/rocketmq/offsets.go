package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"math"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// The five offset questions and the commit. A retry topic to which nothing was sent is an empty queue.

// queueOf reads the queue that a request names; a nil partition with a nil error is an empty retry queue.
func (s *session) queueOf(h *wire.Header) (topic string, p *engine.Partition, err error) {
	topic = h.String("topic")
	id, err := h.Int("queueId")
	if err != nil {
		return topic, nil, err
	}
	if id < 0 || id > math.MaxInt32 {
		return topic, nil, fmt.Errorf("queue %d: %w", id, core.ErrInvalid)
	}
	p, err = s.queue(topic, int32(id))
	if isRetry(topic) && errors.Is(err, core.ErrTopicNotFound) {
		return topic, nil, nil
	}
	return topic, p, err
}

// queryOffset handles code 14. Once a group has begun, its mark is the answer, so that what was sent between its first
// heartbeat and this question is not missed. With CONSUME_FROM_TIMESTAMP, and for pull consumers, only the client knows
// where to begin: it is told that nothing is committed and looks the offset up. So is a group without a heartbeat.
//
// Deviates: the real broker answers 0 for a young topic whose first message is in memory; this one never does.
// Spec: RocketMQ RequestCode.QUERY_CONSUMER_OFFSET=14; ConsumerManageProcessor.queryConsumerOffset@5.x
func (s *session) queryOffset(_ context.Context, h *wire.Header, _ []byte) error {
	topic, p, err := s.queueOf(h)
	if err != nil {
		return err
	}
	name := h.String("consumerGroup")
	if p == nil {
		return fmt.Errorf("group %s in topic %s: %w", name, topic, errNothingCommitted)
	}
	if err := s.mayConsume(p, name); err != nil {
		return err
	}
	in := s.srv.registry.interest(name, topic)
	g, err := s.group(p.Topic(), topic, name, in)
	if err != nil {
		return err
	}
	if g == nil {
		return fmt.Errorf("group %s in topic %s: %w", name, topic, errNothingCommitted)
	}
	next, committed := g.Committed(p.Index())
	if !committed && (in.asks || !in.known) {
		return fmt.Errorf("group %s in topic %s: %w", name, topic, errNothingCommitted)
	}
	return s.offset(h, next)
}

// group finds a group of the engine, and begins it when a connected client subscribes to a topic that did not exist at
// its last heartbeat. It is nil for broadcasting groups and unknown ones.
func (s *session) group(t *engine.Topic, topic, name string, in interest) (*engine.Group, error) {
	if in.known && in.broadcasting {
		return nil, nil
	}
	g, err := t.Group(name)
	if err == nil {
		return g, nil
	}
	if !in.known {
		return nil, nil
	}
	if g, err = t.BeginGroup(name, start(in.fromWhere, in.awaited || isRetry(topic))); err != nil {
		return nil, err
	}
	if client := s.srv.registry.clientOf(s, name); client != "" {
		g.Heartbeat(client)
	}
	return g, nil
}

// updateOffset handles code 15. A commit never moves a group backwards, but for its first.
//
// Spec: RocketMQ RequestCode.UPDATE_CONSUMER_OFFSET=15; ConsumerManageProcessor.updateConsumerOffset@5.x
func (s *session) updateOffset(_ context.Context, h *wire.Header, _ []byte) error {
	var c wire.Commit
	if err := wire.ParseCommit(h, &c); err != nil {
		return err
	}
	topic := string(c.Topic)
	p, err := s.queue(topic, c.QueueID)
	if isRetry(topic) && errors.Is(err, core.ErrTopicNotFound) {
		return s.ok(h, nil)
	}
	if err != nil {
		return err
	}
	if err := s.commit(p, topic, string(c.Group), c.Offset); err != nil {
		return err
	}
	return s.ok(h, nil)
}

func (s *session) commit(p *engine.Partition, topic, groupName string, next core.Offset) error {
	if err := checkName("group", groupName, maxGroup); err != nil {
		return err
	}
	if err := s.mayConsume(p, groupName); err != nil {
		return err
	}
	if _, end := p.Bounds(); next < 0 || next > end {
		return fmt.Errorf("commit of offset %d, the queue ends at %d: %w", next, end, core.ErrInvalid)
	}
	in := s.srv.registry.interest(groupName, topic)
	if in.broadcasting {
		return nil // its members keep their own offsets
	}
	g, err := s.group(p.Topic(), topic, groupName, in)
	if err != nil {
		return err
	}
	if g == nil {
		if g, err = p.Topic().BeginGroup(groupName, engine.Start{At: engine.Latest}); err != nil {
			return err
		}
	}
	return g.CommitAs(p.Index(), s.srv.registry.clientOf(s, groupName), next)
}

// maxOffset handles code 30.
//
// Spec: RocketMQ RequestCode.GET_MAX_OFFSET=30; AdminBrokerProcessor.getMaxOffset@5.x
func (s *session) maxOffset(_ context.Context, h *wire.Header, _ []byte) error {
	_, p, err := s.queueOf(h)
	if err != nil {
		return err
	}
	_, next := bounds(p)
	return s.offset(h, next)
}

// minOffset handles code 31.
//
// Spec: RocketMQ RequestCode.GET_MIN_OFFSET=31; AdminBrokerProcessor.getMinOffset@5.x
func (s *session) minOffset(_ context.Context, h *wire.Header, _ []byte) error {
	_, p, err := s.queueOf(h)
	if err != nil {
		return err
	}
	first, _ := bounds(p)
	return s.offset(h, first)
}

// searchOffset handles code 29: the first message stored at or after a time; the end when there is none.
//
// Spec: RocketMQ RequestCode.SEARCH_OFFSET_BY_TIMESTAMP=29; AdminBrokerProcessor.searchOffsetByTimestamp@5.x
func (s *session) searchOffset(ctx context.Context, h *wire.Header, _ []byte) error {
	_, p, err := s.queueOf(h)
	if err != nil {
		return err
	}
	ms, err := h.Int("timestamp")
	if err != nil {
		return err
	}
	if p == nil {
		return s.offset(h, 0)
	}
	at, err := p.OffsetAt(ctx, ms)
	if err != nil {
		return err
	}
	return s.offset(h, at)
}

// earliestTime handles code 32: when the oldest message was stored, −1 when there is none.
//
// Spec: RocketMQ RequestCode.GET_EARLIEST_MSG_STORETIME=32; AdminBrokerProcessor.getEarliestMsgStoretime@5.x
func (s *session) earliestTime(ctx context.Context, h *wire.Header, _ []byte) error {
	_, p, err := s.queueOf(h)
	if err != nil {
		return err
	}
	ms := int64(-1)
	if p != nil {
		first, _ := p.Bounds()
		es, err := p.Read(ctx, first, 1, 1)
		if err != nil {
			return err
		}
		if len(es) > 0 {
			ms = es[0].Commit
		}
	}
	return s.ok(h, func(a *wire.Answer) { a.Int("timestamp", ms) })
}

func (s *session) offset(h *wire.Header, o core.Offset) error {
	return s.ok(h, func(a *wire.Answer) { a.Int("offset", o) })
}

func bounds(p *engine.Partition) (first, next core.Offset) {
	if p == nil {
		return 0, 0
	}
	return p.Bounds()
}
