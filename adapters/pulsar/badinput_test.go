package pulsar

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"time"

	"isthmus/adapters/pulsar/wire"
)

// conversation is everything that a client may say, in a sensible order.
func conversation() []byte {
	var out []byte
	add := func(t wire.Type, c wire.Command) { out = wire.Append(out, t, c) }
	add(wire.TypeConnect, &wire.Connect{ClientVersion: "Pulsar-Go-0.19.0", ProtocolVersion: 20})
	add(wire.TypePartitionedMetadata, &wire.PartitionedMetadata{Topic: "bad", RequestID: 1, AutoCreate: true})
	add(wire.TypeLookup, &wire.Lookup{Topic: "bad", RequestID: 2})
	add(wire.TypeProducer, &wire.Producer{Topic: "bad", ProducerID: 1, RequestID: 3})
	q := subscription("bad", "sub")
	q.RequestID, q.SubType = 4, wire.SubShared
	add(wire.TypeSubscribe, q)
	out = (&wire.Flow{ConsumerID: 1, Permits: 100}).Append(out)
	out = (&wire.Send{ProducerID: 1, NumMessages: 1}).Append(out, wire.Checksum(body("x")), body("x"))
	out = (&wire.Ack{ConsumerID: 1, IDs: []wire.MessageID{{Ledger: 1, Partition: -1, BatchIndex: -1}}}).Append(out)
	add(wire.TypeRedeliver, &wire.Redeliver{ConsumerID: 1})
	add(wire.TypeGetLastMessageID, &wire.GetLastMessageID{ConsumerID: 1, RequestID: 5})
	add(wire.TypeGetTopicsOfNamespace, &wire.GetTopics{Namespace: "public/default", RequestID: 6})
	add(wire.TypeUnsubscribe, &wire.Unsubscribe{ConsumerID: 1, RequestID: 7})
	add(wire.TypeCloseProducer, &wire.Close{ID: 1, RequestID: 8})
	add(wire.TypePing, nil)
	return out
}

// undisturbed sees that other clients are served.
func undisturbed(t *testing.T, b *bed) {
	t.Helper()
	r := dial(t, b)
	r.producer("other", "")
	r.publish(1, "x")
	r.receipt()
	r.close()
}

func TestConversationCutAtEveryByte(t *testing.T) {
	b := newBed(t, setup{})
	talk := conversation()
	for i := range talk {
		c, err := net.Dial("tcp", b.srv.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write(talk[:i])
		c.Close()
	}
	r := dialSilent(t, b)
	r.bytes(talk)
	r.want(wire.TypePong)
	undisturbed(t, b)
}

func TestFlippedBytes(t *testing.T) {
	b := newBed(t, setup{server: func(c *Config) { c.KeepAlive = time.Second }})
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		talk := conversation()
		for range 1 + rnd.IntN(4) {
			talk[rnd.IntN(len(talk))] ^= byte(1 << rnd.IntN(8))
		}
		r := dialSilent(t, b)
		r.c.Write(talk)
		r.close()
	}
	undisturbed(t, b)
}

func TestRandomBytes(t *testing.T) {
	b := newBed(t, setup{})
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		noise := make([]byte, 1+rnd.IntN(2000))
		for i := range noise {
			noise[i] = byte(rnd.Uint32())
		}
		noise[0] |= 0x80 // surely too large
		r := dialSilent(t, b)
		r.c.Write(noise)
		r.closed(patience)
	}
	undisturbed(t, b)
}

func TestHugeLengths(t *testing.T) {
	b := newBed(t, setup{})
	for _, size := range []uint32{1 << 31, 1<<32 - 1, 6 << 20} {
		r := dialSilent(t, b)
		r.bytes(binary.BigEndian.AppendUint32(nil, size))
		r.closed(patience)
		r = dial(t, b)
		r.bytes(binary.BigEndian.AppendUint32(nil, size))
		r.closed(patience)
	}
	undisturbed(t, b)
}

// Frames that announce much and bring little cost what they bring.
func TestSlowLargeFramesCostLittle(t *testing.T) {
	b := newBed(t, setup{})
	before := heap()
	var rs []*raw
	for range 200 {
		r := dial(t, b)
		r.bytes(binary.BigEndian.AppendUint32(nil, 5<<20))
		rs = append(rs, r)
	}
	undisturbed(t, b)
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("%d connections hold %d MiB", len(rs), grown>>20)
	}
}

// Connections that say nothing are closed after a while and cost little meanwhile.
func TestSilentConnections(t *testing.T) {
	b := newBed(t, setup{server: func(c *Config) { c.KeepAlive = time.Second }})
	before := heap()
	var rs []*raw
	for range 1000 {
		rs = append(rs, dialSilent(t, b))
	}
	undisturbed(t, b)
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("%d connections hold %d MiB", len(rs), grown>>20)
	}
	for _, r := range rs {
		r.closed(patience)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A batch cannot claim more messages than fit into it: offsets would jump.
func TestLyingBatch(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.producer("liar", "")
	meta := wire.OutMetadata{Producer: "p", PublishTime: 1}
	m := append(meta.Append(nil, nil), 0x58, 0xff, 0xff, 0xff, 0xff, 0x07) // num_messages_in_batch = 2^31-1
	checked := append(append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...), "short"...)
	c := wire.Send{ProducerID: 1, NumMessages: 1}
	r.bytes(c.Append(nil, wire.Checksum(checked), checked))
	var e wire.SendError
	r.parse(r.want(wire.TypeSendError), &e)
	if e.Code != wire.MetadataError {
		t.Errorf("%+v", e)
	}
}

// A client that does not read holds a small part of what the log has for it, and gets all when it reads.
func TestClientThatDoesNotRead(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	q := subscription("deaf", "sub")
	r.subscribe(q)
	r.flow(1, 100000)
	p := dial(t, b)
	p.producer("deaf", "")
	text := string(make([]byte, 256<<10))
	for i := range uint64(200) {
		p.publish(i, text)
		p.receipt()
	}
	g, err := b.group(t, "deaf", "sub")
	if err != nil || len(g.Consumers()) != 1 {
		t.Fatalf("the consumer is gone: %v", err)
	}
	held := g.Consumers()[0].Sink().(*consumer).sess.out.Buffered()
	if held > 20<<20 {
		t.Errorf("%d MiB of 50 wait for it", held>>20)
	}
	for range 200 {
		r.message()
	}
}
