package rocketmq

import (
	"sync"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core/engine"
)

// kept is what the answer to a send or recall needs beside its receipt.
type kept struct {
	half          bool
	recall        bool // the answer names the message that was taken back
	unique, topic string
	due           int64
}

// keeping are the requests of one connection about parked messages that are not answered yet, by opaque. The mutex is a
// leaf.
type keeping struct {
	mu   sync.Mutex
	open map[uint32]kept
}

func (k *keeping) put(opaque int32, x kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		k.open = make(map[uint32]kept)
	}
	k.open[uint32(opaque)] = x
}

func (k *keeping) take(opaque uint32) kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.open[opaque]
	delete(k.open, opaque)
	return x
}

// park hands a message that is not to be seen yet to the engine.
func (s *session) park(h *wire.Header, p *engine.Partition, n *native, born int64, w *timing, topic string) error {
	e := entryOf(n, born)
	s.scratch = n.append(s.scratch[:0])
	e.Handle, e.Data = p.Index(), s.scratch
	if w.wait > 0 && !w.half {
		w.due = s.srv.eng.In(w.wait)
	}
	token := tokenKept | uint64(uint32(h.Opaque))
	if h.Oneway() {
		token |= tokenOneway
	}
	s.kept.put(h.Opaque, kept{half: w.half, unique: string(w.unique), topic: topic, due: w.due})
	s.flight.add(1)
	var err error
	if w.half {
		m := engine.HalfMessage{Check: s.srv.eng.In(w.immune), Due: w.due, Wait: w.wait}
		err = s.producer.PublishHalf(p, &e, m, token)
	} else {
		err = s.producer.PublishAt(p, &e, w.due, token)
	}
	if err != nil {
		s.kept.take(uint32(h.Opaque))
		s.flight.add(-1)
	}
	if cap(s.scratch) > idleBuffer {
		s.scratch = nil
	}
	return err
}

// appendKept answers what park sent off, a decision or a recall.
//
// Spec: RocketMQ SendMessageResponseHeader.transactionId, recallHandle@5.x; RecallMessageResponseHeader@5.x
func (s *session) appendKept(dst []byte, r *engine.Receipt) []byte {
	opaque := uint32(r.Token)
	x := s.kept.take(opaque)
	switch {
	case r.Token&tokenOneway != 0:
		return dst
	case r.Err != nil || r.Token&tokenDecision == 0 && r.Parked == 0: // due by now: an ordinary message
		return s.appendSent(dst, int32(opaque), r)
	}
	a := wire.Begin(dst, wire.Success, int32(opaque), "")
	number, base := r.Parked.Place()
	switch {
	case x.recall:
		a.Str("msgId", x.unique)
	case r.Token&tokenDecision != 0:
	default:
		var id [56]byte
		phys := physOffset(number, base)
		a.Bytes("msgId", wire.AppendMessageID(id[:0], s.store, phys))
		if x.half {
			a.Str("transactionId", x.unique)
		} else {
			handle := wire.RecallHandle{Topic: x.topic, Broker: brokerName, Deliver: x.due, Unique: x.unique, Message: phys}
			a.Bytes("recallHandle", handle.Append(nil))
		}
		s.fillSent(&a, r.Partition, base)
	}
	return a.End()
}
