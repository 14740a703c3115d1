package rocketmq

import (
	"context"
	"fmt"
	"sync"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// sendTarget remembers the last topic that a connection sent to: producers rarely change it.
type sendTarget struct {
	name  string
	topic *engine.Topic
}

// A send's token is the opaque of its request, or the number of its batch with tokenBatch; so a single send needs no
// table. The queue and the offset are in the receipt.
const (
	tokenOneway = 1 << 32
	tokenBatch  = 1 << 33
)

// sendOne handles codes 10 and 310. The answer leaves when the message is durable.
//
// Spec: RocketMQ RequestCode.SEND_MESSAGE=10, SEND_MESSAGE_V2=310; SendMessageProcessor@5.x
func (s *session) sendOne(_ context.Context, h *wire.Header, body []byte) error {
	m := &s.send
	if err := wire.ParseSend(h, m); err != nil {
		return err
	}
	t, err := s.targetOf(m)
	if err != nil {
		return err
	}
	token := uint64(uint32(h.Opaque))
	if h.Oneway() {
		token |= tokenOneway
	}
	n := native{sysFlag: m.SysFlag, flag: m.Flag, reconsume: m.Reconsume, born: s.remote, properties: m.Properties, body: body}
	if err := s.check(&n); err != nil {
		return err
	}
	p, err := place(t, &n, m.QueueID)
	if err != nil {
		return err
	}
	return s.publish(p, &n, m.Born, token)
}

// sendBatch handles code 320: n entries in one queue, answered together.
//
// Spec: RocketMQ RequestCode.SEND_BATCH_MESSAGE=320; SendMessageProcessor.sendBatchMessage@5.x
func (s *session) sendBatch(_ context.Context, h *wire.Header, body []byte) error {
	m := &s.send
	if err := wire.ParseSend(h, m); err != nil {
		return err
	}
	if isRetry(string(m.Topic)) {
		return fmt.Errorf("a batch to a retry topic: %w", errIllegalMessage)
	}
	t, err := s.targetOf(m)
	if err != nil {
		return err
	}
	n := native{sysFlag: m.SysFlag, reconsume: m.Reconsume, born: s.remote}
	count, err := s.checkBatch(&n, body)
	if err != nil {
		return err
	}
	queue, published := m.QueueID, 0
	var p *engine.Partition
	b := &batch{opaque: h.Opaque, oneway: h.Oneway(), left: count}
	token := tokenBatch | uint64(s.batches.open(b))
	for rest := body; len(rest) > 0; {
		var e wire.BatchEntry
		e, rest, _ = wire.NextBatchEntry(rest) // checkBatch has been over it
		n.flag, n.body, n.properties = e.Flag, e.Body, e.Properties
		if p == nil {
			if p, err = place(t, &n, queue); err != nil {
				s.batches.close(uint32(token))
				return err
			}
		}
		if err := s.publish(p, &n, m.Born, token); err != nil {
			// What is on its way cannot be called back; the rest of the batch fails with it.
			s.sentBatch(uint32(token), engine.Receipt{Partition: p, Err: err}, count-published)
			return nil
		}
		published++
	}
	return nil
}

// checkBatch goes over a batch before any of it is stored: a malformed batch is refused whole.
func (s *session) checkBatch(n *native, body []byte) (count int, err error) {
	for rest := body; len(rest) > 0; count++ {
		var e wire.BatchEntry
		if e, rest, err = wire.NextBatchEntry(rest); err != nil {
			return 0, fmt.Errorf("%w: %w", errIllegalMessage, err)
		}
		n.body, n.properties = e.Body, e.Properties
		if err := s.check(n); err != nil {
			return 0, err
		}
	}
	if count == 0 {
		return 0, fmt.Errorf("an empty batch: %w", errIllegalMessage)
	}
	return count, nil
}

// targetOf finds the topic, or creates it where that is allowed.
func (s *session) targetOf(m *wire.Send) (*engine.Topic, error) {
	if s.target.topic != nil && s.target.name == string(m.Topic) {
		return s.target.topic, nil
	}
	name := string(m.Topic)
	n, err := s.srv.resolve(name)
	if err != nil {
		return nil, err
	}
	if err := s.allow(auth.Produce, n.String()); err != nil {
		return nil, err
	}
	t, err := s.srv.ensureTopic(name)
	if err != nil {
		return nil, err
	}
	s.target = sendTarget{name, t}
	return t, nil
}

// check refuses what the real broker refuses, and what this one cannot do yet: a message that must wait is never
// delivered at once instead.
//
// Spec: RocketMQ DefaultMessageStore.checkMessage, SendMessageProcessor@5.x
func (s *session) check(n *native) error {
	switch {
	case len(n.body) > s.srv.cfg.MaxBody:
		return fmt.Errorf("a body of %d bytes, %d are allowed: %w", len(n.body), s.srv.cfg.MaxBody, core.ErrTooLarge)
	case len(n.properties) > wire.MaxProperties:
		return fmt.Errorf("properties of %d bytes: %w", len(n.properties), core.ErrTooLarge)
	case n.sysFlag&wire.SysTranMask != 0:
		return fmt.Errorf("transactional messages: %w", core.ErrUnsupported)
	case n.sysFlag&(wire.SysInnerBatch|wire.SysNeedUnwrap) != 0:
		return fmt.Errorf("inner batches: %w", core.ErrUnsupported)
	}
	n.sysFlag &^= wire.SysBornHostV6 | wire.SysStoreHostV6 // set from the addresses when it is encoded
	for b := n.properties; ; {
		name, value, rest, ok := wire.NextProperty(b)
		if !ok {
			return nil
		}
		b = rest
		switch string(name) {
		case wire.PropTransaction:
			if string(value) == "true" {
				return fmt.Errorf("transactional messages: %w", core.ErrUnsupported)
			}
		case wire.PropDelay:
			if len(value) > 0 && value[0] != '0' && value[0] != '-' {
				return fmt.Errorf("delay levels: %w", core.ErrUnsupported)
			}
		case wire.PropTimerDelaySec, wire.PropTimerDelayMs, wire.PropTimerDeliverMs, wire.PropStartDeliver:
			return fmt.Errorf("timer messages (%s): %w", name, core.ErrUnsupported)
		}
	}
}

func place(t *engine.Topic, n *native, queue int32) (*engine.Partition, error) {
	if queue >= t.Logs() {
		return nil, fmt.Errorf("queue %d of a topic with %d: %w", queue, t.Logs(), core.ErrInvalid)
	}
	key, has := keyOf(n.properties)
	return t.Partition(t.Place(key, has, queue)), nil
}

// publish hands one message to the engine.
func (s *session) publish(p *engine.Partition, n *native, born int64, token uint64) error {
	s.scratch = n.append(s.scratch[:0])
	e := core.Entry{Count: 1, Format: core.FormatRocketMQ, PublishTime: born, Handle: p.Index(), Data: s.scratch}
	if key, has := keyOf(n.properties); has {
		e.Key, e.Flags = key, core.FlagHasKey
	}
	s.flight.add(1)
	err := s.producer.Publish(p, &e, token)
	if err != nil {
		s.flight.add(-1)
	}
	if cap(s.scratch) > idleBuffer {
		s.scratch = nil
	}
	return err
}

// sent is called by committers: it answers, all receipts of a block in one write.
//
// Spec: I1: a send result leaves only when the block is durable.
func (s *session) sent(rs []engine.Receipt) {
	for i := range rs {
		if rs[i].Token&tokenBatch != 0 {
			s.sentBatch(uint32(rs[i].Token), rs[i], 1)
		}
	}
	s.out.Append(func(dst []byte) []byte {
		for i := range rs {
			if r := &rs[i]; r.Token&(tokenBatch|tokenOneway) == 0 {
				dst = s.appendSent(dst, int32(uint32(r.Token)), r)
			}
		}
		return dst
	})
	s.out.Flush() // a failed connection is its reader's business
	s.flight.add(-len(rs))
}

func (s *session) appendSent(dst []byte, opaque int32, r *engine.Receipt) []byte {
	if r.Err != nil {
		code, _ := codeOf(r.Err)
		a := wire.Begin(dst, code, opaque, r.Err.Error())
		a.Body()
		return a.End()
	}
	a := wire.Begin(dst, wire.Success, opaque, "")
	var id [56]byte
	a.Bytes("msgId", wire.AppendMessageID(id[:0], s.store, physOffset(r.Partition.Number(), r.Base)))
	s.fillSent(&a, r.Partition, r.Base)
	return a.End()
}

// fillSent adds what every send result has.
//
// Spec: RocketMQ SendMessageResponseHeader@5.x
func (s *session) fillSent(a *wire.Answer, p *engine.Partition, base core.Offset) {
	a.Int("queueId", int64(p.Index()))
	a.Int("queueOffset", base)
	a.Str("MSG_REGION", "DefaultRegion")
	a.Str("TRACE_ON", "true")
	a.Body()
}

// batch is a batch send on its way; left and what follows are guarded by batches.mu.
type batch struct {
	opaque int32
	oneway bool
	left   int
	bases  []core.Offset
	err    error
}

// batches are the batch sends of one connection that are not answered yet. The mutex is a leaf.
type batches struct {
	mu struct {
		sync.Mutex
		next uint32
		open map[uint32]*batch
	}
}

func (b *batches) open(x *batch) uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.open == nil {
		b.mu.open = make(map[uint32]*batch)
	}
	b.mu.next++
	b.mu.open[b.mu.next] = x
	return b.mu.next
}

func (b *batches) close(id uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.open, id)
}

// settle notes a receipt that counts for n messages and returns the batch when it was the last.
func (b *batches) settle(id uint32, r engine.Receipt, n int) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.mu.open[id]
	if x == nil {
		return nil
	}
	if r.Err != nil {
		x.err = r.Err
	} else {
		x.bases = append(x.bases, r.Base)
	}
	if x.left -= n; x.left > 0 {
		return nil
	}
	delete(b.mu.open, id)
	return x
}

func (s *session) sentBatch(id uint32, r engine.Receipt, n int) {
	x := s.batches.settle(id, r, n)
	if x == nil || x.oneway {
		return
	}
	s.out.Append(func(dst []byte) []byte {
		if x.err != nil {
			return s.appendSent(dst, x.opaque, &engine.Receipt{Err: x.err})
		}
		var ids []byte
		for i, base := range x.bases {
			if i > 0 {
				ids = append(ids, ',')
			}
			ids = wire.AppendMessageID(ids, s.store, physOffset(r.Partition.Number(), base))
		}
		a := wire.Begin(dst, wire.Success, x.opaque, "")
		a.Bytes("msgId", ids)
		s.fillSent(&a, r.Partition, x.bases[0])
		return a.End()
	})
}
