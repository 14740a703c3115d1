package mqtt

import (
	"slices"

	"isthmus/adapters/mqtt/wire"
)

// outbox is what is on its way to one client: a window of QoS 1 messages it has not acknowledged, and a queue of
// those that wait for room. Guarded by the session's output: the order here is the order on the wire.
type outbox struct {
	window    int      // the client's receive maximum, or ours
	slots     []flight // by packet id - 1; grows up to window
	last      int      // where the last id was taken, so that an id is not used again at once
	inflight  int
	queue     []waiting
	plain     int // of the queue, those of plain subscriptions
	bytes     int // their payloads
	maxQueued int
	maxBytes  int
}

// flight is a message that waits for its PUBACK.
type flight struct {
	used  bool
	lease lease
}

// waiting is a message that waits for room. What a member holds is bounded by its permits.
type waiting struct {
	msg   *outgoing
	fwd   wire.Forward
	lease lease
}

// outgoing is one message on its way to several clients. The first client that cannot take it now makes a copy
// that all of them wait with.
type outgoing struct {
	wire.Message
	expiry int64 // unix ms, 0: none
	kept   *outgoing
}

func (m *outgoing) keep() *outgoing {
	if m.kept == nil {
		c := *m
		c.Props, c.Payload = slices.Clone(m.Props), slices.Clone(m.Payload)
		m.kept, c.kept = &c, &c
	}
	return m.kept
}

// refresh sets what remains of the message's life; false when nothing does.
func (m *outgoing) refresh(now int64) bool {
	if m.expiry == 0 {
		return true
	}
	m.Expires, m.Expiry = true, uint32(min(max(m.expiry-now+999, 0)/1000, 1<<32-1))
	return now < m.expiry
}

type outcome uint8

const (
	sent     outcome = iota
	queued           // it waits for room
	dropped          // QoS 0, and the client does not keep up
	tooLarge         // beyond the client's maximum packet size: as if delivered
	overflow         // the queue is full
)

func (o *outbox) init(window int, cfg *Config) {
	o.window, o.maxQueued, o.maxBytes = window, cfg.MaxQueued, cfg.MaxQueuedBytes
}

// full tells whether a plain subscription may queue no more. One message fits always.
func (o *outbox) full(size int) bool {
	return o.plain >= o.maxQueued || o.plain > 0 && o.bytes+size > o.maxBytes
}

// push appends the packet, or queues it. congested says that the socket is behind.
// Spec: MQTT5 3.3.4 [MQTT-3.3.4-9]; MQTT5 4.9.0 [MQTT-4.9.0-2]
func (o *outbox) push(dst []byte, s *session, m *outgoing, f wire.Forward, l lease, congested bool) ([]byte, outcome) {
	// Spec: MQTT5 3.1.2.11.4 [MQTT-3.1.2-24] [MQTT-3.1.2-25]
	if s.maxPacket > 0 && wire.ForwardSize(&m.Message, &f, s.version) > s.maxPacket {
		return dst, tooLarge
	}
	room := !congested && (len(o.queue) == 0 && (f.QoS == 0 || o.inflight < o.window) || f.QoS == 0 && l.member == nil)
	switch {
	case room:
		return o.send(dst, s, m, f, l), sent
	case f.QoS == 0 && l.member == nil:
		return dst, dropped
	case l.member == nil && o.full(len(m.Payload)):
		return dst, overflow
	}
	if congested {
		s.starved.Store(true)
	}
	f.SubscriptionIDs = slices.Clone(f.SubscriptionIDs)
	o.queue = append(o.queue, waiting{m.keep(), f, l})
	if l.member == nil {
		o.plain++
		o.bytes += len(m.Payload)
	}
	return dst, queued
}

func (o *outbox) send(dst []byte, s *session, m *outgoing, f wire.Forward, l lease) []byte {
	if f.QoS > 0 {
		f.ID = o.take(l)
	}
	return wire.AppendForward(dst, &m.Message, &f, s.version)
}

// fewIDs are used in turn even by a client that acknowledges at once, so that a late second PUBACK meets no new message.
const fewIDs = 8

// take gives a free packet id. Room in the window means that there is one.
// Spec: MQTT5 2.2.1 [MQTT-2.2.1-4]
func (o *outbox) take(l lease) uint16 {
	o.inflight++
	if len(o.slots) < o.window && (o.inflight > len(o.slots) || len(o.slots) < fewIDs) {
		o.slots = append(o.slots, flight{true, l})
		return uint16(len(o.slots))
	}
	for {
		o.last = (o.last + 1) % len(o.slots)
		if sl := &o.slots[o.last]; !sl.used {
			*sl = flight{true, l}
			return uint16(o.last + 1)
		}
	}
}

// ack frees a packet id; false when it is not in flight.
func (o *outbox) ack(id uint16) (lease, bool) {
	i := int(id) - 1
	if i < 0 || i >= len(o.slots) || !o.slots[i].used {
		return lease{}, false
	}
	l := o.slots[i].lease
	o.slots[i] = flight{}
	o.inflight--
	return l, true
}

// drain sends from the queue while there is room. more tells that it stopped for the number of bytes alone.
// Spec: MQTT5 4.6.0 [MQTT-4.6.0-5]
func (o *outbox) drain(dst []byte, s *session, now func() int64) (_ []byte, d drained, more bool) {
	i := 0
	for ; i < len(o.queue); i++ {
		if more = len(dst) >= s.srv.cfg.MaxOutput/4; more {
			break
		}
		w := &o.queue[i]
		if w.msg.expiry > 0 {
			m := *w.msg
			if !m.refresh(now()) {
				d.done, d.expired = append(d.done, w.lease), d.expired+1
				o.forget(w)
				continue
			}
			w.msg = &m
		}
		if w.fwd.QoS > 0 && o.inflight >= o.window {
			break
		}
		dst = o.send(dst, s, w.msg, w.fwd, w.lease)
		if w.fwd.QoS == 0 {
			d.done = append(d.done, w.lease)
		}
		o.forget(w)
	}
	if o.queue = slices.Delete(o.queue, 0, i); len(o.queue) == 0 {
		o.queue = nil
	}
	return dst, d, more
}

// drained is what a drain finished: written at QoS 0, or expired.
type drained struct {
	done    []lease
	expired int
}

// drop forgets what waits for a member that left: its group gives it to another.
func (o *outbox) drop(m *member) {
	o.queue = slices.DeleteFunc(o.queue, func(w waiting) bool { return w.lease.member == m })
}

func (o *outbox) forget(w *waiting) {
	if w.lease.member == nil {
		o.plain--
		o.bytes -= len(w.msg.Payload)
	}
}
