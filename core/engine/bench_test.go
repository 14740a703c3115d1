package engine_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/journal"
	"isthmus/core/journal/disk"
	journals "isthmus/core/journal/memory"
	"isthmus/core/meta/bolt"
	metas "isthmus/core/meta/memory"
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

// diskBed is an engine over the default tenants that can be stopped and opened again.
type diskBed struct {
	b       *testing.B
	dir     string
	store   journal.Store // nil: the disk
	config  engine.Config
	metrics *prometheus.Registry
	engine  *engine.Engine
	stop    func()
}

func newDiskBed(b *testing.B, change func(*engine.Config)) *diskBed {
	b.Helper()
	return startBed(&diskBed{b: b, dir: b.TempDir()}, change)
}

// newMemoryBed is the same without a disk.
func newMemoryBed(b *testing.B) *diskBed {
	b.Helper()
	return startBed(&diskBed{b: b, store: journals.New()}, nil)
}

// newNullBed is the same over journals that forget.
func newNullBed(b *testing.B) *diskBed {
	b.Helper()
	return startBed(&diskBed{b: b, store: nullStore{journals.New()}}, nil)
}

type nullStore struct{ *journals.Store }

// Open implements journal.Store.
func (s nullStore) Open(ctx context.Context, name string, epoch uint64, durable journal.Seq) (journal.Journal, error) {
	j, err := s.Store.Open(ctx, name, epoch, durable)
	return &nullJournal{Journal: j}, err
}

type nullJournal struct {
	journal.Journal
	last journal.Seq
}

// Append implements journal.Journal.
func (j *nullJournal) Append(context.Context, []byte) (journal.Seq, error) {
	j.last++
	return j.last, nil
}

func startBed(d *diskBed, change func(*engine.Config)) *diskBed {
	d.b.Helper()
	d.config = engine.Config{Defaults: engine.Defaults{AutoCreate: true}}
	if change != nil {
		change(&d.config)
	}
	d.open()
	d.b.Cleanup(func() { d.close() })
	return d
}

// open returns how long the engine took to be ready.
func (d *diskBed) open() time.Duration {
	d.b.Helper()
	begin := time.Now()
	d.tenants()
	d.metrics = prometheus.NewRegistry()
	d.config.Registerer = d.metrics
	var err error
	if d.engine, err = engine.Open(context.Background(), d.config); err != nil {
		d.b.Fatal(err)
	}
	took := time.Since(begin)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.engine.Run(ctx) }()
	d.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			d.b.Error(err)
		}
		d.config.Meta.Close()
	}
	return took
}

func (d *diskBed) tenants() {
	d.b.Helper()
	if d.store != nil {
		d.config.Journals, d.config.Meta = d.store, metas.New()
		return
	}
	js, err := disk.New(disk.Options{Dir: filepath.Join(d.dir, "journals")})
	if err != nil {
		d.b.Fatal(err)
	}
	ms, err := bolt.Open(filepath.Join(d.dir, "meta.db"))
	if err != nil {
		d.b.Fatal(err)
	}
	d.config.Journals, d.config.Meta = js, ms
}

func (d *diskBed) close() {
	if d.stop != nil {
		d.stop()
		d.stop = nil
	}
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

// fill publishes n messages of a size to the partitions in turn, as fast as the engine takes them.
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
	room := window
	for i, acked := 0, 0; acked < n; {
		for ; room > 0 && i < n; room-- {
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
