package pulsar

import (
	"fmt"
	"slices"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core/engine"
)

// CLOSE_CONSUMER of a client. A consumer that still waits to be let in is cancelled; an unknown one is success too.
// Spec: Pulsar CommandCloseConsumer
func (s *session) closeConsumer(b []byte) error {
	var q wire.Close
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	s.forget(waitKey{consumer: true, id: q.ID})
	if c := s.consumer(q.ID); c != nil {
		s.forgetConsumer(c)
		c.leave()
	}
	s.send(wire.TypeSuccess, &wire.Success{RequestID: q.RequestID})
	return nil
}

// expel takes members out of their group and then tells their clients, who subscribe again at once: nothing of the old
// seat may follow the CLOSE_CONSUMER. between runs when all have left and none can be back.
// It does not look at consumer.member, which a session that is just joining has not written yet.
func expel(ms []*engine.Consumer, between func() error) error {
	for _, m := range ms {
		m.Leave()
	}
	err := between()
	for _, m := range ms {
		m.Sink().(*consumer).dismiss()
	}
	return err
}

// Dismiss implements engine.Dismisser.
func (c *consumer) Dismiss() { c.dismiss() }

// dismiss tells a consumer's client that it is closed, once.
// Spec: Pulsar CommandCloseConsumer from the server: request id 2^64-1, not answered; the client subscribes again
func (c *consumer) dismiss() {
	if c.sess.forgetConsumer(c) {
		c.sess.tell(wire.TypeCloseConsumer, &wire.Close{ID: c.id, RequestID: wire.NoRequest})
	}
}

// UNSUBSCRIBE. The caller has to be alone on its partition, or force. A group is of the whole topic: it is deleted with
// the last of its consumers, so that a client can go through the partitions one by one.
// Spec: Pulsar CommandUnsubscribe
func (s *session) unsubscribe(b []byte) error {
	var q wire.Unsubscribe
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	c := s.consumer(q.ConsumerID)
	if c == nil {
		s.fail(q.RequestID, fmt.Errorf("consumer %d: %w", q.ConsumerID, errNotConnected))
		return nil
	}
	others := c.others()
	if len(others) > 0 && !q.Force {
		s.fail(q.RequestID, fmt.Errorf("Unconnected or shared consumer attempting to unsubscribe: %w", errNotConnected))
		return nil
	}
	_ = expel(ours(others), func() error { return nil })
	s.forgetConsumer(c)
	c.leave()
	if len(c.group.Consumers()) == 0 && c.durable {
		if err := c.topic.DeleteGroup(c.groupName()); err != nil {
			s.fail(q.RequestID, err)
			return nil
		}
	}
	s.send(wire.TypeSuccess, &wire.Success{RequestID: q.RequestID})
	return nil
}

// others are the members that read what this one reads, of whatever protocol.
func (c *consumer) others() []*engine.Consumer {
	return slices.DeleteFunc(c.group.Consumers(), func(m *engine.Consumer) bool {
		return m == c.member || c.index >= 0 && !m.Reads(c.index)
	})
}

// ours leaves the members that are Pulsar's.
func ours(ms []*engine.Consumer) []*engine.Consumer {
	return slices.DeleteFunc(ms, func(m *engine.Consumer) bool {
		_, ok := m.Sink().(*consumer)
		return !ok
	})
}
