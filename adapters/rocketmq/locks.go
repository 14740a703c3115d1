package rocketmq

import (
	"context"
	"errors"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// lockTime is how long a queue lock lasts unless it is renewed; clients renew each 20 s and distrust their own after 30.
//
// Spec: RocketMQ RebalanceLockManager.REBALANCE_LOCK_MAX_LIVE_TIME@5.x
const lockTime = 60 * time.Second

// lock handles code 41: orderly consumers take their queues. The answer lists those that the client has now.
//
// Spec: RocketMQ RequestCode.LOCK_BATCH_MQ=41; AdminBrokerProcessor.lockBatchMQ@5.x
func (s *session) lock(_ context.Context, h *wire.Header, body []byte) error {
	l, err := wire.ParseLocks(body)
	if err != nil {
		return err
	}
	held := []wire.Queue{}
	for _, q := range l.Queues {
		ok, err := s.lockOne(&l, q)
		if err != nil {
			return err
		}
		if ok {
			held = append(held, q)
		}
	}
	return s.ok(h, func(a *wire.Answer) {
		a.Body()
		a.Dst = wire.AppendLockOK(a.Dst, held)
	})
}

// lockOne takes one queue. A queue that does not exist is not granted, but for an empty retry queue: it has no messages
// whose order could suffer.
func (s *session) lockOne(l *wire.Locks, q wire.Queue) (bool, error) {
	t, err := s.srv.topic(q.Topic)
	if err != nil {
		return isRetry(q.Topic) && errors.Is(err, core.ErrTopicNotFound), nil
	}
	if t.Partition(int32(q.ID)) == nil {
		return false, nil
	}
	g, _, err := s.group(t, q.Topic, l.Group)
	if err != nil || g == nil {
		return false, err
	}
	return g.Lock(int32(q.ID), l.ClientID, lockTime), nil
}

// unlock handles code 42.
//
// Spec: RocketMQ RequestCode.UNLOCK_BATCH_MQ=42; AdminBrokerProcessor.unlockBatchMQ@5.x
func (s *session) unlock(_ context.Context, h *wire.Header, body []byte) error {
	l, err := wire.ParseLocks(body)
	if err != nil {
		return err
	}
	for _, q := range l.Queues {
		t, err := s.srv.topic(q.Topic)
		if err != nil || t.Partition(int32(q.ID)) == nil {
			continue
		}
		if g, err := t.Group(l.Group); err == nil {
			g.Unlock(int32(q.ID), l.ClientID)
		}
	}
	return s.ok(h, nil)
}
