package mqtt

import "isthmus/adapters/mqtt/wire"

// ring holds the publishes of a client that wait for their PUBACK, in the order they came. Whatever journals they
// went to, acks leave from its head. Guarded by the session's output: the order here is the order on the wire.
type ring struct {
	slots []pending // grows up to limit; its length is a power of two
	limit int
	head  uint64 // token of the oldest one
	tail  uint64 // token of the next one
}

type pending struct {
	id   uint16
	done bool
	code wire.Reason
}

// noAck is the token of a publish that is not acknowledged.
const noAck = ^uint64(0)

// push takes a place, or reports that all are taken.
func (r *ring) push(id uint16) (token uint64, ok bool) {
	if r.len() >= r.limit {
		return 0, false
	}
	if r.len() == len(r.slots) {
		r.grow()
	}
	token = r.tail
	r.tail++
	*r.at(token) = pending{id: id}
	return token, true
}

func (r *ring) at(token uint64) *pending { return &r.slots[token&uint64(len(r.slots)-1)] }
func (r *ring) len() int                 { return int(r.tail - r.head) }

func (r *ring) grow() {
	old := *r
	r.slots = make([]pending, max(8, 2*len(r.slots)))
	for t := r.head; t != r.tail; t++ {
		*r.at(t) = *old.at(t)
	}
}

// finish notes the outcome of a publish.
func (r *ring) finish(token uint64, code wire.Reason) {
	if token-r.head < uint64(r.len()) {
		p := r.at(token)
		p.done, p.code = true, code
	}
}

// emit appends the acks that may leave. In version 3 an ack cannot say no: failed reports that one had to.
func (r *ring) emit(dst []byte, v wire.Version) (_ []byte, failed bool) {
	for ; r.head != r.tail; r.head++ {
		p := r.at(r.head)
		if !p.done {
			break
		}
		if v < wire.V5 && p.code >= wire.UnspecifiedError {
			return dst, true
		}
		dst = wire.AppendAck(dst, wire.PUBACK, p.id, p.code, v)
	}
	return dst, false
}

// nudge wakes whoever waits for room, without waiting.
func (*ring) nudge(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
