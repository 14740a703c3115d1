package engine_test

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
)

// BenchmarkCatchUp reads a log of 1 KiB messages in eleven partitions that lies far beyond the tail cache: all partitions
// as one runner reads them, in turn; or one. hot is in the page cache, cold was dropped from it. The null baseline reads
// the files from end to end. MB/s counts the bytes of the bodies, MB/s-core the same by CPU time.
func BenchmarkCatchUp(b *testing.B) {
	const partitions, size = 11, 1 << 10
	d := newDiskBed(b, func(c *engine.Config) { c.TailBytes = 1 << 20 })
	topic := d.topic(partitions)
	n := sized(256<<10, 2<<20)
	d.fill(topic, n, size)
	for _, temperature := range []string{"hot", "cold"} {
		cold := temperature == "cold"
		b.Run(temperature+"/raw", func(b *testing.B) { d.catchUp(b, cold, 0, d.readFiles) })
		b.Run(temperature+"/all", func(b *testing.B) {
			d.catchUp(b, cold, n*size, func() { readAll(b, topic.Partition, partitions) })
		})
		b.Run(temperature+"/one", func(b *testing.B) {
			d.catchUp(b, cold, n/partitions*size, func() { readAll(b, topic.Partition, 1) })
		})
		b.Run(temperature+"/group", func(b *testing.B) {
			d.catchUp(b, cold, n*size, func() { readGroup(b, topic, n) })
		})
	}
}

func (d *diskBed) catchUp(b *testing.B, cold bool, bytes int, read func()) {
	if bytes == 0 {
		for _, path := range d.segments() {
			st, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			bytes += int(st.Size())
		}
	}
	var wall, used time.Duration
	for range b.N {
		if cold {
			d.cool()
		}
		begin, spent := time.Now(), cpu()
		read()
		wall += time.Since(begin)
		used += cpu() - spent
	}
	total := float64(bytes) * float64(b.N) / 1e6
	b.ReportMetric(total/wall.Seconds(), "MB/s")
	b.ReportMetric(total/used.Seconds(), "MB/s-core")
	b.ReportMetric(0, "ns/op")
}

func (d *diskBed) readFiles() {
	buf := make([]byte, 1<<20)
	for _, path := range d.segments() {
		f, err := os.Open(path)
		if err != nil {
			d.b.Fatal(err)
		}
		for err == nil {
			_, err = f.Read(buf)
		}
		f.Close()
		if err != io.EOF {
			d.b.Fatal(err)
		}
	}
}

// readAll reads the first partitions of a topic in turn, with the limits of a runner's round.
func readAll(b *testing.B, part func(int32) *engine.Partition, partitions int32) {
	at := make([]core.Offset, partitions)
	var es []core.Entry
	for left := partitions; left > 0; {
		left = 0
		for i := range at {
			p := part(int32(i))
			var err error
			if es, err = p.AppendEntries(b.Context(), es[:0], at[i], 256, 1<<20); err != nil {
				b.Fatal(err)
			}
			for j := range es {
				if es[j].Base != at[i] {
					b.Fatal(fmt.Errorf("partition %d: offset %d after %d", i, es[j].Base, at[i]))
				}
				at[i] = es[j].End()
			}
			if _, end := p.Bounds(); at[i] < end {
				left++
			}
		}
	}
}

// readGroup reads all by a consumer that takes whatever comes.
func readGroup(b *testing.B, topic *engine.Topic, n int) {
	g, err := topic.BeginGroup("catch-up", engine.Start{At: engine.Earliest, NonDurable: true})
	if err != nil {
		b.Fatal(err)
	}
	s := &takeAll{left: n, done: make(chan struct{}), ready: make(chan struct{})}
	c, err := g.Join(b.Context(), engine.Member{Protocol: "bench", Name: "c", Mode: core.Exclusive, Sink: s})
	if err != nil {
		b.Fatal(err)
	}
	s.consumer = c
	close(s.ready)
	c.Permit(8192)
	<-s.done
	c.Leave()
}

// takeAll acknowledges everything it gets and asks for as much again.
type takeAll struct {
	consumer *engine.Consumer
	left     int
	ready    chan struct{} // consumer is set
	done     chan struct{}
}

func (s *takeAll) Deliver(ds []engine.Delivery) {
	<-s.ready
	for i := range ds {
		d := &ds[i]
		if i+1 == len(ds) || ds[i+1].Partition != d.Partition {
			s.consumer.AckThrough(d.Partition.Index(), d.Entry.End())
		}
	}
	s.consumer.Permit(len(ds))
	if s.left -= len(ds); s.left == 0 {
		close(s.done)
	}
}

func (s *takeAll) Active(int32, bool) {}
func (s *takeAll) Detached(error)     {}
