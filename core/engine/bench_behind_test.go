package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
)

// BenchmarkBehind measures live traffic, from publishing to the tail of a consumer, first by itself (the null baseline),
// then while a reader works off a backlog beside it: 1 GB by default, the goal's 10 GB with -large.
func BenchmarkBehind(b *testing.B) {
	const size = 1 << 10
	d := newDiskBed(b, nil)
	topic := d.topic(11)
	d.fill(topic, sized(1<<20, 10<<20), size)
	d.cool()
	alone := d.live(topic, 3*time.Second)
	d.cool()
	ctx, cancel := context.WithCancel(b.Context())
	read := int64(0)
	var wg sync.WaitGroup
	wg.Go(func() { read = readBehind(ctx, topic) })
	begin := time.Now()
	beside := d.live(topic, sized(3*time.Second, 20*time.Second))
	took := time.Since(begin)
	cancel()
	wg.Wait()
	b.ReportMetric(micros(quantile(alone, 0.5)), "alone-p50-µs")
	b.ReportMetric(micros(quantile(alone, 0.99)), "alone-p99-µs")
	b.ReportMetric(micros(quantile(beside, 0.5)), "beside-p50-µs")
	b.ReportMetric(micros(quantile(beside, 0.99)), "beside-p99-µs")
	b.ReportMetric(float64(read)*size/1e6/took.Seconds(), "reader-MB/s")
	b.ReportMetric(0, "ns/op")
}

// live sends 5 000 messages a second over 10 appenders and returns when each came out at a consumer of the tail.
func (d *diskBed) live(topic *engine.Topic, length time.Duration) []time.Duration {
	d.b.Helper()
	const rate = 5000
	n := int(length.Seconds() * rate)
	due, took := make([]time.Time, n), make([]time.Duration, n)
	g, err := topic.BeginGroup("live", engine.Start{At: engine.Latest, NonDurable: true})
	if err != nil {
		d.b.Fatal(err)
	}
	s := &clock{due: due, took: took, done: make(chan struct{}), ready: make(chan struct{})}
	if s.consumer, err = g.Join(d.b.Context(), engine.Member{Protocol: "bench", Name: "c", Mode: core.Exclusive, Sink: s}); err != nil {
		d.b.Fatal(err)
	}
	close(s.ready)
	s.consumer.Permit(n)
	defer s.consumer.Leave()
	ps := make([]*engine.Producer, 10)
	for i := range ps {
		ps[i] = d.engine.NewProducer("bench", func([]engine.Receipt) {})
	}
	ent := message("dev-1", string(make([]byte, 1<<10)))
	pace(rate, due, func(i int) {
		ent.SeqLow = int64(i)
		if err := ps[i%len(ps)].Publish(topic.Partition(int32(i)%topic.Logs()), ent, 0); err != nil {
			d.b.Error(err)
		}
	})
	<-s.done
	return took
}

// clock notes when each message came.
type clock struct {
	consumer    *engine.Consumer
	due         []time.Time
	took        []time.Duration
	seen        int
	ready, done chan struct{}
}

func (s *clock) Deliver(ds []engine.Delivery) {
	<-s.ready
	now := time.Now()
	for i := range ds {
		d := &ds[i]
		s.took[d.Entry.SeqLow] = now.Sub(s.due[d.Entry.SeqLow])
		if i+1 == len(ds) || ds[i+1].Partition != d.Partition {
			s.consumer.AckThrough(d.Partition.Index(), d.Entry.End())
		}
	}
	if s.seen += len(ds); s.seen == len(s.took) {
		close(s.done)
	}
}

func (s *clock) Active(int32, bool) {}
func (s *clock) Detached(error)     {}

// readBehind reads all partitions from the start until ctx ends, round and round.
func readBehind(ctx context.Context, topic *engine.Topic) (read int64) {
	at := make([]core.Offset, topic.Logs())
	var es []core.Entry
	for ctx.Err() == nil {
		behind := false
		for i := range at {
			p := topic.Partition(int32(i))
			var err error
			if es, err = p.AppendEntries(ctx, es[:0], at[i], 256, 1<<20); err != nil {
				return read
			}
			if len(es) > 0 {
				at[i] = es[len(es)-1].End()
				read += int64(len(es))
			}
			_, end := p.Bounds()
			behind = behind || end-at[i] > 4096
		}
		if !behind {
			clear(at)
		}
	}
	return read
}
