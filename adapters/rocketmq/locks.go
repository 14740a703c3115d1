package rocketmq

import (
	"context"
	"errors"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// lock handles code 41: orderly consumers take their queues. The answer lists those that the client has now. Who was
// refused is told to try again: rocketmq-client-go does not unlock a queue that it gives up, and would look again only at
// every other rebalance.
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
		} else {
			s.srv.registry.again(l.Group, time.Now().Add(s.srv.cfg.LockTime/6))
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
	g, err := s.group(t, q.Topic, l.Group, s.srv.registry.interest(l.Group, q.Topic))
	if err != nil || g == nil {
		return false, err
	}
	return g.Lock(int32(q.ID), l.ClientID, s.srv.cfg.LockTime), nil
}

// unlock handles code 42. The others are told, so that they take the queues now and not at their next rebalance, 20 s
// later; the real broker leaves them waiting.
//
// Spec: RocketMQ RequestCode.UNLOCK_BATCH_MQ=42; AdminBrokerProcessor.unlockBatchMQ@5.x
func (s *session) unlock(_ context.Context, h *wire.Header, body []byte) error {
	l, err := wire.ParseLocks(body)
	if err != nil {
		return err
	}
	freed := false
	for _, q := range l.Queues {
		t, err := s.srv.topic(q.Topic)
		if err != nil || t.Partition(int32(q.ID)) == nil {
			continue
		}
		if g, err := t.Group(l.Group); err == nil && g.LockedBy(int32(q.ID)) == l.ClientID {
			g.Unlock(int32(q.ID), l.ClientID)
			freed = true
		}
	}
	if freed {
		s.srv.notify(l.Group, s.srv.registry.others(s, l.Group))
	}
	return s.ok(h, nil)
}
