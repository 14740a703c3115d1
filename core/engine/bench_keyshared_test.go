package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"isthmus/core"
	"isthmus/core/engine"
)

// BenchmarkKeySharedLag works off 100 000 messages of 10 000 keys with three members, which give credit back for what they
// took at once: with 1000 to begin with they are served as fast as the log is read, with 20 they set the pace, and most of what
// is read waits for its owner. Shared is the null baseline.
func BenchmarkKeySharedLag(b *testing.B) {
	const count, keys = 100_000, 10_000
	for _, mode := range []core.Mode{core.Shared, core.KeyShared} {
		for _, credit := range []int{1000, 20} {
			b.Run(fmt.Sprintf("%s/credit-%d", mode, credit), func(b *testing.B) {
				d := newMemoryBed(b)
				topic := d.topic(1)
				var wg sync.WaitGroup
				wg.Add(count)
				p := d.engine.NewProducer("bench", func(rs []engine.Receipt) {
					for range rs {
						wg.Done()
					}
				})
				for i := range count {
					if err := p.Publish(topic.Partition(0), message(fmt.Sprintf("device-%05d", i*7919%keys), string(make([]byte, 100))), 0); err != nil {
						b.Fatal(err)
					}
				}
				wg.Wait()
				for n := range b.N {
					g, err := topic.BeginGroup(fmt.Sprint("g", n), engine.Start{At: engine.Earliest, NonDurable: true})
					if err != nil {
						b.Fatal(err)
					}
					var left atomic.Int64
					left.Store(count)
					done := make(chan struct{})
					sinks := make([]*taker, 3)
					for i := range sinks {
						s := &taker{left: &left, done: done, joined: make(chan struct{})}
						s.c, err = g.Join(b.Context(), engine.Member{Protocol: "bench", Name: fmt.Sprint("c", i), Mode: mode, Sink: s})
						if err != nil {
							b.Fatal(err)
						}
						close(s.joined)
						sinks[i] = s
					}
					before := cpu()
					for _, s := range sinks {
						s.c.Permit(credit)
					}
					<-done
					b.ReportMetric(float64((cpu()-before).Nanoseconds())/count, "cpu-ns/msg")
					for _, s := range sinks {
						s.c.Leave()
					}
				}
			})
		}
	}
}

type taker struct {
	c      *engine.Consumer
	left   *atomic.Int64
	done   chan struct{}
	joined chan struct{}
}

func (s *taker) Deliver(ds []engine.Delivery) {
	<-s.joined
	for i := range ds {
		e := &ds[i].Entry
		s.c.Ack(0, core.Range{From: e.Base, To: e.End()})
	}
	s.c.Permit(len(ds))
	if s.left.Add(int64(-len(ds))) == 0 {
		close(s.done)
	}
}
func (s *taker) Active(int32, bool) {}
func (s *taker) Detached(error)     {}
