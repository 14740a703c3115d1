package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/journal/disk"
	"isthmus/core/journal/disk/faultfs"
	"isthmus/core/meta"
	metas "isthmus/core/meta/memory"
)

var (
	crashPoints = flag.Int("crash", 400, "how many times the power fails in TestI1_I2_I6_I7_CrashBench")
	crashSeed   = flag.Uint64("crash-seed", 0, "play this one life of the crash bench")
)

// lifeCrashes is how often the power fails in one life of the bench.
const lifeCrashes = 8

// I1, I2, I6, I7: the power fails at random operations of whole lives of an engine, on a disk that forgets what was not
// synced, tears and reorders. After each restart all that was acknowledged is there and nothing else.
func TestI1_I2_I6_I7_CrashBench(t *testing.T) {
	if *crashSeed != 0 {
		crashLife(t, *crashSeed)
		return
	}
	first := rand.Uint64N(1<<40) + 1
	for i := range uint64(max(1, *crashPoints/lifeCrashes)) {
		if crashLife(t, first+i); t.Failed() {
			return
		}
	}
}

func crashLife(t *testing.T, seed uint64) {
	var err error
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that one seed means one order of events, as far as that can be had
	synctest.Test(t, func(t *testing.T) {
		w := newCrashWorld(t, seed, false)
		for i := 0; i < lifeCrashes && err == nil; i++ {
			if err = w.span(); err == nil {
				err = w.recoverAndCheck()
			}
		}
		w.kill()
	})
	if err != nil {
		t.Errorf("%v\nagain with: go test -run CrashBench ./core/engine -crash-seed %d", err, seed)
	}
}

// crashWorld is an engine on a disk that can lose power, and what is known about it.
type crashWorld struct {
	t     *testing.T
	seed  uint64
	rand  *rand.Rand
	disk  *faultfs.Disk
	meta  *crashMeta
	mode  disk.SyncMode
	slots int
	dedup bool // producers send again what nobody acknowledged before a crash
	parks bool // some messages are delayed

	eng    *engine.Engine
	stop   func()
	pub    *publisher
	tokens int64
	logs   []*crashLog
	groups []*crashGroup
	downAt atomic.Int64 // unix ns; 0: there is power
}

func newCrashWorld(t *testing.T, seed uint64, plain bool) *crashWorld {
	w := &crashWorld{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 2)), disk: faultfs.New(seed)}
	w.meta = &crashMeta{Store: metas.New(), power: w.disk}
	w.slots = 1 + w.rand.IntN(2)
	if !plain {
		w.dedup, w.parks = w.rand.IntN(2) == 0, w.rand.IntN(2) == 0
		if w.rand.IntN(3) == 0 {
			w.mode = disk.Interval
		}
	}
	w.logs, w.groups = newCrashLogs()
	if err := errors.Join(w.disk.MkdirAll("/data"), w.disk.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// crashMeta is a metadata store on the same power: of the transaction under way it is not known whether it was done.
type crashMeta struct {
	meta.Store
	power *faultfs.Disk
	full  atomic.Bool
}

func (m *crashMeta) Apply(ws []meta.Write) error {
	landed, err := m.power.Step("apply")
	if err == nil && m.full.Load() {
		return errMetaFull
	}
	if err == nil || landed {
		err = errors.Join(err, m.Store.Apply(ws))
	}
	return err
}

var errMetaFull = errors.New("metadata full")

func (m *crashMeta) Close() error { return nil }

// start opens the engine; it fails when the power does.
func (w *crashWorld) start() error {
	store, err := disk.New(disk.Options{Dir: "/data/journals", SegmentMin: 4 << 10, SegmentMax: 16 << 10, FS: w.disk, Sync: w.mode})
	if err != nil {
		return err
	}
	e, err := engine.Open(context.Background(), engine.Config{
		Journals: store, Meta: w.meta, Slots: w.slots, Openers: 1, TrimFloor: time.Second, MarkBytes: 6 << 10, ViewBytes: 8 << 10, TailBytes: 8 << 10,
		Defaults: engine.Defaults{Tenant: "public", Namespace: "default", AutoCreate: true, Deduplicate: w.dedup},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(ctx) // says that it could not save, when there is no power
	}()
	w.eng, w.pub = e, newPublisher(e)
	w.stop = func() {
		cancel()
		<-ended
	}
	return nil
}

func (w *crashWorld) kill() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// failAt lets the power fail at the n-th operation from now.
func (w *crashWorld) failAt(n int) {
	w.downAt.Store(0)
	w.disk.Before(func(faultfs.Op) error {
		if n--; n >= 0 {
			return nil
		}
		w.downAt.Store(time.Now().UnixNano())
		return faultfs.ErrPower
	})
}

// span works until the power fails: in the middle of something, or at rest.
func (w *crashWorld) span() error {
	if w.dedup {
		w.resend()
	}
	w.failAt(w.rand.IntN(100))
	if err := w.work(25, true); err != nil {
		return err
	}
	w.downAt.CompareAndSwap(0, time.Now().UnixNano())
	w.disk.PowerOff()
	w.kill()
	return w.look()
}

// work does a number of things, or stops early when the power fails.
func (w *crashWorld) work(steps int, stop bool) error {
	for range steps {
		if stop && w.downAt.Load() != 0 {
			return nil
		}
		w.act()
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if err := w.look(); err != nil {
			return err
		}
	}
	return nil
}

// act does something. That it fails for want of power is no fault.
func (w *crashWorld) act() {
	if w.parks && w.rand.IntN(4) == 0 {
		w.decide()
	}
	switch w.rand.IntN(12) {
	default:
		for range 1 + w.rand.IntN(5) {
			w.publish(w.logs[w.rand.IntN(len(w.logs))], w.parks && w.rand.IntN(6) == 0)
		}
	case 6, 7, 8:
		for _, g := range w.groups {
			g.ackSome(w.rand)
		}
	case 9, 10:
		time.Sleep(700 * time.Millisecond) // a tick
	case 11:
		time.Sleep(6 * time.Second) // the journals may be trimmed
	}
}

// topic returns a topic and sees to it that its groups exist; nil for want of power.
func (w *crashWorld) topic(name string) *engine.Topic {
	n := core.TopicName{Tenant: "public", Namespace: "default", Name: name}
	var topic *engine.Topic
	var err error
	if name == "declared" {
		topic, err = w.eng.DeclareTopic(n, engine.TopicSpec{Partitions: crashTopics[name], Deduplicate: w.dedup})
	} else {
		topic, err = w.eng.EnsureTopic(n, crashTopics[name])
	}
	if err != nil {
		w.excuse(err)
		return nil
	}
	for _, g := range w.groups {
		if g.topic == name && g.consumer == nil {
			if err := g.join(w, topic); err != nil {
				w.excuse(err)
				return nil
			}
		}
	}
	return topic
}

// excuse fails the test unless there is no power.
func (w *crashWorld) excuse(err error) {
	if w.downAt.Load() == 0 {
		w.t.Errorf("seed %d: %v", w.seed, err)
	}
}

func (w *crashWorld) publish(l *crashLog, delayed bool) {
	topic := w.topic(l.topic)
	if topic == nil {
		return
	}
	w.tokens++
	s := &crashSent{token: w.tokens, count: 1 + int32(w.tokens%3), base: -1}
	if delayed {
		s.due = w.eng.In(time.Duration(w.rand.IntN(8000)+20) * time.Millisecond)
		if s.half.is = w.rand.IntN(3) == 0; s.half.is {
			s.due = w.eng.In(1000 * time.Hour) // until somebody decides
		}
	}
	l.sent[s.token] = s
	w.send(topic.Partition(l.index), s)
}

func (w *crashWorld) send(p *engine.Partition, s *crashSent) {
	e := message("k", s.body())
	e.Count, e.SeqLow, e.SeqHigh = s.count, s.token, s.token
	if w.dedup {
		e.Flags |= core.FlagSequenced
		e.Producer = []byte("p")
	}
	publish := func() error { return w.pub.PublishAt(p, e, s.due, uint64(s.token)) }
	if s.half.is {
		publish = func() error {
			return w.pub.PublishHalf(p, e, engine.HalfMessage{Check: s.due}, uint64(s.token))
		}
	}
	if err := publish(); err != nil {
		w.excuse(err)
	}
}

// resend does what a client does after a lost connection: all that nobody acknowledged comes again, in its order.
func (w *crashWorld) resend() {
	for _, l := range w.logs {
		topic := w.topic(l.topic)
		if topic == nil {
			return
		}
		for _, token := range slices.Sorted(maps.Keys(l.sent)) {
			if s := l.sent[token]; s.at == 0 {
				w.send(topic.Partition(l.index), s)
			}
		}
	}
}

// crashSent is an entry that was given to the engine.
type crashSent struct {
	token int64
	count int32
	base  core.Offset // -1: nobody was told
	at    int64       // when its producer was told, unix ns; 0: never
	due   int64       // unix ms; 0: at once
	maybe bool        // parked, and a power loss may have taken it
	half  halfState
	found bool // by the reader that is at work
}

// body is of all sizes, up to larger than half a segment, and of one kind for each token.
func (s *crashSent) body() string {
	r := rand.New(rand.NewPCG(uint64(s.token), 3))
	size := r.IntN(200)
	if r.IntN(8) == 0 {
		size = r.IntN(9000)
	}
	return fmt.Sprintf("%d:%s", s.token, strings.Repeat(string(rune('a'+s.token%26)), size))
}

// crashGroup is a durable group of a topic, with one consumer.
type crashGroup struct {
	topic, name string
	mode        core.Mode
	logs        []*crashLog
	consumer    *engine.Consumer

	mu   sync.Mutex
	got  []engine.Delivery // what the sink got and nobody looked at
	held []engine.Delivery
	acks []map[core.Offset]int64 // by partition: when a message was acknowledged, unix ns
}

func (g *crashGroup) join(w *crashWorld, topic *engine.Topic) error {
	eg, err := topic.BeginGroup(g.name, engine.Start{At: engine.Earliest})
	if err != nil {
		return err
	}
	c, err := eg.Join(w.t.Context(), engine.Member{Protocol: "pulsar", Name: "c", Mode: g.mode, Sink: g})
	if err != nil {
		return err
	}
	c.Permit(1 << 30)
	g.consumer = c
	return nil
}

// Deliver is called by runners.
func (g *crashGroup) Deliver(ds []engine.Delivery) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.got = append(g.got, ds...)
}

func (g *crashGroup) Active(int32, bool) {}
func (g *crashGroup) Detached(error)     {}

// take returns what was delivered since the last call.
func (g *crashGroup) take() []engine.Delivery {
	g.mu.Lock()
	defer g.mu.Unlock()
	got := g.got
	g.got = nil
	return got
}

// ackSome acknowledges about half of what is held.
func (g *crashGroup) ackSome(r *rand.Rand) {
	keep := g.held[:0]
	for _, d := range g.held {
		if r.IntN(3) == 0 {
			keep = append(keep, d)
			continue
		}
		g.consumer.Ack(d.Partition.Index(), core.Range{From: d.Entry.Base, To: d.Entry.End()})
		for o := d.Entry.Base; o < d.Entry.End(); o++ {
			g.acks[d.Partition.Index()][o] = time.Now().UnixNano()
		}
	}
	g.held = keep
}
