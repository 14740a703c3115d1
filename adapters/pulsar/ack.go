package pulsar

import (
	"errors"
	"fmt"
	"math/bits"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// ACK. Ids that mean nothing here (already acknowledged, of another topic, not there yet) are acknowledged in silence; an
// unknown consumer gets no answer.
// Deviates: transactions are refused.
// Spec: Pulsar CommandAck → CommandAckResponse when a request id is there
func (s *session) acknowledge(b []byte) error {
	if err := s.ack.Parse(b); err != nil {
		return err
	}
	q := &s.ack
	c := s.consumer(q.ConsumerID)
	if c == nil {
		return nil
	}
	var err error
	switch {
	case q.Txn:
		err = fmt.Errorf("acknowledgement in a transaction: %w", core.ErrUnsupported)
	case q.Type == wire.AckCumulative:
		c.ackThrough(q.IDs)
	default:
		c.ackEach(q.IDs)
	}
	if q.ValidationError {
		s.log.Warn("client could not read a message", "topic", c.target.String(), "group", c.subscription, "ids", len(q.IDs))
	}
	if q.HasRequestID {
		r := wire.AckResponse{ConsumerID: c.id, RequestID: q.RequestID}
		if err != nil { // Spec: Pulsar CommandAckResponse.message: without it Go takes an error for success
			r.Code, r.HasCode, r.Message = uint64(codeOf(err)), true, err.Error()
		}
		s.send(wire.TypeAckResponse, &r)
	}
	return nil
}

// ackEach acknowledges entries, or the messages of a batch whose bits are cleared. Neighbours go to the engine as one.
func (c *consumer) ackEach(ids []wire.MessageID) {
	var run core.Range
	var part *engine.Partition
	flush := func() {
		if part != nil && run.Len() > 0 {
			c.member.Ack(part.Index(), run)
		}
	}
	for i := range ids {
		id := &ids[i]
		p := c.partitionOf(id)
		if p == nil {
			continue
		}
		r, ok := c.entry(p, id)
		if !ok {
			continue
		}
		if len(id.AckSet) > 0 {
			c.ackBits(p, r, id.AckSet)
			continue
		}
		c.forget(p, r.From)
		if p == part && r.From == run.To {
			run.To = r.To
			continue
		}
		flush()
		part, run = p, r
	}
	flush()
}

// ackBits acknowledges those messages of a batch whose bit is 0.
// Spec: Pulsar MessageIdData.ack_set: 1 = not acknowledged
func (c *consumer) ackBits(p *engine.Partition, r core.Range, set []int64) {
	left := false
	for o := r.From; o < r.To; {
		from := o
		for o < r.To && !bit(set, o-r.From) {
			o++
		}
		if o > from {
			c.member.Ack(p.Index(), core.Range{From: from, To: o})
		}
		for o < r.To && bit(set, o-r.From) {
			o++
			left = true
		}
	}
	if !left {
		c.forget(p, r.From)
	}
}

func bit(set []int64, i int64) bool {
	return i/64 < int64(len(set)) && uint64(set[i/64])>>(i%64)&1 == 1
}

// ackThrough acknowledges everything up to and including one id. On subscriptions of many
// consumers that means nothing.
// Spec: Pulsar CommandAck Cumulative: exactly one id; ignored on Shared and Key_Shared, and answered as success
func (c *consumer) ackThrough(ids []wire.MessageID) {
	if len(ids) != 1 || c.many() {
		return
	}
	p := c.partitionOf(&ids[0])
	if p == nil {
		return
	}
	at := core.Offset(ids[0].Entry)
	if _, end := p.Bounds(); at < 0 || at >= end { // "the one before the first", or one that is not there yet
		return
	}
	r := c.around(p, at)
	next := r.To
	if set := ids[0].AckSet; len(set) > 0 && r.From == at {
		next = min(r.From+firstBit(set), r.To)
	}
	c.mu.Lock()
	c.heldOf(p.Index()).dropBelow(next)
	if next < r.To { // a part of it is still out
		c.heldOf(p.Index()).add(r.From, int32(r.Len()))
	}
	c.mu.Unlock()
	c.member.AckThrough(p.Index(), next)
}

// firstBit is the index of the first message that is not acknowledged.
func firstBit(set []int64) int64 {
	for i, w := range set {
		if w != 0 {
			return int64(i*64 + bits.TrailingZeros64(uint64(w)))
		}
	}
	return int64(len(set) * 64)
}

// partitionOf is the partition that an id is about, nil when it is none of this consumer's.
func (c *consumer) partitionOf(id *wire.MessageID) *engine.Partition {
	if c.part != nil {
		if id.Ledger == ledgerOf(c.part) {
			return c.part
		}
		return nil
	}
	if id.Ledger == 0 || id.Ledger > 1<<32 {
		return nil
	}
	if p := c.sess.srv.eng.PartitionByNumber(uint32(id.Ledger - 1)); p != nil && p.Topic() == c.topic {
		return p
	}
	return nil
}

// entry is the range of an entry that a client names. What this consumer does not hold was given to another one, or before
// it reconnected: then the log tells how many messages it has.
func (c *consumer) entry(p *engine.Partition, id *wire.MessageID) (core.Range, bool) {
	base := core.Offset(id.Entry)
	if base < 0 {
		return core.Range{}, false
	}
	c.mu.Lock()
	n := c.heldOf(p.Index()).count(base)
	c.mu.Unlock()
	if n > 0 {
		return core.Range{From: base, To: base + int64(n)}, true
	}
	if c.mode == core.KeyShared { // it may be one message of a batch, whose others went elsewhere
		return core.Range{From: base, To: base + 1}, true
	}
	r := c.read(p, base)
	return r, r.From == base && r.Len() > 0
}

// around is the range of the entry that an offset lies in; empty after it when there is none.
func (c *consumer) around(p *engine.Partition, at core.Offset) core.Range {
	c.mu.Lock()
	s, ok := c.heldOf(p.Index()).covering(at)
	c.mu.Unlock()
	if ok {
		return core.Range{From: s.base, To: s.base + int64(s.count)}
	}
	return c.read(p, at)
}

// read asks the log for the entry that an offset lies in.
func (c *consumer) read(p *engine.Partition, at core.Offset) core.Range {
	es, err := p.Read(c.sess.ctx, at, 1, 1)
	if err != nil && !errors.Is(err, core.ErrOffsetOutOfRange) {
		c.sess.log.Warn("entry of an acknowledgement not readable", "topic", c.target.String(), "offset", at, "err", err)
	}
	if len(es) == 0 || es[0].Base > at {
		_, next := p.Bounds()
		at = min(at, next)
		return core.Range{From: at, To: at}
	}
	return core.Range{From: es[0].Base, To: es[0].End()}
}

func (c *consumer) forget(p *engine.Partition, base core.Offset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heldOf(p.Index()).drop(base)
}

// REDELIVER_UNACKNOWLEDGED_MESSAGES. There is no answer. On Exclusive and Failover everything that is not acknowledged
// comes again, whatever the ids.
// Spec: Pulsar CommandRedeliverUnacknowledgedMessages
func (s *session) redeliver(b []byte) error {
	var q wire.Redeliver
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	c := s.consumer(q.ConsumerID)
	if c == nil {
		return nil
	}
	if q.HasEpoch {
		c.epoch.Store(epochOf(true, q.Epoch))
	}
	if !c.many() || len(q.IDs) == 0 {
		c.mu.Lock()
		for i := range c.held {
			c.held[i].clear()
		}
		c.mu.Unlock()
		c.member.NackAll()
		return nil
	}
	for i := range q.IDs {
		if p := c.partitionOf(&q.IDs[i]); p != nil {
			base := core.Offset(q.IDs[i].Entry)
			c.forget(p, base)
			c.member.Nack(p.Index(), base)
		}
	}
	return nil
}
