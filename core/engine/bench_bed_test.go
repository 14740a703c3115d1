package engine_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/core/engine"
	"isthmus/core/journal"
	"isthmus/core/journal/disk"
	journals "isthmus/core/journal/memory"
	"isthmus/core/meta/bolt"
	metas "isthmus/core/meta/memory"
)

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
