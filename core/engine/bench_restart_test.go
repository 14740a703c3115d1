package engine_test

import (
	"fmt"
	"testing"
	"time"

	"isthmus/core/engine"
)

// BenchmarkRestart opens an engine on a log of 200 B messages and 100 groups: 1 million by default, the goal's 10 million
// with -large. ready-ms is from nothing to an engine that serves. Raw is reading as much as start-up may replay.
func BenchmarkRestart(b *testing.B) {
	d := newDiskBed(b, nil)
	topic := d.topic(8)
	for i := range 100 {
		if _, err := topic.BeginGroup(fmt.Sprintf("g%d", i), engine.Start{At: engine.Earliest}); err != nil {
			b.Fatal(err)
		}
	}
	d.fill(topic, sized(1_000_000, 10_000_000), 200)
	b.Run("ready", func(b *testing.B) {
		var took time.Duration
		for range b.N {
			d.close()
			took += d.open()
		}
		b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ready-ms")
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkRestartTopics opens an engine with many declared topics, which have a journal each.
func BenchmarkRestartTopics(b *testing.B) {
	for _, topics := range []int{100, 1000} {
		b.Run(fmt.Sprint(topics), func(b *testing.B) {
			d := newDiskBed(b, nil)
			for i := range topics {
				d.declare(fmt.Sprintf("t%d", i))
			}
			var took time.Duration
			for range b.N {
				d.close()
				took += d.open()
			}
			b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ready-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkIdleGroups: what an engine with 10 000 groups on one topic uses while nothing happens, in parts of a core.
func BenchmarkIdleGroups(b *testing.B) {
	d := newDiskBed(b, nil)
	topic := d.topic(8)
	for i := range sized(2_000, 10_000) {
		if _, err := topic.BeginGroup(fmt.Sprintf("g%d", i), engine.Start{At: engine.Earliest}); err != nil {
			b.Fatal(err)
		}
	}
	const window = 3 * time.Second
	var used time.Duration
	for range b.N {
		spent := cpu()
		<-time.After(window)
		used += cpu() - spent
	}
	b.ReportMetric(100*used.Seconds()/(window.Seconds()*float64(b.N)), "%core")
	b.ReportMetric(0, "ns/op")
}
