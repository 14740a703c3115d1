package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// Bad input: whatever a stranger sends is answered or closed, memory stays bounded, and the neighbours notice nothing.

const rssBound = 400 << 20 // far above what the gateway needs, far below what one believed length field would take

// neighbour publishes and consumes all through a test; its messages must keep coming.
type neighbour struct {
	sent, got atomic.Int64
	slowest   atomic.Int64 // ns from publish to PUBACK
	stop      chan struct{}
	done      chan error
}

func (b *bed) neighbour() *neighbour {
	b.Helper()
	n := &neighbour{stop: make(chan struct{}), done: make(chan error, 1)}
	m := b.mqtt("neighbour")
	k, err := clients.NewPulsarConsumer(b.newPulsar(), event, "neighbour", pulsar.Failover, true, nil)
	b.must(err)
	b.Cleanup(k.Close)
	go func() { // ends with the test
		for {
			select {
			case m := <-k.C():
				if m.Key == "neighbour" {
					n.got.Add(1)
				}
			case <-b.ctx.Done():
				return
			}
		}
	}()
	go func() { // awaited by calm
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-n.stop:
				n.done <- nil
				return
			case <-tick.C:
			}
			start := time.Now()
			if err := m.Send(b.ctx, clients.Message{Topic: "devices/neighbour/telemetry", Body: []byte("x")}); err != nil {
				n.done <- err
				return
			}
			n.sent.Add(1)
			n.slowest.Store(max(n.slowest.Load(), int64(time.Since(start))))
		}
	}()
	return n
}

func (n *neighbour) calm(b *bed) {
	b.Helper()
	close(n.stop)
	b.must(<-n.done)
	b.eventually(10*time.Second, "the neighbour's messages all arrive", func() bool { return n.got.Load() == n.sent.Load() })
	if s := time.Duration(n.slowest.Load()); s > 3*time.Second {
		b.Errorf("a neighbour waited %s for a PUBACK", s)
	}
	if !b.Alive() {
		b.Fatal("the gateway died")
	}
	u, err := b.Usage()
	b.must(err)
	b.Logf("neighbour: %d messages, slowest %s; gateway %d MiB at most, %d files", n.sent.Load(), time.Duration(n.slowest.Load()).Round(time.Millisecond), u.Peak>>20, u.Files)
	if u.Peak > rssBound {
		b.Errorf("the gateway took %d MiB, bound %d", u.Peak>>20, int64(rssBound)>>20)
	}
}

// closes sends bytes, says that no more will come, and wants the gateway to close (or answer and close).
func closes(addr string, data []byte, halfClose bool) error {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(15 * time.Second))
	c.Write(data) // a reset on the way is an answer too
	if halfClose {
		c.(*net.TCPConn).CloseWrite()
	}
	_, err = io.Copy(io.Discard, io.LimitReader(c, 16<<20))
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		return fmt.Errorf("neither closed nor reset within 15 s")
	}
	return nil
}

func eachPort(t *testing.T, limit time.Duration, f func(t *testing.T, b *bed, p port)) {
	b := newBed(t, gateway.Event, limit)
	n := b.neighbour()
	for _, p := range ports(b) {
		t.Run(p.name, func(t *testing.T) { f(t, b, p) })
	}
	n.calm(b)
}

func TestBadInputRandomBytes(t *testing.T) {
	eachPort(t, 2*time.Minute, func(t *testing.T, b *bed, p port) {
		inParallel(t, 300, func(i int) error { return closes(p.addr, noise(uint64(i), nil, 4096), true) })
		// The same behind a good start, so that the session's own decoder gets it.
		inParallel(t, 300, func(i int) error { return closes(p.addr, noise(uint64(i), p.talk[0], 2048), true) })
	})
}

// noise is a given start and random bytes behind it; the same seed makes the same noise.
func noise(seed uint64, start []byte, atMost int) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	data := append([]byte(nil), start...)
	for range 1 + r.IntN(atMost) {
		data = append(data, byte(r.Uint32()))
	}
	return data
}

func TestBadInputCutAtEveryByte(t *testing.T) {
	eachPort(t, 3*time.Minute, func(t *testing.T, b *bed, p port) {
		var whole []byte
		for _, packet := range p.talk {
			whole = append(whole, packet...)
		}
		inParallel(t, len(whole)+1, func(i int) error { return closes(p.addr, whole[:i], true) })
	})
}

func TestBadInputLengthOf2GiB(t *testing.T) {
	eachPort(t, 2*time.Minute, func(t *testing.T, b *bed, p port) {
		for i, h := range p.huge {
			// Many at once: one honoured promise might be swapped out, two hundred would not.
			inParallel(t, 200, func(int) error {
				// Not half-closed: the gateway must not wait for the 2 GiB.
				if err := closes(p.addr, append(h[:len(h):len(h)], make([]byte, 64<<10)...), p.name == "http"); err != nil {
					return fmt.Errorf("promise %d: %w", i, err)
				}
				return nil
			})
		}
	})
}

// inParallel calls f(0) … f(n-1), sixteen at a time.
func inParallel(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	var next atomic.Int64
	var bad atomic.Int64
	for range 16 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil && bad.Add(1) <= 5 {
					t.Errorf("case %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
}

// Ten thousand connections that say nothing: they cost a bounded sum each, are closed in the end, and a newcomer gets in.
func TestBadInputSilentConnections(t *testing.T) {
	limit := raiseFileLimit()
	n := min(10_000, int(limit)*8/10)
	b := newBed(t, gateway.Event, 3*time.Minute)
	neighbour := b.neighbour()
	before, err := b.Usage()
	b.must(err)
	targets := []string{b.MQTT, b.Pulsar, b.NameServer, b.Broker, b.HTTP}
	conns := make([]net.Conn, n)
	inParallel(t, n, func(i int) error {
		// Many source addresses: one alone has too few ports left beside the machine's own business.
		d := net.Dialer{Timeout: 20 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%8))}}
		c, err := d.DialContext(b.ctx, "tcp", targets[i%len(targets)])
		conns[i] = c
		return err
	})
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	after, err := b.Usage()
	b.must(err)
	t.Logf("%d silent connections: %.1f KiB each (%d → %d MiB), %d files", n, float64(after.RSS-before.RSS)/float64(n)/1024, before.RSS>>20, after.RSS>>20, after.Files)
	if each := (after.RSS - before.RSS) / int64(n); each > 24<<10 {
		t.Errorf("a silent connection costs %d bytes", each)
	}
	b.must(b.mqtt("newcomer").Send(b.ctx, clients.Message{Topic: "devices/newcomer/telemetry", Body: []byte("x")}))
	// A connection that never said who it is has to go. RocketMQ leaves a channel alone for two minutes; that is not waited for.
	leaves := map[string]bool{b.MQTT: true, b.Pulsar: true, b.HTTP: true}
	deadline := time.Now().Add(60 * time.Second)
	inParallel(t, n, func(i int) error {
		if addr := targets[i%len(targets)]; conns[i] == nil || !leaves[addr] {
			return nil
		}
		conns[i].SetReadDeadline(deadline)
		if _, err := io.Copy(io.Discard, conns[i]); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				return fmt.Errorf("silent connection to %s lives on after a minute", targets[i%len(targets)])
			}
		}
		return nil
	})
	neighbour.calm(b)
}
