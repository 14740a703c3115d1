package pulsar

import (
	"isthmus/adapters/pulsar/wire"
	"isthmus/adapters/serve"
	"isthmus/core"
	"isthmus/core/engine"
)

// burst is how much of a round goes out at once: what fits a pooled buffer.
const burst = 48 << 10

// Deliver implements engine.Sink: a round goes out in bursts, each one append and one flush.
func (c *consumer) Deliver(ds []engine.Delivery) {
	c.note(ds)
	out := c.sess.out
	for len(ds) > 0 {
		done := 0
		var failed []*engine.Delivery
		buffered, err := out.Append(func(dst []byte) []byte {
			dst, done, failed = c.appendBurst(dst, ds)
			return dst
		})
		for _, d := range failed {
			c.pass(d)
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return // the reader finds out and leaves; until then the entries are held
		}
		if ds = ds[done:]; len(ds) > 0 {
			continue
		}
		if buffered > highWater {
			buffered = out.Buffered()
		}
		c.grant(buffered)
	}
}

// appendBurst writes one delivery at least, and more until the burst is full.
func (c *consumer) appendBurst(dst []byte, ds []engine.Delivery) (_ []byte, done int, failed []*engine.Delivery) {
	if cap(dst) < burst && sizeOf(ds) > cap(dst)-len(dst) { // do not let append double a small buffer
		large := append(serve.GetLarge(), dst...)
		serve.PutBuffer(dst)
		dst = large
	}
	for start := len(dst); done < len(ds) && (done == 0 || len(dst)-start < burst); done++ {
		var err error
		if dst, err = c.appendDelivery(dst, &ds[done]); err != nil {
			failed = append(failed, &ds[done])
			c.undeliverable(&ds[done], err)
		}
	}
	return dst, done, failed
}

// sizeOf guesses what deliveries take on the wire, up to a burst.
func sizeOf(ds []engine.Delivery) (n int) {
	const around = 64 // frame, ids, and what another protocol's message needs besides
	for i := 0; i < len(ds) && n < burst; i++ {
		n += len(ds[i].Entry.Data) + around
	}
	return n
}

// note remembers what the client holds from now on.
func (c *consumer) note(ds []engine.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range ds {
		e := &ds[i].Entry
		c.heldOf(ds[i].Partition.Index()).add(e.Base, e.Count)
		c.mu.given -= int64(e.Count) - acked(ds[i].Acked)
		if size := int64(len(e.Data)); size < c.mu.size {
			c.mu.size -= (c.mu.size - size + 7) / 8
		} else {
			c.mu.size = size
		}
	}
}

func acked(rs []core.Range) (n int64) {
	for _, r := range rs {
		n += r.Len()
	}
	return n
}

// appendDelivery writes the MESSAGE frames of one entry: one with the bytes as they came, or one for each message of
// another protocol.
func (c *consumer) appendDelivery(dst []byte, d *engine.Delivery) ([]byte, error) {
	e := &d.Entry
	m := wire.Message{ConsumerID: c.id, ID: idOf(d.Partition, e.Base, c.index)}
	if c.many() { // Spec: Pulsar CommandMessage.redelivery_count: 0 on Exclusive and Failover, always
		m.Redelivery = uint32(max(d.Attempt, 0))
	}
	if epoch := c.epoch.Load(); epoch > 0 { // Spec: Pulsar CommandMessage.consumer_epoch: of the last SUBSCRIBE or REDELIVER
		m.HasEpoch, m.Epoch = true, epoch-1
	}
	if e.Format == core.FormatPulsar {
		if len(d.Acked) > 0 {
			m.AckSet = ackSet(e, d.Acked)
		}
		sum, checked, err := stored(e)
		if err != nil {
			return dst, err
		}
		return m.Append(dst, sum, checked), nil
	}
	return c.appendForeign(dst, &m, d)
}

// ackSet has a 1 for each message of the entry that is still to be delivered.
// Spec: Pulsar CommandMessage.ack_set
func ackSet(e *core.Entry, rs []core.Range) []int64 {
	set := make([]int64, (e.Count+63)/64)
	for i := range e.Count {
		set[i/64] |= 1 << (i % 64)
	}
	for _, r := range rs {
		for o := max(r.From, e.Base); o < min(r.To, e.End()); o++ {
			i := o - e.Base
			set[i/64] &^= 1 << (i % 64)
		}
	}
	return set
}

// undeliverable counts and logs an entry that has no Pulsar form.
func (c *consumer) undeliverable(d *engine.Delivery, err error) {
	e := &d.Entry
	c.sess.log.Error("entry not deliverable", "topic", c.target.String(), "group", c.subscription, "offset", e.Base, "err", err)
	c.sess.srv.eng.Metrics().Dropped.WithLabelValues(protocolName, "undecodable").Add(float64(e.Count))
}

// pass returns the permits of an entry that was not delivered, and acknowledges it.
func (c *consumer) pass(d *engine.Delivery) {
	e := &d.Entry
	c.mu.Lock()
	c.mu.stash += int64(e.Count) - acked(d.Acked)
	c.heldOf(d.Partition.Index()).drop(e.Base)
	c.mu.Unlock()
	c.member.Ack(d.Partition.Index(), core.Range{From: e.Base, To: e.End()})
}
