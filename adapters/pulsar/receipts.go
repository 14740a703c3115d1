package pulsar

import (
	"errors"
	"sync"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core/engine"
)

// ring holds the publishes of one producer that have no receipt yet, in the order of sending. The reader reserves at the
// end, committers settle in any order, and receipts leave from the head.
// mu is held across Out.Append, which gives bytes the order of the ring; nothing else is called under it.
// Spec: Pulsar CommandSendReceipt: in send order per producer; one from the future makes Go and Java drop the connection
type ring struct {
	p     *producer
	limit uint64
	emit  func(dst []byte) []byte // bound once, so that a receipt allocates nothing

	mu struct {
		sync.Mutex
		room       sync.Cond
		slots      []pending // a power of two
		head, tail uint64    // positions; a position is the token of a publish
		closed     bool      // nothing is accepted or answered any more
		finishing  bool      // SUCCESS is due when the ring is empty
		request    uint64
	}
}

type pending struct {
	sequence, highest uint64
	hasHighest        bool
	left              int // entries that are not durable yet; 0 = settled
	ledger            uint64
	entry             uint64
	err               error
}

func (r *ring) init(p *producer, limit int) {
	r.p, r.limit = p, uint64(limit)
	r.mu.room.L = &r.mu
	r.mu.slots = make([]pending, 4)
	r.emit = r.append
}

func (r *ring) slot(pos uint64) *pending { return &r.mu.slots[pos&uint64(len(r.mu.slots)-1)] }

// reserve takes the next place for a SEND. While the ring is full it waits, and so its connection is not read. ok is
// false when the producer is closed: the SEND is swallowed.
func (r *ring) reserve(c *wire.Send) (token uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.mu.tail-r.mu.head >= r.limit && !r.mu.closed {
		r.mu.room.Wait()
	}
	if r.mu.closed {
		return 0, false
	}
	if r.mu.tail-r.mu.head == uint64(len(r.mu.slots)) {
		r.grow()
	}
	token = r.mu.tail
	*r.slot(token) = pending{left: 1, sequence: c.SequenceID, highest: c.Highest, hasHighest: c.HasHighest && c.Highest >= c.SequenceID}
	r.mu.tail++
	return token, true
}

// full tells whether reserve would wait.
func (r *ring) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.tail-r.mu.head >= r.limit
}

func (r *ring) grow() {
	old := r.mu.slots
	r.mu.slots = make([]pending, 2*len(old))
	for pos := r.mu.head; pos < r.mu.tail; pos++ {
		*r.slot(pos) = old[pos&uint64(len(old)-1)]
	}
}

// done is called by committers: these are durable, or failed.
func (r *ring) done(rs []engine.Receipt) {
	r.mu.Lock()
	for i := range rs {
		x := &rs[i]
		number, base := x.Partition.Number(), x.Base
		if x.Parked != 0 { // its place in the log is not known yet; no message ever has this id
			number, base = x.Parked.Place()
		}
		r.settle(x.Token, x.Err, uint64(number)+1, uint64(base))
	}
	closed := r.leave()
	r.mu.Unlock()
	_ = r.p.sess.out.Flush()
	if closed {
		r.p.sess.srv.release(r.p)
	}
}

// fail settles a publish that was not accepted. The reader calls it, and flushes later.
func (r *ring) fail(token uint64, err error) {
	r.mu.Lock()
	r.settle(token, err, 0, 0)
	closed := r.leave()
	r.mu.Unlock()
	if closed {
		r.p.sess.srv.release(r.p)
	}
}

func (r *ring) settle(token uint64, err error, ledger, entry uint64) {
	first := token&follower == 0
	token &^= follower
	if token < r.mu.head { // the ring was given up meanwhile
		return
	}
	s := r.slot(token)
	s.left--
	if first {
		s.ledger, s.entry = ledger, entry
	}
	if err != nil {
		s.err = err
	}
}

// follower marks the token of a batch's second and further entries: the receipt names the first.
const follower = 1 << 63

// expect says that a publish became n entries.
func (r *ring) expect(token uint64, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token >= r.mu.head {
		r.slot(token).left = n
	}
}

// giveUp says that the last n entries of a publish were not accepted.
func (r *ring) giveUp(token uint64, n int, err error) {
	r.mu.Lock()
	if token >= r.mu.head {
		s := r.slot(token)
		s.left -= n
		s.err = err
	}
	closed := r.leave()
	r.mu.Unlock()
	if closed {
		r.p.sess.srv.release(r.p)
	}
}

// leave lets go what is settled at the head, and tells whether this closed the producer.
func (r *ring) leave() (closed bool) {
	if r.mu.closed || r.mu.head == r.mu.tail || r.slot(r.mu.head).left > 0 {
		return false
	}
	if _, err := r.p.sess.out.Append(r.emit); err != nil {
		r.append(nil) // nobody reads it, but the ring has to move
	}
	r.mu.room.Broadcast()
	return r.mu.closed
}

// append writes the answers of the settled head. It runs under Out's lock.
func (r *ring) append(dst []byte) []byte {
	for r.mu.head < r.mu.tail && !r.mu.closed {
		s := r.slot(r.mu.head)
		if s.left > 0 {
			return dst
		}
		r.mu.head++
		if s.err != nil {
			dst = r.appendFailure(dst, s)
			continue
		}
		c := wire.SendReceipt{ProducerID: r.p.id, SequenceID: s.sequence, Highest: s.highest, HasHighest: s.hasHighest}
		c.ID = wire.MessageID{Ledger: s.ledger, Entry: s.entry, Partition: -1, BatchIndex: -1}
		dst = c.Append(dst)
	}
	if r.mu.finishing && r.mu.head == r.mu.tail {
		r.mu.finishing, r.mu.closed = false, true
		dst = wire.Append(dst, wire.TypeSuccess, &wire.Success{RequestID: r.mu.request})
	}
	return dst
}

// appendFailure answers a publish that failed. What the message itself is to blame for is a SEND_ERROR; everything else
// closes the producer, so that the client comes back and sends again, and what it sent meanwhile is swallowed.
// Spec: Pulsar CommandSendError towards Go: NotAllowedError leaves a producer that is dead without knowing it
func (r *ring) appendFailure(dst []byte, s *pending) []byte {
	code := codeOf(s.err)
	own := errors.Is(s.err, errChecksum) || errors.Is(s.err, errMetadata) || code == wire.NotAllowedError
	if own && (code != wire.NotAllowedError || !r.p.sess.client.isGo) {
		return wire.Append(dst, wire.TypeSendError, &wire.SendError{
			ProducerID: r.p.id, SequenceID: max(s.sequence, s.highest), Code: code, Message: s.err.Error(),
		})
	}
	r.p.sess.log.Warn("producer closed", "topic", r.p.key.topic, "producer", r.p.name, "err", s.err)
	r.mu.closed = true
	r.mu.head = r.mu.tail
	return wire.Append(dst, wire.TypeCloseProducer, &wire.Close{ID: r.p.id, RequestID: wire.NoRequest})
}

// finish answers a client's CLOSE_PRODUCER as soon as the ring is empty. Nothing more is accepted.
func (r *ring) finish(request uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.head == r.mu.tail {
		r.mu.closed = true
		r.p.sess.send(wire.TypeSuccess, &wire.Success{RequestID: request})
		return
	}
	r.mu.finishing, r.mu.request = true, request
}

func (r *ring) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.closed
}

// wait returns when the ring is empty.
func (r *ring) wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.mu.head < r.mu.tail {
		r.mu.room.Wait()
	}
}
