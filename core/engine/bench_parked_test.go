package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
)

// BenchmarkDue has a million delayed messages of 200 bytes become due at once, by a jump of the wall clock: parked for one
// moment, or for moments in no order, so that bodies lie anywhere. It tells how fast they are parked and released, what
// memory that takes beside the tail cache, and live traffic's latency in the same log: alone (the null baseline), and
// beside the release.
func BenchmarkDue(b *testing.B) {
	for _, spread := range []time.Duration{0, time.Hour} {
		b.Run(fmt.Sprint("spread=", spread), func(b *testing.B) { benchmarkDue(b, spread) })
	}
}

func benchmarkDue(b *testing.B, spread time.Duration) {
	const n = 1_000_000
	var shift atomic.Int64
	d := newDiskBed(b, func(c *engine.Config) {
		c.TailBytes = 16 << 20
		c.Now = func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
	})
	topic := d.topic(4)
	alone := d.live(topic, 2*time.Second)
	var parked atomic.Int64
	done := make(chan struct{})
	p := d.engine.NewProducer("bench", func(rs []engine.Receipt) {
		if parked.Add(int64(len(rs))) == n {
			close(done)
		}
	})
	ent := message("dev-1", string(make([]byte, 200)))
	begin := time.Now()
	due := d.engine.In(time.Hour)
	for i := range n {
		at := due
		if spread > 0 {
			at += rand.Int64N(spread.Milliseconds())
		}
		if err := p.PublishAt(topic.Partition(int32(i%4)), ent, at, 0); err != nil {
			b.Fatal(err)
		}
	}
	<-done
	parking := time.Since(begin)
	before := entered(topic)
	base := liveHeap()
	shift.Store(int64(3 * time.Hour))
	begin = time.Now()
	var releasing time.Duration
	peak := uint64(0)
	ended := make(chan struct{})
	go func() { // ends with the release
		defer close(ended)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			<-tick.C
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			left := int64(0)
			for i := range topic.Logs() {
				left += topic.Partition(i).Parked()
			}
			if left == 0 {
				releasing = time.Since(begin)
				tick.Stop()
				return
			}
		}
	}()
	beside := d.live(topic, 2*time.Second)
	<-ended
	if got := entered(topic) - before; got < n {
		b.Fatalf("%d of %d are there", got, n)
	}
	b.ReportMetric(n/parking.Seconds(), "parked/s")
	b.ReportMetric(n/releasing.Seconds(), "released/s")
	b.ReportMetric(float64(int64(peak)-int64(base))/(1<<20), "peak-MiB")
	b.ReportMetric(micros(quantile(alone, 0.99)), "alone-p99-µs")
	b.ReportMetric(micros(quantile(beside, 0.5)), "beside-p50-µs")
	b.ReportMetric(micros(quantile(beside, 0.99)), "beside-p99-µs")
	b.ReportMetric(0, "ns/op")
}

func entered(topic *engine.Topic) (n core.Offset) {
	for i := range topic.Logs() {
		_, next := topic.Partition(i).Bounds()
		n += next
	}
	return n
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// BenchmarkLate has single messages become due on an idle node and tells how long after its time each is readable: the
// wait for the clock's millisecond, one commit with its fsync, and the machine's noise.
func BenchmarkLate(b *testing.B) {
	d := newDiskBed(b, nil)
	part := d.topic(1).Partition(0)
	p := d.engine.NewProducer("bench", func([]engine.Receipt) {})
	var late []time.Duration
	for b.Loop() {
		_, end := part.Bounds()
		there := make(chan time.Time, 1)
		part.Await(end, func() { there <- time.Now() })
		due := d.engine.In(30 * time.Millisecond)
		if err := p.PublishAt(part, message("k", "x"), due, 0); err != nil {
			b.Fatal(err)
		}
		late = append(late, (<-there).Sub(time.UnixMilli(due)))
	}
	b.ReportMetric(micros(quantile(late, 0.5)), "p50-µs")
	b.ReportMetric(micros(quantile(late, 0.99)), "p99-µs")
	b.ReportMetric(0, "ns/op")
}
