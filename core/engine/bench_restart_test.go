package engine_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/core/engine"
)

// BenchmarkRestart opens an engine on a log of 200 B messages and 100 groups: 1 million by default, the goal's 10 million
// with -large. ready-ms is from nothing to an engine that serves. null is the same without a message.
func BenchmarkRestart(b *testing.B) {
	d := newDiskBed(b, nil)
	topic := d.topic(8)
	d.groups(topic, 100)
	ready := func(b *testing.B) {
		var took time.Duration
		for range b.N {
			d.close()
			took += d.open()
		}
		b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ready-ms")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("null", ready)
	d.fill(d.topic(8), sized(1_000_000, 10_000_000), 200)
	b.Run("ready", ready)
}

func (d *diskBed) groups(topic *engine.Topic, n int) {
	d.b.Helper()
	for i := range n {
		if _, err := topic.BeginGroup(fmt.Sprintf("g%d", i), engine.Start{At: engine.Earliest}); err != nil {
			d.b.Fatal(err)
		}
	}
}

var (
	victimDir   = flag.String("victim", "", "the benchmark of restarts fills this folder and kills itself")
	victimCount = flag.Int("victim-count", 0, "with so many messages")
)

// BenchmarkRestartKilled is the same after SIGKILL, with a topic that remembers what its producer sent: nothing was closed,
// no last checkpoint was written, and what came after the newest one is replayed. Before each restart but the first a process
// publishes as much as may lie between two checkpoints, and kills itself too.
func BenchmarkRestartKilled(b *testing.B) {
	change := func(c *engine.Config) { c.Defaults.Deduplicate = true }
	if *victimDir != "" {
		d := startBed(&diskBed{b: b, dir: *victimDir}, change)
		topic := d.topic(8)
		if len(topic.Groups()) == 0 {
			d.groups(topic, 100)
		}
		d.fill(topic, *victimCount, 200)
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		<-b.Context().Done()
	}
	dir := b.TempDir()
	kill := func(n int) {
		c := exec.Command(os.Args[0], "-test.run", "^$", "-test.bench", "^BenchmarkRestartKilled$", "-test.benchtime", "1x",
			"-victim", dir, "-victim-count", fmt.Sprint(n))
		out, err := c.CombinedOutput()
		if ws, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != unix.SIGKILL {
			b.Fatalf("the victim lives: %v\n%s", err, out)
		}
	}
	kill(sized(1_000_000, 10_000_000))
	b.Run("ready", func(b *testing.B) {
		var took time.Duration
		for range b.N {
			d := &diskBed{b: b, dir: dir, config: engine.Config{}}
			change(&d.config)
			took += d.open()
			d.close()
			kill(150_000)
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
