package pulsar

import (
	"net"
	"testing"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// session is a session without a reader, and the client's end of it.
func (b *bed) session(t *testing.T) (*session, *raw) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(b.srv, ours)
	s.ctx, s.client = t.Context(), client{connected: true, isGo: true, protocol: 20}
	t.Cleanup(func() {
		peer.Close()
		s.leave(false)
		s.out.Close(0)
	})
	return s, rawOf(t, peer)
}

// joined is a consumer that has a seat, and whose session does not know it yet.
func joined(t *testing.T, s *session, q *wire.Subscribe) *consumer {
	t.Helper()
	c, err := s.newConsumer(q)
	if err == nil {
		err = c.join(s.ctx, q)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A group that ends, or is moved by another's SEEK, while a consumer is just joining it: the consumer comes back, and
// does not wait for ever at a seat that is gone.
func TestClosedWhileJoining(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *bed, c *consumer){
		"group deleted": func(t *testing.T, b *bed, c *consumer) {
			if err := c.topic.DeleteGroup("sub"); err != nil {
				t.Fatal(err)
			}
		},
		"seek of another": func(t *testing.T, b *bed, c *consumer) {
			other := dial(t, b)
			q := subscription("joining", "sub")
			q.SubType = wire.SubShared
			other.subscribe(q)
			c.member = nil // the joining session has not written it yet
			other.send(wire.TypeSeek, &wire.Seek{ConsumerID: 1, RequestID: other.id(), HasTime: true, Time: 1})
			other.success()
			if n := len(c.group.Consumers()); n != 0 {
				t.Errorf("%d seats are taken after the seek", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, setup{})
			s, r := b.session(t)
			q := subscription("joining", "sub")
			q.SubType = wire.SubShared
			c := joined(t, s, q)
			end(t, b, c)
			s.admit(s.ctx, 9, c, nil)
			if err := s.out.Flush(); err != nil {
				t.Fatal(err)
			}
			r.want(wire.TypeSuccess)
			r.want(wire.TypeCloseConsumer)
			if s.consumer(1) != nil {
				t.Error("the session knows a consumer without a seat")
			}
		})
	}
}

// What has no Pulsar form is passed over, also when the client says nothing any more.
func TestUndeliverableIsPassedOver(t *testing.T) {
	b := newBed(t, setup{})
	part := b.Topic(t, "odd", 0).Partition(0)
	const n = 50
	done := make(chan struct{}, n)
	pub := b.Engine.NewProducer("test", func(rs []engine.Receipt) {
		for range rs {
			done <- struct{}{}
		}
	})
	for range n {
		if err := pub.Publish(part, &core.Entry{Count: 1, Format: core.FormatRocketMQ, Data: []byte("no decoder")}, 0); err != nil {
			t.Fatal(err)
		}
		<-done
	}
	r := dial(t, b)
	q := subscription("odd", "sub")
	q.Earliest = 1
	r.subscribe(q)
	r.flow(1, 1)
	eventually(t, "all of it is acknowledged", func() bool { return b.mark(t, "odd", "sub", 0) == n })
	r.producer("odd", "")
	r.publish(1, "even")
	if m := r.message(); string(m.payload.Body) != "even" {
		t.Errorf("%q", m.payload.Body)
	}
}

// A client that takes and never acknowledges costs a bounded amount.
func TestHeldIsBounded(t *testing.T) {
	var h held
	for i := range int64(3 * maxHeld) {
		h.add(i, 1)
		if i%3 == 0 {
			h.drop(i)
		}
	}
	h.rest = nil
	for i := range int64(3 * maxHeld) {
		h.add(i-4*maxHeld, 1)
	}
	if len(h.queue) > maxHeld || len(h.rest) > maxHeld {
		t.Errorf("%d and %d are held", len(h.queue), len(h.rest))
	}
	gone := 0
	for _, s := range h.queue {
		if s.count == 0 {
			gone++
		}
	}
	if last := int64(3*maxHeld - 1); gone != h.gone || h.count(last) != 1 || h.count(0) != 0 {
		t.Errorf("%d gone, counted %d", gone, h.gone)
	}
}

// A client whose producer was closed may be back before the server has given the name free.
func TestClosedProducerDoesNotHoldItsName(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.producer("name", "n")
	p := b.srv.holder(t, "persistent://public/default/name", "n")
	token, _ := p.ring.reserve(&wire.Send{})
	p.ring.mu.Lock()
	p.ring.settle(token, core.ErrUnavailable, 0, 0)
	p.ring.leave() // says CLOSE_PRODUCER; the release of the name comes after it
	p.ring.mu.Unlock()
	if err := p.sess.out.Flush(); err != nil {
		t.Fatal(err)
	}
	r.want(wire.TypeCloseProducer)
	r.producer("name", "n")
}

// Permits that come while the reader's own answers wait for its flush must not be forgotten.
func TestFlowBehindManyAnswers(t *testing.T) {
	b := newBed(t, setup{})
	s, r := b.session(t)
	q := subscription("behind", "sub")
	c := joined(t, s, q)
	s.admit(s.ctx, 9, c, nil)
	p := dial(t, b)
	p.producer("behind", "")
	p.publish(1, "x")
	p.receipt()
	pong := wire.Append(nil, wire.TypePong, nil)
	if _, err := s.out.Append(func(dst []byte) []byte {
		for len(dst) <= highWater {
			dst = append(dst, pong...)
		}
		return dst
	}); err != nil {
		t.Fatal(err)
	}
	f := wire.Flow{ConsumerID: 1, Permits: 10}
	frame, _, err := wire.Split(f.Append(nil), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.flow(frame.Command); err != nil {
		t.Fatal(err)
	}
	if err := s.out.Flush(); err != nil { // what the reader does next
		t.Fatal(err)
	}
	for {
		got, err := r.frame(patience)
		if err != nil {
			t.Fatal(err)
		}
		if got.Type == wire.TypeMessage {
			return
		}
	}
}

// A cumulative acknowledgement of what does not exist acknowledges nothing.
func TestCumulativeAckBeyondTheEnd(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.subscribe(subscription("beyond", "sub"))
	r.producer("beyond", "")
	for i := range uint64(3) {
		r.publish(i, "x")
		r.receipt()
	}
	r.flow(1, 10)
	var id wire.MessageID
	for range 3 {
		id = r.message().ID
	}
	id.Entry = 1000
	if a := r.ackWithResponse(1, wire.AckCumulative, id); a.HasCode {
		t.Errorf("%+v", a)
	}
	r.send(wire.TypeRedeliver, &wire.Redeliver{ConsumerID: 1})
	for i := range uint64(3) {
		if m := r.message(); m.ID.Entry != i {
			t.Errorf("message %d comes again as %d", i, m.ID.Entry)
		}
	}
}

// Schemas are not kept for topics that are not there.
func TestSchemaOfNoTopic(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.send(wire.TypeGetOrCreateSchema, &wire.GetOrCreateSchema{RequestID: r.id(), Topic: "none", Schema: wire.Schema{Type: 1}})
	var c wire.GetOrCreateSchemaReply
	r.parse(r.want(wire.TypeGetOrCreateSchemaReply), &c)
	if !c.HasCode || wire.ServerError(c.Code) != wire.TopicNotFound {
		t.Errorf("%+v", c)
	}
}
