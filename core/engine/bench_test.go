package engine_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/core"
	"isthmus/core/engine"
)

// What the benchmarks share. Each has a null baseline beside it in the same run: the bare disk, or the load generator
// with nobody to serve it. On a shared machine the CPU a message (getrusage, all threads) is the figure to trust.

// large runs the benchmarks at the size of the goals rather than at one that takes seconds: make bench-large.
var large = flag.Bool("large", false, "10 million messages, 10 GB of backlog")

// sized picks the size of a benchmark.
func sized[T any](small, big T) T {
	if *large {
		return big
	}
	return small
}

func (d *diskBed) topic(partitions int32) *engine.Topic {
	d.b.Helper()
	n, _ := core.ParseTopicName("bench", "public", "default")
	t, err := d.engine.EnsureTopic(n, partitions)
	if err != nil {
		d.b.Fatal(err)
	}
	return t
}

func (d *diskBed) declare(name string) *engine.Topic {
	d.b.Helper()
	n, _ := core.ParseTopicName(name, "public", "default")
	t, err := d.engine.DeclareTopic(n, engine.TopicSpec{})
	if err != nil {
		d.b.Fatal(err)
	}
	return t
}

// fill publishes n messages of a size to the partitions in turn, as fast as the engine takes them: numbered ones where the
// engine looks for duplicates, under a name that no other process has.
func (d *diskBed) fill(t *engine.Topic, n, size int) {
	d.b.Helper()
	const window = 8192
	free := make(chan int, window)
	p := d.engine.NewProducer("bench", func(rs []engine.Receipt) {
		for _, r := range rs {
			if r.Err != nil {
				d.b.Error(r.Err)
			}
		}
		free <- len(rs)
	})
	ent := message("dev-1", string(make([]byte, size)))
	if d.config.Defaults.Deduplicate {
		ent.Flags |= core.FlagSequenced
		ent.Producer = fmt.Append(nil, "bench-", os.Getpid())
	}
	room := window
	for i, acked := 0, 0; acked < n; {
		for ; room > 0 && i < n; room-- {
			ent.SeqLow, ent.SeqHigh = int64(i), int64(i)
			if err := p.Publish(t.Partition(int32(i)%t.Logs()), ent, 0); err != nil {
				d.b.Fatal(err)
			}
			i++
		}
		k := <-free
		room += k
		acked += k
	}
}

// segments are the files of the log, oldest first.
func (d *diskBed) segments() []string {
	d.b.Helper()
	paths, err := filepath.Glob(filepath.Join(d.dir, "journals", "*", "*.seg"))
	if err != nil {
		d.b.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

// cool drops the log's files from the page cache.
func (d *diskBed) cool() {
	d.b.Helper()
	for _, path := range d.segments() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			d.b.Fatal(err)
		}
		_ = unix.Fdatasync(int(f.Fd()))
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			d.b.Fatal(err)
		}
		f.Close()
	}
}

// quantile sorts ds.
func quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	slices.Sort(ds)
	return ds[min(int(q*float64(len(ds))), len(ds)-1)]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// commits reads the engine's histogram of commits: how many, and the seconds they took.
func (d *diskBed) commits() (count, seconds float64) {
	d.b.Helper()
	families, err := d.metrics.Gather()
	if err != nil {
		d.b.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "isthmus_commit_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			return float64(h.GetSampleCount()), h.GetSampleSum()
		}
	}
	return 0, 0
}

// metric reads a counter of the engine's.
func (d *diskBed) metric(name string) float64 {
	d.b.Helper()
	families, err := d.metrics.Gather()
	if err != nil {
		d.b.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// rawSync is the bare disk: a file of bytes written before, in which a block of this size is written and synced.
func rawSync(b *testing.B, size int) func() time.Duration {
	b.Helper()
	const room = 16 << 20
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	if _, err := f.Write(make([]byte, room)); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	block, pos := make([]byte, size), int64(0)
	return func() time.Duration {
		begin := time.Now()
		if _, err := f.WriteAt(block, pos); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		if pos += int64(size+7) &^ 7; pos+int64(size) > room {
			pos = 0
		}
		return time.Since(begin)
	}
}
