package rocketmq

import (
	"bufio"
	"fmt"
	"io"
	"testing"
	"time"

	"isthmus/adapters/rocketmq/wire"
)

// BenchmarkSend is a pipelining producer against the server, over a socket and an engine in memory.
func BenchmarkSend(b *testing.B) {
	for _, window := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("window=", window), func(b *testing.B) {
			g := newGateway(b, nil)
			c := g.dial(b)
			ext := sendExt("T", 0, "UNIQ_KEY\x01C00002023A41000000009a0667980001\x02TAGS\x01tagA\x02KEYS\x01k1\x02")
			one := c.frame(wire.SendMessage, make([]byte, 128), ext...)
			var burst []byte
			for range window {
				burst = append(burst, one...)
			}
			in := bufio.NewReaderSize(c.c, 64<<10)
			b.ReportAllocs()
			for left := b.N; left > 0; left -= window {
				if _, err := c.c.Write(burst); err != nil {
					b.Fatal(err)
				}
				for range window {
					head, err := in.Peek(4)
					if err != nil {
						b.Fatal(err)
					}
					n := 4 + int(head[2])<<8 + int(head[3])
					if _, err := in.Discard(n); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkPull reads a full queue in answers of 32.
func BenchmarkPull(b *testing.B) {
	g := newGateway(b, nil)
	c := g.dial(b)
	for range 64 {
		c.send(wire.Success, "T", 0, "UNIQ_KEY\x01C00002023A41000000009a0667980001\x02TAGS\x01tagA\x02KEYS\x01k1\x02", string(make([]byte, 128)))
	}
	c.heartbeat("g", "T", "*", "")
	c.list("g") // after the notices
	c.c.SetReadDeadline(time.Time{})
	frame := c.frame(wire.PullMessage, nil, pullExt("g", "T", 0, 0, 0)...)
	in := bufio.NewReaderSize(c.c, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.c.Write(frame); err != nil {
			b.Fatal(err)
		}
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			b.Fatal(err)
		}
		if _, err := in.Discard(int(size[2])<<8 + int(size[3])); err != nil {
			b.Fatal(err)
		}
	}
}
