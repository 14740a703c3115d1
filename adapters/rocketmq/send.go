package rocketmq

import (
	"context"
	"fmt"
	"time"

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

// A send's token is the opaque of its request, so a single send needs no table: the queue and the offset are in the
// receipt; what is parked has a row in keeping. For a batch it is the number of the batch, with tokenBatch and the message's place in it.
const (
	tokenOneway = 1 << 32
	tokenBatch  = 1 << 33
	tokenPlace  = 34

	tokenKept     = 1 << 62 // keeping has more about it
	tokenDecision = 1 << 61 // it is no send
)

// patience is how long a connection is not read while the backlog of a topic with when_full: block has no room. Clients
// wait three seconds for the answer to a send, and their other requests wait behind it.
const patience = 2 * time.Second

func batchToken(id uint32, place int) uint64 {
	return tokenBatch | uint64(id) | uint64(place)<<tokenPlace
}

// sendOne handles codes 10 and 310. The answer leaves when the message is durable.
//
// Spec: RocketMQ RequestCode.SEND_MESSAGE=10, SEND_MESSAGE_V2=310; SendMessageProcessor@5.x
func (s *session) sendOne(_ context.Context, h *wire.Header, body []byte) error {
	m := &s.send
	if err := wire.ParseSend(h, m); err != nil {
		return err
	}
	s.bury(m, time.Now())
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
	w, err := s.timingOf(&n)
	if err != nil {
		return err
	}
	e := entryOf(&n, m.Born)
	p, err := place(t, &e, m.QueueID)
	if err != nil {
		return err
	}
	if w.parks() {
		if w.half {
			s.srv.producers.add(s, string(m.Group), time.Now())
		}
		return s.park(h, p, &n, m.Born, &w, string(m.Topic))
	}
	return s.publish(p, &e, &n, token)
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

// check refuses what the real broker refuses, and what this one cannot do yet.
//
// Spec: RocketMQ DefaultMessageStore.checkMessage, SendMessageProcessor@5.x
func (s *session) check(n *native) error {
	switch {
	case len(n.body) > s.srv.cfg.MaxBody:
		return fmt.Errorf("a body of %d bytes, %d are allowed: %w", len(n.body), s.srv.cfg.MaxBody, core.ErrTooLarge)
	case len(n.properties) > wire.MaxProperties:
		return fmt.Errorf("properties of %d bytes: %w", len(n.properties), core.ErrTooLarge)
	case n.sysFlag&(wire.SysInnerBatch|wire.SysNeedUnwrap) != 0:
		return fmt.Errorf("inner batches: %w", core.ErrUnsupported)
	}
	n.sysFlag &^= wire.SysBornHostV6 | wire.SysStoreHostV6 // set from the addresses when it is encoded
	return nil
}

func entryOf(n *native, born int64) core.Entry {
	e := core.Entry{Count: 1, Format: core.FormatRocketMQ, PublishTime: born}
	if key, has := keyOf(n.properties); has {
		e.Key, e.Flags = key, core.FlagHasKey
	}
	return e
}

func place(t *engine.Topic, e *core.Entry, queue int32) (*engine.Partition, error) {
	if queue >= t.Logs() {
		return nil, fmt.Errorf("queue %d of a topic with %d: %w", queue, t.Logs(), core.ErrInvalid)
	}
	return t.Partition(t.Place(e.Key, e.Flags&core.FlagHasKey != 0, queue)), nil
}

// publish hands one message to the engine.
func (s *session) publish(p *engine.Partition, e *core.Entry, n *native, token uint64) error {
	s.scratch = n.append(s.scratch[:0])
	e.Handle, e.Data = p.Index(), s.scratch
	s.flight.add(1)
	err := s.producer.Publish(p, e, token)
	if err != nil {
		s.flight.add(-1)
		s.target = sendTarget{} // the topic may be another one by now
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
		if rs[i].Token&tokenBatch != 0 && rs[i].Token&tokenKept == 0 {
			s.sentBatch(rs[i], 1)
		}
	}
	s.out.Append(func(dst []byte) []byte {
		for i := range rs {
			if r := &rs[i]; r.Token&tokenKept != 0 {
				dst = s.appendKept(dst, r)
			} else if r.Token&(tokenBatch|tokenOneway) == 0 {
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
