package mqtt

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"isthmus/adapters/mqtt/wire"
)

// talk is a good conversation.
func talk(t testing.TB, v wire.Version) []byte {
	var all []byte
	for _, line := range []string{
		"CONNECT id=cut clean keepalive=60 username=u password=p", "SUBSCRIBE id=1 f=t/#,1 f=$share/g/s,1",
		"PUBLISH t/1 qos=1 id=1 body=hello user=a:b", "PUBLISH t/2 qos=0 body=x", "PUBACK id=1", "PINGREQ", "UNSUBSCRIBE id=2 f=t/#", "DISCONNECT",
	} {
		if v < wire.V5 && line[0] == 'S' {
			line = "SUBSCRIBE id=1 f=t/#,1"
		}
		b, err := encode(line, v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// throw sends bytes, half-closes, and waits for the server to be done with them.
func (b *bed) throw(data []byte) {
	c := b.dial().(*net.TCPConn)
	defer c.Close()
	c.Write(data)
	c.CloseWrite()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, c); err != nil && isTimeout(err) {
		b.t.Errorf("still open after %x", data)
	}
}

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}

// Invariant I9. A witness is served throughout.
func TestI9_BadInputDisturbsNobody(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ConnectTimeout = time.Second })
	witness := b.connected("witness", wire.V5)
	t.Run("cut at every byte", func(*testing.T) {
		for _, v := range []wire.Version{wire.V311, wire.V5} {
			whole := talk(t, v)
			for i := range whole {
				b.throw(whole[:i])
			}
		}
	})
	t.Run("one byte changed", func(*testing.T) {
		for _, v := range []wire.Version{wire.V311, wire.V5} {
			whole := talk(t, v)
			for i := range whole {
				bad := bytes.Clone(whole)
				bad[i] ^= 0x55
				b.throw(bad)
			}
		}
	})
	t.Run("random bytes", func(*testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		connect, _ := encode("CONNECT id=r clean", wire.V5)
		for i := range 300 {
			noise := make([]byte, r.IntN(200))
			for j := range noise {
				noise[j] = byte(r.Uint32())
			}
			if i%2 == 0 {
				noise = append(bytes.Clone(connect), noise...)
			}
			b.throw(noise)
		}
	})
	witness.publish(1, "still/here")
}

// A length field of 2 GiB or 256 MiB, followed by silence, costs the server no memory.
func TestI9_LengthsAreNotBelieved(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ConnectTimeout = time.Second })
	connect, _ := encode("CONNECT id=x clean", wire.V311)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			c, err := net.Dial("tcp", b.server.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if i%2 == 0 {
				c.Write(append(bytes.Clone(connect), 0x30, 0xff, 0xff, 0xff, 0x7f))
			} else {
				c.Write(binary.BigEndian.AppendUint32([]byte{0x10}, 0xffffffff))
			}
			c.SetReadDeadline(time.Now().Add(10 * time.Second))
			io.Copy(io.Discard, c)
		})
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 64<<20 {
		t.Fatalf("%d MiB allocated", grown>>20)
	}
}

// Connections that say nothing hold no buffer, and go at the deadline; meanwhile others are served.
func TestI9_SilentConnections(t *testing.T) {
	const n = 500
	b := newBed(t, func(c *Config) { c.ConnectTimeout = 500 * time.Millisecond })
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = b.dial()
	}
	b.connected("witness", wire.V5).publish(1, "still/here")
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Fatalf("a silent connection is not closed: %v", err)
		}
	}
}

// A packet larger than any buffer arrives whole, in small pieces.
func TestLargePacketInPieces(t *testing.T) {
	b := newBed(t, nil)
	c := b.connected("c", wire.V311)
	p := wire.Publish{QoS: 1, ID: 9, Topic: []byte("image"), Payload: bytes.Repeat([]byte("0123456789abcdef"), 64<<10)}
	packet := p.Append(nil, wire.V311)
	packet = append(packet, packet...)
	for len(packet) > 0 {
		n := min(len(packet), 30_001)
		if _, err := c.conn.Write(packet[:n]); err != nil {
			t.Fatal(err)
		}
		packet = packet[n:]
	}
	c.expect("PUBACK 9")
	c.expect("PUBACK 9")
}
