package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus/e2e/gateway"
)

// BenchmarkIdle: what the gateway uses while nothing happens. The null baseline has no topic of its own, the other 100
// declared topics of 8 partitions, which have a journal each.
func BenchmarkIdle(b *testing.B) {
	var topics strings.Builder
	for i := range 100 {
		fmt.Fprintf(&topics, "persistent://public/default/t%d: { partitions: 8 }\n", i)
	}
	b.Run("null", func(b *testing.B) { idle(b, gateway.Config{}) })
	b.Run("100-topics", func(b *testing.B) { idle(b, gateway.Config{Topics: topics.String()}) })
}

// idle looks after a moment in which start-up comes to rest. CPU is counted in hundredths of a second.
func idle(b *testing.B, c gateway.Config) {
	const window = 20 * time.Second
	g, err := gateway.New(gatewayBinary, b.TempDir(), c)
	if err != nil {
		b.Fatal(err)
	}
	if err := g.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := g.Stop(); err != nil {
			b.Error(err)
		}
	})
	<-time.After(5 * time.Second)
	var used time.Duration
	var rss int64
	for range b.N {
		before, err := g.Usage()
		if err != nil {
			b.Fatal(err)
		}
		<-time.After(window)
		after, err := g.Usage()
		if err != nil {
			b.Fatal(err)
		}
		used += after.CPU - before.CPU
		rss = max(rss, after.RSS)
	}
	b.ReportMetric(float64(rss)/(1<<20), "MiB-RSS")
	b.ReportMetric(100*used.Seconds()/(window.Seconds()*float64(b.N)), "%core")
	b.ReportMetric(0, "ns/op")
}
