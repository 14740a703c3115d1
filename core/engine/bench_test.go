package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/journal/disk"
	"isthmus/core/meta/bolt"
)

// BenchmarkDurableAppend measures publishing with fsync on each commit: appenders × messages in flight, 128 B bodies.
func BenchmarkDurableAppend(b *testing.B) {
	for _, shape := range []struct{ appenders, window int }{{64, 16}, {64, 1}, {1, 1}, {1, 64}} {
		b.Run(fmt.Sprintf("%dx%d", shape.appenders, shape.window), func(b *testing.B) {
			metrics := prometheus.NewRegistry()
			e, stop := diskEngine(b, metrics)
			defer stop()
			n, _ := core.ParseTopicName("bench", "public", "default")
			topic, err := e.EnsureTopic(n, 8)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range shape.appenders {
				n := b.N / shape.appenders
				if i < b.N%shape.appenders {
					n++
				}
				wg.Go(func() { appendLoop(b, e, topic.Partition(int32(i%8)), n, shape.window) })
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			count, seconds := commits(b, metrics)
			b.ReportMetric(count/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(1e6*seconds/count, "µs/commit")
		})
	}
}

func appendLoop(b *testing.B, e *engine.Engine, part *engine.Partition, n, window int) {
	free := make(chan int, 4096)
	p := e.NewProducer("bench", func(rs []engine.Receipt) { free <- len(rs) })
	ent := message("dev-1", string(make([]byte, 128)))
	room := window
	for sent, acked := 0, 0; acked < n; {
		for ; room > 0 && sent < n; room-- {
			if err := p.Publish(part, ent, 0); err != nil {
				b.Error(err)
				return
			}
			sent++
		}
		k := <-free
		room += k
		acked += k
	}
}

// commits reads the engine's histogram of commits: how many, and the seconds they took.
func commits(b *testing.B, reg *prometheus.Registry) (count, seconds float64) {
	b.Helper()
	families, err := reg.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "isthmus_commit_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			return float64(h.GetSampleCount()), h.GetSampleSum()
		}
	}
	return 0, 0
}

func diskEngine(b *testing.B, reg prometheus.Registerer) (*engine.Engine, func()) {
	b.Helper()
	dir := b.TempDir()
	js, err := disk.New(disk.Options{Dir: dir + "/journals"})
	if err != nil {
		b.Fatal(err)
	}
	ms, err := bolt.Open(dir + "/meta.db")
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.Open(context.Background(), engine.Config{Journals: js, Meta: ms, Registerer: reg, Defaults: engine.Defaults{AutoCreate: true}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return e, func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		ms.Close()
	}
}
