package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"isthmus/core/engine"
)

// BenchmarkDurableAppend measures publishing with fsync on each commit: appenders × messages in flight, 128 B bodies.
// raw-µs/commit is the bare disk right after it: a block of the mean size written and synced over bytes written before. null
// is the same over a journal that forgets every block: the engine and the load generator, without any disk.
func BenchmarkDurableAppend(b *testing.B) {
	for _, shape := range []struct{ appenders, window int }{{64, 16}, {64, 1}, {1, 16}, {1, 64}} {
		name := fmt.Sprintf("%dx%d", shape.appenders, shape.window)
		b.Run(name, func(b *testing.B) { durableAppend(b, newDiskBed(b, nil), shape.appenders, shape.window) })
		b.Run(name+"/null", func(b *testing.B) { durableAppend(b, newNullBed(b), shape.appenders, shape.window) })
	}
	b.Run("1x1", loneAppend)
}

func durableAppend(b *testing.B, d *diskBed, appenders, window int) {
	topic := d.topic(8)
	b.ReportAllocs()
	b.ResetTimer()
	used := cpu()
	var wg sync.WaitGroup
	for i := range appenders {
		n := b.N / appenders
		if i < b.N%appenders {
			n++
		}
		wg.Go(func() { appendLoop(b, d.engine, topic.Partition(int32(i%8)), n, window) })
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(micros(cpu()-used)/float64(b.N), "cpu-µs/msg")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	count, seconds := d.commits()
	b.ReportMetric(count/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(1e6*seconds/count, "µs/commit")
	if d.store == nil {
		raw, bare := rawSync(b, int(d.metric("isthmus_commit_bytes_total")/count)), make([]time.Duration, 100)
		for i := range bare {
			bare[i] = raw()
		}
		b.ReportMetric(micros(quantile(bare, 0.5)), "raw-µs/commit")
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

// loneAppend is one appender that waits for each receipt on an idle engine, turn by turn with the bare disk, so that a
// busy disk disturbs both alike. The goal is a ratio of the medians.
func loneAppend(b *testing.B) {
	d := newDiskBed(b, nil)
	part := d.topic(1).Partition(0)
	raw := rawSync(b, 256)
	done := make(chan struct{}, 1)
	p := d.engine.NewProducer("bench", func([]engine.Receipt) { done <- struct{}{} })
	ent := message("dev-1", string(make([]byte, 128)))
	var ours, bare []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := p.Publish(part, ent, 0); err != nil {
			b.Fatal(err)
		}
		<-done
		ours = append(ours, time.Since(begin))
		bare = append(bare, raw())
	}
	b.ReportMetric(micros(quantile(ours, 0.5)), "p50-µs")
	b.ReportMetric(micros(quantile(bare, 0.5)), "raw-p50-µs")
	b.ReportMetric(float64(quantile(ours, 0.5))/float64(quantile(bare, 0.5)), "ratio")
}
