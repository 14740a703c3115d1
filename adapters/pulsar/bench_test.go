package pulsar

import (
	"testing"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

const pipelined = 100

// sends is a run of SEND frames.
func sends(n int) []byte {
	b := body(string(make([]byte, 128)))
	sum := wire.Checksum(b)
	var out []byte
	for i := range n {
		c := wire.Send{ProducerID: 1, SequenceID: uint64(i), NumMessages: 1}
		out = c.Append(out, sum, b)
	}
	return out
}

// An operation is one message of 128 bytes, from the socket to its receipt on the socket, a hundred at a time.
func BenchmarkPublish(b *testing.B) {
	bed := newBed(b, setup{})
	r := dial(b, bed)
	r.producer("bench", "")
	frames := sends(pipelined)
	b.ReportAllocs()
	for i := 0; i < b.N; i += pipelined {
		r.bytes(frames)
		for range pipelined {
			if _, err := r.skip(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// An operation is one message of 128 bytes, from the log to the socket, with a cumulative ack for a thousand.
func BenchmarkDeliver(b *testing.B) {
	bed := newBed(b, setup{})
	p, r := dial(b, bed), dial(b, bed)
	p.producer("bench", "")
	q := subscription("bench", "sub")
	r.subscribe(q)
	frames := sends(pipelined)
	for i := 0; i < b.N; i += pipelined {
		p.bytes(frames)
		for range pipelined {
			if _, err := p.skip(); err != nil {
				b.Fatal(err)
			}
		}
	}
	drink(b, bed, r)
}

// The same for messages of 128 bytes that came by MQTT: with a key, an address and two properties.
func BenchmarkDeliverForeign(b *testing.B) {
	bed := newBed(b, setup{})
	r := dial(b, bed)
	r.subscribe(subscription("bench", "sub"))
	part := bed.Topic(b, "bench", 0).Partition(0)
	m := core.Message{
		Address: "plant/7/line/3/temperature", Body: make([]byte, 128),
		Properties: []core.Property{{Key: "unit", Value: "celsius"}}, Routed: []core.Property{{Key: "mqtt.topic", Value: "plant/7/line/3/temperature"}},
	}
	e := core.Entry{
		Count: 1, Format: core.FormatNeutral, Flags: core.FlagHasKey, Key: []byte("device-7"), Producer: []byte("sensor-7"),
		PublishTime: 1700000000000, Data: m.AppendNeutral(nil),
	}
	done := make(chan int, b.N)
	pub := bed.Engine.NewProducer("test", func(rs []engine.Receipt) { done <- len(rs) })
	for range b.N {
		if err := pub.Publish(part, &e, 0); err != nil {
			b.Fatal(err)
		}
	}
	for left := b.N; left > 0; left -= <-done {
	}
	drink(b, bed, r)
}

// drink takes everything of the topic and acknowledges it.
func drink(b *testing.B, bed *bed, r *raw) {
	ledger := ledgerOf(bed.Topic(b, "bench", 0).Partition(0))
	b.ResetTimer()
	b.ReportAllocs()
	r.flow(1, 1000)
	for i := range b.N {
		if _, err := r.skip(); err != nil {
			b.Fatal(err)
		}
		if i%500 == 499 {
			r.flow(1, 500)
			a := wire.Ack{ConsumerID: 1, Type: wire.AckCumulative, IDs: []wire.MessageID{{Ledger: ledger, Entry: uint64(i), Partition: -1, BatchIndex: -1}}}
			r.bytes(a.Append(nil))
		}
	}
}
