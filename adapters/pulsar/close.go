package pulsar

import (
	"fmt"

	"isthmus/adapters/pulsar/wire"
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
		c.postSkipped()
		s.forgetConsumer(c)
		c.leave()
	}
	s.send(wire.TypeSuccess, &wire.Success{RequestID: q.RequestID})
	return nil
}

// expel tells a consumer's client that it is closed, and takes it out of its group.
// Spec: Pulsar CommandCloseConsumer from the server: request id 2^64-1, not answered; the client subscribes again
func (c *consumer) expel() {
	if c.sess.forgetConsumer(c) {
		c.sess.tell(wire.TypeCloseConsumer, &wire.Close{ID: c.id, RequestID: wire.NoRequest})
	}
	c.leave()
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
	for _, o := range others {
		if o != nil {
			o.expel()
		}
	}
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

// others are the consumers that read what this one reads; nil stands for one of another protocol.
func (c *consumer) others() (cs []*consumer) {
	for _, m := range c.group.Consumers() {
		if m == c.member || c.index >= 0 && !m.Reads(c.index) {
			continue
		}
		o, _ := m.Sink().(*consumer)
		cs = append(cs, o)
	}
	return cs
}
