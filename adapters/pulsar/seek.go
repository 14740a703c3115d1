package pulsar

import (
	"fmt"
	"math"
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

// SEEK moves the subscription on one partition. Its consumers are closed first and come back by themselves.
// Deviates: a time is when the gateway stored a message, not when it was made.
// Spec: Pulsar CommandSeek: CLOSE_CONSUMER goes before SUCCESS, or a Go consumer stops delivering for ever
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
	if err == nil {
		err = c.moveTo(at)
	}
	if err != nil { // a Go consumer paused itself for the SEEK and goes on when it is closed
		s.fail(q.RequestID, err)
		c.leave()
		c.dismiss()
		return nil
	}
	s.send(wire.TypeSuccess, &wire.Success{RequestID: q.RequestID})
	return nil
}

// moveTo closes the consumers of the partition and sets the position. A reader's group ends with its consumer, so the
// place is kept for its return.
func (c *consumer) moveTo(at core.Offset) error {
	if !c.durable {
		c.sess.srv.keepSeek(c.key(), at)
		c.leave()
		c.dismiss()
		return nil
	}
	return expel(append(ours(c.others()), c.member), func() error { return c.group.Reset(c.part.Index(), at) })
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
	case q.HasID && q.ID.Ledger <= math.MaxUint32 && c.part.ParksIn(uint32(q.ID.Ledger-1)):
		return 0, fmt.Errorf("the receipt of a delayed message is no place in the topic: %w", errNotAllowed)
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
