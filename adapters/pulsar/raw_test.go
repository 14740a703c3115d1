package pulsar

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"isthmus/adapters/pulsar/wire"
)

// raw is a client that says exactly what a test wants.
type raw struct {
	t    testing.TB
	c    net.Conn
	r    *bufio.Reader
	next uint64 // request ids
	held []wire.Frame
}

// connect opens a connection and shakes hands.
func dial(t testing.TB, b *bed) *raw {
	t.Helper()
	r := dialSilent(t, b)
	r.send(wire.TypeConnect, &wire.Connect{ClientVersion: "Pulsar-Go-test", ProtocolVersion: 20})
	r.want(wire.TypeConnected)
	return r
}

func dialSilent(t testing.TB, b *bed) *raw {
	t.Helper()
	c, err := net.Dial("tcp", b.srv.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return rawOf(t, c)
}

func rawOf(t testing.TB, c net.Conn) *raw { return &raw{t: t, c: c, r: bufio.NewReader(c)} }

func (r *raw) close() { r.c.Close() }

func (r *raw) send(t wire.Type, c wire.Command) { r.bytes(wire.Append(nil, t, c)) }

func (r *raw) bytes(b []byte) {
	r.t.Helper()
	if _, err := r.c.Write(b); err != nil {
		r.t.Fatalf("write: %v", err)
	}
}

// frame reads the next frame.
func (r *raw) frame(wait time.Duration) (f wire.Frame, err error) {
	r.c.SetReadDeadline(time.Now().Add(wait))
	var size [4]byte
	if _, err := io.ReadFull(r.r, size[:]); err != nil {
		return f, err
	}
	b := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
	copy(b, size[:])
	if _, err := io.ReadFull(r.r, b[4:]); err != nil {
		return f, err
	}
	f, _, err = wire.Split(b, 64<<20)
	return f, err
}

// want reads frames until one of a type comes; the others are kept, PINGs are answered.
func (r *raw) want(t wire.Type) wire.Frame {
	r.t.Helper()
	for i, f := range r.held {
		if f.Type == t {
			r.held = append(r.held[:i], r.held[i+1:]...)
			return f
		}
	}
	for {
		f, err := r.frame(patience)
		if err != nil {
			r.t.Fatalf("waiting for %v: %v", t, err)
		}
		switch f.Type {
		case t:
			return f
		case wire.TypePing:
			r.send(wire.TypePong, nil)
		default:
			r.held = append(r.held, f)
		}
	}
}

// silence sees that nothing comes.
func (r *raw) silence() {
	r.t.Helper()
	if len(r.held) > 0 {
		r.t.Fatalf("unexpected %v", r.held[0].Type)
	}
	if f, err := r.frame(quiet); !errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Fatalf("unexpected %v, %v", f.Type, err)
	}
}

// closed sees that the server closes the connection.
func (r *raw) closed(wait time.Duration) {
	r.t.Helper()
	for {
		f, err := r.frame(wait)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.t.Fatal("the connection stays open")
		}
		if err != nil {
			return
		}
		r.held = append(r.held, f)
	}
}

func (r *raw) parse(f wire.Frame, c wire.Command) {
	r.t.Helper()
	if err := wire.Parse(f.Command, c); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) id() uint64 { r.next++; return r.next }

func (r *raw) lookup(topic string) (c wire.LookupReply) {
	r.t.Helper()
	r.send(wire.TypeLookup, &wire.Lookup{Topic: topic, RequestID: r.id()})
	r.parse(r.want(wire.TypeLookupReply), &c)
	return c
}

func (r *raw) partitions(topic string, create bool) (c wire.PartitionedMetadataReply) {
	r.t.Helper()
	r.send(wire.TypePartitionedMetadata, &wire.PartitionedMetadata{Topic: topic, RequestID: r.id(), AutoCreate: create})
	r.parse(r.want(wire.TypePartitionedMetadataReply), &c)
	return c
}

func subscription(topic, name string) *wire.Subscribe {
	q := wire.NewSubscribe()
	q.Topic, q.Subscription, q.ConsumerID, q.ConsumerName = topic, name, 1, "raw"
	return &q
}

func (r *raw) subscribe(q *wire.Subscribe) {
	r.t.Helper()
	q.RequestID = r.id()
	r.send(wire.TypeSubscribe, q)
	r.success()
}

// success waits for SUCCESS to the last request.
func (r *raw) success() {
	r.t.Helper()
	f := r.either(wire.TypeSuccess)
	var c wire.Success
	r.parse(f, &c)
	if c.RequestID != r.next {
		r.t.Fatalf("SUCCESS for %d, want %d", c.RequestID, r.next)
	}
}

// either is want, but an ERROR that comes first fails the test with its text.
func (r *raw) either(t wire.Type) wire.Frame {
	r.t.Helper()
	for {
		f, err := r.frame(patience)
		if err != nil {
			r.t.Fatalf("waiting for %v: %v", t, err)
		}
		switch f.Type {
		case t:
			return f
		case wire.TypeError:
			var e wire.Error
			r.parse(f, &e)
			r.t.Fatalf("waiting for %v: error %d: %s", t, e.Code, e.Message)
		case wire.TypePing:
			r.send(wire.TypePong, nil)
		default:
			r.held = append(r.held, f)
		}
	}
}

// refused waits for ERROR to the last request.
func (r *raw) refused() (e wire.Error) {
	r.t.Helper()
	r.parse(r.want(wire.TypeError), &e)
	if e.RequestID != r.next {
		r.t.Fatalf("ERROR for %d, want %d", e.RequestID, r.next)
	}
	return e
}

func (r *raw) flow(consumer uint64, permits uint32) {
	c := wire.Flow{ConsumerID: consumer, Permits: permits}
	r.bytes(c.Append(nil))
}

// received is a MESSAGE with its payload.
type received struct {
	wire.Message
	payload wire.Payload
	frame   []byte
}

func (r *raw) message() (m received) {
	r.t.Helper()
	f := r.want(wire.TypeMessage)
	if err := m.Parse(f.Command); err != nil {
		r.t.Fatal(err)
	}
	var err error
	if m.payload, err = wire.ParsePayload(f.Payload); err != nil {
		r.t.Fatal(err)
	}
	// Spec: Pulsar framing: the checksum section is in every MESSAGE, and right (rule 10)
	if !m.payload.HasSum || m.payload.Sum != wire.Checksum(m.payload.Checked) {
		r.t.Fatalf("checksum %v 0x%x", m.payload.HasSum, m.payload.Sum)
	}
	m.frame = f.Payload
	return m
}

func (r *raw) ackWithResponse(consumer uint64, kind int32, ids ...wire.MessageID) (c wire.AckResponse) {
	r.t.Helper()
	a := wire.Ack{ConsumerID: consumer, Type: kind, IDs: ids, HasRequestID: true, RequestID: r.id()}
	r.bytes(a.Append(nil))
	r.parse(r.want(wire.TypeAckResponse), &c)
	if c.RequestID != r.next {
		r.t.Fatalf("ACK_RESPONSE %+v", c)
	}
	return c
}

func (r *raw) producer(topic, name string) (c wire.ProducerSuccess) {
	r.t.Helper()
	r.send(wire.TypeProducer, &wire.Producer{Topic: topic, ProducerID: 1, RequestID: r.id(), Name: name, UserProvidedName: name != ""})
	c.LastSequenceID, c.Ready = -1, true
	r.parse(r.either(wire.TypeProducerSuccess), &c)
	return c
}

// body is metadata and body of a plain message.
func body(text string) []byte {
	out := wire.OutMetadata{Producer: "raw", PublishTime: 1700000000000}
	m := out.Append(nil, nil)
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...), text...)
}

func (r *raw) publish(seq uint64, text string) {
	b := body(text)
	c := wire.Send{ProducerID: 1, SequenceID: seq, NumMessages: 1}
	r.bytes(c.Append(nil, wire.Checksum(b), b))
}

func (r *raw) receipt() (c wire.SendReceipt) {
	r.t.Helper()
	if err := c.Parse(r.want(wire.TypeSendReceipt).Command); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// pong sees that everything sent so far has been acted on.
func (r *raw) pong() {
	r.t.Helper()
	r.send(wire.TypePing, nil)
	r.want(wire.TypePong)
}

// watch follows the ACTIVE_CONSUMER_CHANGEs of a connection that does nothing else.
func (r *raw) watch(consumer uint64) *watcher {
	w := &watcher{}
	note := func(f wire.Frame) {
		var c wire.ActiveConsumerChange
		if f.Type == wire.TypeActiveConsumerChange && wire.Parse(f.Command, &c) == nil && c.ConsumerID == consumer {
			w.set(0, c.Active)
		}
	}
	for _, f := range r.held {
		note(f)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			f, err := r.frame(time.Minute)
			if err != nil {
				return
			}
			note(f)
		}
	}()
	r.t.Cleanup(func() { r.c.Close(); <-done })
	return w
}

// skip passes over one frame without looking at it.
func (r *raw) skip() (int, error) {
	size, err := r.r.Peek(4)
	if err != nil {
		return 0, err
	}
	return r.r.Discard(4 + int(binary.BigEndian.Uint32(size)))
}
