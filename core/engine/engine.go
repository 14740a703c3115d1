package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// Defaults complete short names and shape auto-created topics.
type Defaults struct {
	Tenant, Namespace string
	AutoCreate        bool
	Partitions        int32 // of a topic that an MQTT or Pulsar client creates; 0 = unpartitioned
	RocketMQQueues    int32 // of one that a RocketMQ client creates
	Deduplicate       bool  // of topics that are not declared
	Policy            Policy
	Split             Split         // of key_shared members that leave it open: SplitRing or SplitHalves
	DeleteWhenIdle    time.Duration // after which such a topic is deleted when nobody uses it; 0: never
}

// Config is what an engine is made of. Journals and Meta are required.
type Config struct {
	Journals      journal.Store
	Meta          meta.Store
	Decoders      map[core.Format]core.Decoder // FormatNeutral is known
	Splitters     map[core.Format]Splitter     // of formats that have batches
	Defaults      Defaults
	Slots         int              // journals per set; default 1
	Window        time.Duration    // how long open-loop traffic waits for company; default 1 ms
	TailBytes     int64            // memory for recent blocks, all logs together; default 64 MiB
	ColdBytes     int64            // memory for what catch-up readers share; default 16 MiB
	SaveEvery     time.Duration    // metadata tick; default 500 ms
	TrimFloor     time.Duration    // consumed data stays at least this long; default 10 min
	MarkBytes     int64            // journal bytes between two places to read and trim from; default 4 MiB
	ViewBytes     int64            // journal bytes between two checkpoints of its views; default 32 MiB
	FailoverGrace time.Duration    // for late acks of a connected predecessor; default 1 s, negative: none
	Openers       int              // journals that start-up opens at a time; default 8
	MaxMessage    int              // bytes of an entry; default 5 MiB and some
	Now           func() time.Time // default time.Now; the wall clock of retention, locks and expiry
	Log           *slog.Logger
	Registerer    prometheus.Registerer // nil: metrics are kept but not exported

	Parked  ParkedLimits
	Storage Storage // zero: not watched
}

func (c *Config) setDefaults() {
	c.Slots = cmp.Or(c.Slots, 1)
	c.Window = cmp.Or(c.Window, time.Millisecond)
	c.TailBytes = cmp.Or(c.TailBytes, 64<<20)
	c.ColdBytes = cmp.Or(c.ColdBytes, 16<<20)
	c.SaveEvery = cmp.Or(c.SaveEvery, 500*time.Millisecond)
	c.TrimFloor = cmp.Or(c.TrimFloor, 10*time.Minute)
	c.MarkBytes = cmp.Or(c.MarkBytes, markBytes)
	c.ViewBytes = cmp.Or(c.ViewBytes, checkpointBytes)
	c.FailoverGrace = cmp.Or(c.FailoverGrace, time.Second)
	c.Openers = cmp.Or(c.Openers, 8)
	c.MaxMessage = cmp.Or(c.MaxMessage, 6<<20)
	c.Parked.setDefaults()
	c.Defaults.Tenant = cmp.Or(c.Defaults.Tenant, "public")
	c.Defaults.Namespace = cmp.Or(c.Defaults.Namespace, "default")
	c.Defaults.RocketMQQueues = cmp.Or(c.Defaults.RocketMQQueues, 8)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// Engine is the running engine. Its methods may be called by any goroutine between Open and the end of Run.
type Engine struct {
	cfg      Config
	metrics  *Metrics
	tasks    tasks
	stamp    atomic.Uint64 // of the newest committed block
	tail     atomic.Int64  // bytes held by all tail caches
	ahead    atomic.Int64  // bytes that key_shared groups hold of what waits for its consumer
	cold     coldCache
	full     atomic.Bool   // the disk is, as far as producers are concerned
	free     atomic.Int64  // bytes on it, as seen last
	blind    bool          // the disk could not be asked; owned by the warden
	captured chan struct{} // capacity 1: the checkpointer has something to do
	crowded  sync.Mutex    // one log at a time releases a large crowd; only tried
	pools    pools
	unsaved  unsaved
	meta     sync.Mutex // one metadata transaction at a time, from what is read for it to what follows from it
	dormant  dormant

	mu struct {
		sync.RWMutex
		topics    map[core.TopicName]*Topic
		damaged   map[core.TopicName]error // out of service
		aliases   map[alias]core.TopicName
		numbers   map[uint32]*Partition
		logs      map[string]*log
		followers []*Follower
		parkings  map[uint32]*parking // by the number of their internal partition
		checkers  map[core.Format]func(*ParkedMessage) bool
		next      uint32 // next partition number
	}
}

type alias struct{ protocol, name string }

// Open recovers topics, groups and logs. It starts nothing: call Run.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg.setDefaults()
	if cfg.Journals == nil || cfg.Meta == nil {
		return nil, fmt.Errorf("engine needs journals and metadata: %w", core.ErrInvalid)
	}
	e := &Engine{cfg: cfg, captured: make(chan struct{}, 1)}
	e.cold.limit = cfg.ColdBytes
	e.tasks.init()
	e.tasks.start(e.checkpointer)
	e.metrics = newMetrics(e, cfg.Registerer)
	e.mu.topics = map[core.TopicName]*Topic{}
	e.mu.damaged = map[core.TopicName]error{}
	e.mu.aliases = map[alias]core.TopicName{}
	e.mu.numbers = map[uint32]*Partition{}
	e.mu.logs = map[string]*log{}
	e.mu.parkings = map[uint32]*parking{}
	e.mu.checkers = map[core.Format]func(*ParkedMessage) bool{}
	if err := e.recover(ctx); err != nil {
		return nil, errors.Join(err, e.dormant.close(), e.closeLogs())
	}
	e.tasks.start(e.warden)
	return e, nil
}

// Run commits, dispatches and saves until ctx ends, then stops in order: consumers are detached, what was accepted is
// committed, cursors and positions are saved, journals are closed. Nothing of it is alive when it returns.
func (e *Engine) Run(ctx context.Context) error {
	saverDone := make(chan struct{})
	saverCtx, stopSaver := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSaver()
	go func() {
		defer close(saverDone)
		e.save(saverCtx)
	}()
	e.tasks.run(ctx)
	e.detachAll(core.ErrClosed)
	e.tasks.stop()
	stopSaver()
	<-saverDone
	e.rememberIdle()
	err := errors.Join(e.saveOnce(), e.settleReserves())
	e.finishCheckpoints()
	return errors.Join(err, e.closeLogs())
}

func (e *Engine) closeLogs() error {
	var errs []error
	for _, l := range e.allLogs() {
		if err := l.journal.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close journal %s: %w", l.name, err))
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) allLogs() []*log {
	e.mu.RLock()
	defer e.mu.RUnlock()
	ls := make([]*log, 0, len(e.mu.logs))
	for _, l := range e.mu.logs {
		ls = append(ls, l)
	}
	slices.SortFunc(ls, func(a, b *log) int { return cmp.Compare(a.name, b.name) })
	return ls
}

// Defaults returns what short names and auto-created topics are completed with.
func (e *Engine) Defaults() Defaults { return e.cfg.Defaults }

// Metrics returns the counters that adapters share.
func (e *Engine) Metrics() *Metrics { return e.metrics }

// Health returns why the engine cannot take all messages: a topic out of service, a journal that failed, too little room on
// the disk, or nil.
func (e *Engine) Health() error {
	e.mu.RLock()
	for n, err := range e.mu.damaged {
		e.mu.RUnlock()
		return fmt.Errorf("%s: %w", n, err)
	}
	e.mu.RUnlock()
	for _, l := range e.allLogs() {
		if err := l.failure(); err != nil {
			return err
		}
	}
	if e.full.Load() {
		return errStorageFull
	}
	return nil
}

func (e *Engine) now() time.Time { return e.cfg.Now() }

// Stamp grows with every committed block of the node.
func (e *Engine) Stamp() uint64 { return e.stamp.Load() }

// Messages appends the messages of an entry of any format to dst.
func (e *Engine) Messages(ent *core.Entry, dst []core.Message) ([]core.Message, error) {
	if ent.Format == core.FormatNeutral {
		return core.DecodeNeutral(ent, dst)
	}
	decode := e.cfg.Decoders[ent.Format]
	if decode == nil {
		return dst, fmt.Errorf("entry format %d at offset %d: %w", ent.Format, ent.Base, core.ErrUnsupported)
	}
	n := len(dst)
	dst, err := decode(ent, dst)
	if err == nil && len(dst)-n != int(ent.Count) {
		return dst[:n], fmt.Errorf("entry at offset %d holds %d messages, not %d: %w", ent.Base, len(dst)-n, ent.Count, core.ErrInvalid)
	}
	return dst, err
}

// tasks are the goroutines of the engine: those asked for before Run start with it, all end with it.
// The mutex guards the phase.
type tasks struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     struct {
		sync.Mutex
		running, ended bool
		early          []func(context.Context)
	}
}

func (t *tasks) init() { t.ctx, t.cancel = context.WithCancel(context.Background()) }

// start reports false after the end; then f is not called.
func (t *tasks) start(f func(context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.mu.ended:
		return false
	case !t.mu.running:
		t.mu.early = append(t.mu.early, f)
	default:
		t.wg.Go(func() { f(t.ctx) })
	}
	return true
}

// run starts the tasks and waits for ctx to end.
func (t *tasks) run(ctx context.Context) {
	t.mu.Lock()
	t.mu.running = true
	for _, f := range t.mu.early {
		t.wg.Go(func() { f(t.ctx) })
	}
	t.mu.early = nil
	t.mu.Unlock()
	<-ctx.Done()
}

func (t *tasks) stop() {
	t.mu.Lock()
	t.mu.ended = true
	t.mu.Unlock()
	t.cancel()
	t.wg.Wait()
}
