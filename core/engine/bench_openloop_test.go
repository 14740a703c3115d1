package engine_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/core/engine"
)

// BenchmarkOpenLoop sends messages of 128 B at a steady rate whatever comes back, spread over 50 appenders or through one.
// Latency counts from when a message was meant to be sent. The null baseline is the same pacer with nobody to serve it:
// cpu-µs/msg has its cost taken off, late-p50 is how late it is by itself.
func BenchmarkOpenLoop(b *testing.B) {
	for _, shape := range []struct {
		name            string
		appenders, rate int
	}{
		{"20k/50", 50, 20_000}, {"20k/1", 1, 20_000}, {"5k/1", 1, 5_000}, {"100k/50", 50, 100_000},
	} {
		b.Run(shape.name, func(b *testing.B) { openLoop(b, shape.appenders, shape.rate) })
	}
}

func openLoop(b *testing.B, appenders, rate int) {
	d := newDiskBed(b, nil)
	topic := d.topic(8)
	n := max(b.N, rate/4)
	took := make([]time.Duration, n)
	due := make([]time.Time, n)
	var acked atomic.Int64
	all := make(chan struct{})
	ps := make([]*engine.Producer, appenders)
	for i := range ps {
		ps[i] = d.engine.NewProducer("bench", func(rs []engine.Receipt) {
			now := time.Now()
			for _, r := range rs {
				took[r.Token] = now.Sub(due[r.Token])
			}
			if acked.Add(int64(len(rs))) == int64(n) {
				close(all)
			}
		})
	}
	ent := message("dev-1", string(make([]byte, 128)))
	late := make([]time.Duration, n)
	used := cpu()
	pace(rate, due, func(i int) { late[i] = time.Since(due[i]) })
	null := cpu() - used

	raw, bare := rawSync(b, 4096), make([]time.Duration, 300)
	for i := range bare {
		bare[i] = raw()
	}
	count, _ := d.commits()
	b.ResetTimer()
	used = cpu()
	pace(rate, due, func(i int) {
		if err := ps[i%appenders].Publish(topic.Partition(int32(i%8)), ent, uint64(i)); err != nil {
			b.Fatal(err)
		}
	})
	<-all
	b.StopTimer()
	spent := cpu() - used
	after, _ := d.commits()
	b.ReportMetric(micros(spent-null)/float64(n), "cpu-µs/msg")
	b.ReportMetric((after-count)/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(micros(quantile(took, 0.5)), "p50-µs")
	b.ReportMetric(micros(quantile(took, 0.99)), "p99-µs")
	b.ReportMetric(micros(quantile(bare, 0.5)), "raw-sync-p50-µs")
	b.ReportMetric(micros(quantile(late, 0.5)), "late-p50-µs")
}

// pace calls send for each message when it is due, and notes when that was meant to be. What is late is not skipped. The
// runtime's timers are too coarse, so it sleeps in a thread of its own.
func pace(rate int, due []time.Time, send func(i int)) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	defer func() {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // back to the default
		runtime.UnlockOSThread()
	}()
	begin := time.Now()
	for i := 0; i < len(due); {
		now := time.Now()
		for ; i < len(due); i++ {
			due[i] = begin.Add(time.Duration(i) * time.Second / time.Duration(rate))
			if due[i].After(now) {
				break
			}
			send(i)
		}
		if i < len(due) {
			if wait := time.Until(due[i]); wait > 0 {
				ts := unix.NsecToTimespec(wait.Nanoseconds())
				_ = unix.Nanosleep(&ts, nil)
			}
		}
	}
}
