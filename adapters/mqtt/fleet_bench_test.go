package mqtt

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"isthmus/adapters/mqtt/wire"
)

// BenchmarkFleet: devices on real sockets, each with a window of publishes in flight; client and server share the
// process, and the journal is in memory, so it is the adapter's and the sockets' cost.
func BenchmarkFleet(b *testing.B) {
	for _, window := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("window %d", window), func(b *testing.B) { fleet(b, 100, window) })
	}
}

func fleet(b *testing.B, devices, window int) {
	bed := newBed(b, nil)
	conns := make([]net.Conn, devices)
	for i := range conns {
		conns[i] = bed.connected(fmt.Sprintf("d%d", i), wire.V311).conn
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			var p wire.Publish
			p.QoS, p.ID, p.Topic, p.Payload = 1, 7, fmt.Appendf(nil, "devices/%d/telemetry", i), make([]byte, 128)
			one := p.Append(nil, wire.V311)
			var batch []byte
			for range window {
				batch = append(batch, one...)
			}
			acks := make([]byte, 4*window)
			for range max(1, b.N/devices/window) {
				c.Write(batch)
				if _, err := io.ReadFull(c, acks); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
