package pulsar

import (
	"fmt"
	"time"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
)

// subscriptionKey names a subscription on a topic or partition.
type subscriptionKey struct {
	topic, subscription string
}

// seekMark is where a reader went by SEEK, until it subscribes again.
type seekMark struct {
	at   core.Offset
	till time.Time
}

// seekKept is how long a reader may take to come back after its SEEK.
const seekKept = time.Minute

func (c *consumer) key() subscriptionKey { return subscriptionKey{c.target.String(), c.subscription} }

// SEEK of a reader moves it; of a durable subscription it is refused, and the consumer is closed, so that a Go client
// goes on from where it was (it waits for that for ever otherwise).
// Deviates: durable subscriptions cannot be reset yet. Time is when the gateway stored a message, not when it was made.
// Spec: Pulsar CommandSeek: CLOSE_CONSUMER goes before SUCCESS, or a Go consumer stops delivering
func (s *session) seek(b []byte) error {
	q := wire.Seek{ID: wire.NewMessageID()}
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	c := s.consumer(q.ConsumerID)
	if c == nil {
		s.fail(q.RequestID, fmt.Errorf("Consumer not found: %w", errNotConnected))
		return nil
	}
	at, err := c.sought(&q)
	if err == nil && c.durable {
		err = fmt.Errorf("seek on a durable subscription: %w", core.ErrUnsupported)
	}
	if err != nil {
		s.fail(q.RequestID, err)
		c.expel()
		return nil
	}
	s.srv.keepSeek(c.key(), at)
	c.expel()
	s.send(wire.TypeSuccess, &wire.Success{RequestID: q.RequestID})
	return nil
}

// sought is the offset that a SEEK names: that of the next message to be delivered.
func (c *consumer) sought(q *wire.Seek) (core.Offset, error) {
	if c.part == nil {
		return 0, fmt.Errorf("seek on a whole partitioned topic: %w", core.ErrUnsupported)
	}
	first, next := c.part.Bounds()
	switch {
	case q.HasID && q.ID.Earliest():
		return first, nil
	case q.HasID && q.ID.Latest():
		return next, nil
	case q.HasID:
		return position(c.part, &q.ID), nil
	case q.HasTime:
		return c.part.OffsetAt(c.sess.ctx, int64(q.Time))
	}
	return 0, fmt.Errorf("SEEK names neither id nor time: %w", errMetadata)
}

// keepSeek remembers where a reader went.
func (s *Server) keepSeek(k subscriptionKey, at core.Offset) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, m := range s.mu.seeks {
		if now.After(m.till) {
			delete(s.mu.seeks, k)
		}
	}
	s.mu.seeks[k] = seekMark{at, now.Add(seekKept)}
}

// sought takes the place where a reader went, once.
func (s *Server) sought(k subscriptionKey) (core.Offset, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.mu.seeks[k]
	delete(s.mu.seeks, k)
	return m.at, ok && time.Now().Before(m.till)
}
