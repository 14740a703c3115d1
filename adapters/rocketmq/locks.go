package rocketmq

import (
	"context"
	"errors"
	"math"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// lockKey is a queue lock that a connection's client was granted.
type lockKey struct {
	group, client, topic string
	queue                int32
}

// lock handles code 41: orderly consumers take their queues. The answer lists those that the client has now. Who was
// refused is told to try again, or would look only at every other rebalance.
//
// Spec: RocketMQ RequestCode.LOCK_BATCH_MQ=41; AdminBrokerProcessor.lockBatchMQ@5.x
func (s *session) lock(_ context.Context, h *wire.Header, body []byte) error {
	l, err := wire.ParseLocks(body)
	if err != nil {
		return err
	}
	if h.Language == wire.Go && len(l.Queues) > 1 {
		s.unlockRest(&l)
	}
	held := []wire.Queue{}
	for _, q := range l.Queues {
		g, err := s.lockable(&l, q)
		if err != nil {
			return err
		}
		switch {
		case g == nil: // granted only for an empty retry queue: it has no messages whose order could suffer
			if _, err := s.srv.topic(q.Topic); isRetry(q.Topic) && errors.Is(err, core.ErrTopicNotFound) {
				held = append(held, q)
			}
		case g.Lock(queueNumber(q), l.ClientID, s.srv.cfg.LockTime):
			held = append(held, q)
			s.locks[lockKey{l.Group, l.ClientID, q.Topic, queueNumber(q)}] = time.Now()
		default:
			s.srv.registry.again(l.Group, time.Now().Add(s.srv.cfg.LockTime/6))
		}
	}
	return s.ok(h, func(a *wire.Answer) {
		a.Body()
		a.Dst = wire.AppendLockOK(a.Dst, held)
	})
}

// unlockRest frees the queues that a Go client no longer has. rocketmq-client-go never unlocks what a rebalance takes
// from it, but each 20 s it lists all its queues; one queue alone is a queue that it is taking. A lock granted a moment
// ago may have crossed with the list, and stays.
func (s *session) unlockRest(l *wire.Locks) {
	listed := make(map[lockKey]bool, len(l.Queues))
	for _, q := range l.Queues {
		listed[lockKey{l.Group, l.ClientID, q.Topic, queueNumber(q)}] = true
	}
	before := time.Now().Add(-s.srv.cfg.LockTime / 12)
	freed := false
	for key, granted := range s.locks {
		if key.group == l.Group && key.client == l.ClientID && !listed[key] && granted.Before(before) {
			freed = s.free(key) || freed
		}
	}
	if freed {
		s.srv.notify(l.Group, s.srv.registry.others(s, l.Group))
	}
}

// lockable finds the group of a queue that exists; nil when there is none.
func (s *session) lockable(l *wire.Locks, q wire.Queue) (*engine.Group, error) {
	t, err := s.srv.topic(q.Topic)
	if err != nil || t.Partition(queueNumber(q)) == nil {
		return nil, nil
	}
	if err := s.mayConsume(t.Partition(queueNumber(q)), l.Group); err != nil {
		return nil, err
	}
	return s.group(t, q.Topic, l.Group, s.srv.registry.interest(l.Group, q.Topic))
}

func queueNumber(q wire.Queue) int32 {
	if q.ID < 0 || q.ID > math.MaxInt32 {
		return -1
	}
	return int32(q.ID)
}

// unlock handles code 42. The others are told soon, so that they take the queues now and not at their next rebalance, 20 s
// later; the real broker leaves them waiting. Not at once: a client that leaves unlocks first and unregisters next, and who
// is called between the two finds it on the list still (and Java balances again no sooner than a second later).
//
// Spec: RocketMQ RequestCode.UNLOCK_BATCH_MQ=42; AdminBrokerProcessor.unlockBatchMQ@5.x
func (s *session) unlock(_ context.Context, h *wire.Header, body []byte) error {
	l, err := wire.ParseLocks(body)
	if err != nil {
		return err
	}
	freed := false
	for _, q := range l.Queues {
		if _, err := s.lockable(&l, q); err != nil {
			return err
		}
		freed = s.free(lockKey{l.Group, l.ClientID, q.Topic, queueNumber(q)}) || freed
	}
	if freed {
		s.srv.registry.again(l.Group, time.Now().Add(soon))
		select {
		case s.srv.sooner <- struct{}{}:
		default: // it looks already
		}
	}
	return s.ok(h, nil)
}

// free ends a lock; false when the client does not have it.
func (s *session) free(key lockKey) bool {
	delete(s.locks, key)
	g := s.srv.groupOf(key.topic, key.group)
	if g == nil || g.Topic().Partition(key.queue) == nil || g.LockedBy(key.queue) != key.client {
		return false
	}
	g.Unlock(key.queue, key.client)
	return true
}
