package mqtt

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"

	"isthmus/adapters/mqtt/wire"
	"isthmus/adapters/serve"
)

// handled is a session on a real socket whose packets a test hands over itself, without a reader goroutine.
func (b *bed) handled(t testing.TB, v wire.Version) *session {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	connect, _ := encode("CONNECT id=bench clean", v)
	peer.Write(connect)
	go io.Copy(io.Discard, peer)
	s, err := b.server.connect(context.Background(), c, newInput(c, 1<<20), serve.NewOut(c, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(); peer.Close() })
	return s
}

// publishPacket is what a device sends: QoS 1, 128 bytes.
func publishPacket(t testing.TB, topic string, v wire.Version, extra string) (wire.Header, []byte) {
	line := fmt.Sprintf("PUBLISH %s qos=1 id=7 body=%0128d %s", topic, 1, extra)
	b, err := encode(line, v)
	if err != nil {
		t.Fatal(err)
	}
	h, body, _, err := wire.Split(b, v, 0)
	if err != nil {
		t.Fatal(err)
	}
	return h, body
}

// In the steady state a publish allocates nothing of its own: what is counted here is the memory journal's copy of
// each block and the committer's work, shared by the messages of a block.
func TestPublishAllocatesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		v     wire.Version
		extra string
	}{"v3": {wire.V311, ""}, "v5 with properties": {wire.V5, "expiry=60 type=text/plain user=a:b"}} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.ReceiveMaximum = 65535 })
			s := b.handled(t, tt.v)
			h, body := publishPacket(t, "devices/42/telemetry", tt.v, tt.extra)
			const each = 100
			round := func() {
				for range each {
					if err := s.publish(h, body); err != nil {
						t.Fatal(err)
					}
				}
				for !s.ringEmpty() {
					<-s.wake
				}
			}
			for range 20 {
				round()
			}
			if n := testing.AllocsPerRun(100, round) / each; n > 0.5 && !raceEnabled {
				t.Fatalf("%.2f allocations a publish", n)
			}
		})
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, v := range []wire.Version{wire.V311, wire.V5} {
		b.Run(fmt.Sprintf("v%d", v), func(b *testing.B) {
			bed := newBed(b, func(c *Config) { c.ReceiveMaximum = 65535 })
			s := bed.handled(b, v)
			h, body := publishPacket(b, "devices/42/telemetry", v, "")
			b.ReportAllocs()
			for b.Loop() {
				if err := s.publish(h, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
