package engine_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
)

// BenchmarkGroup takes messages of 100 bytes from the log's tail to the consumers of a group, which acknowledge them and give
// their credit back: failover through the last of each hand-over, the others one by one. All is appended before, so what is
// measured is reading the tail, dispatch, hand-over, acks and cursors. The null baseline reads the same tail in the same
// portions, for nobody. Key_shared has 10 000 keys; with a credit of 20 its consumers set the pace, and most of what is read
// waits for its owner.
//
// ns/op is one message; cpu-ns/msg is all threads, the collector as well; mallocs/msg is counted once a group has warmed up.
func BenchmarkGroup(b *testing.B) {
	d := newMemoryBed(b)
	topic := d.topic(1)
	d.fillKeyed(topic, groupMessages, 10_000)
	b.Run("null", func(b *testing.B) {
		measure(b, func(warm func(int)) { readTail(b, topic.Partition(0), warm) })
	})
	for _, x := range []struct {
		mode            core.Mode
		members, credit int
	}{
		{core.Failover, 1, 1000}, {core.Shared, 3, 1000}, {core.KeyShared, 3, 1000}, {core.KeyShared, 3, 20},
		{core.Failover, 1000, 1000}, {core.Shared, 1000, 100}, {core.KeyShared, 1000, 100},
	} {
		b.Run(fmt.Sprintf("%s/members-%d/credit-%d", x.mode, x.members, x.credit), func(b *testing.B) {
			crew := newCrew(b, topic, x.mode, x.members, x.credit)
			measure(b, crew.consume)
			crew.leave()
		})
	}
}

// groupMessages are in memory, all of them.
const groupMessages = 200_000

// fillKeyed publishes n messages of so many keys to the first partition.
func (d *diskBed) fillKeyed(t *engine.Topic, n, keys int) {
	d.b.Helper()
	var wg sync.WaitGroup
	wg.Add(n)
	p := d.engine.NewProducer("bench", func(rs []engine.Receipt) { wg.Add(-len(rs)) })
	body := string(make([]byte, 100))
	for i := range n {
		if err := p.Publish(t.Partition(0), message(fmt.Sprintf("device-%05d", i*7919%keys), body), 0); err != nil {
			d.b.Fatal(err)
		}
	}
	wg.Wait()
}

// measure runs f over all messages as often as it takes; f calls warm as it gets on, so that what it needs once does not
// count as allocated for each message.
func measure(b *testing.B, f func(warm func(done int))) {
	var before, after runtime.MemStats
	var warmed atomic.Int64
	var mallocs, counted uint64
	var spent, took time.Duration
	turns := 0
	for ; turns*groupMessages < b.N || turns == 0; turns++ {
		warmed.Store(0)
		used, begin := cpu(), time.Now()
		f(func(done int) {
			if done >= groupMessages/4 && warmed.CompareAndSwap(0, int64(done)) {
				runtime.ReadMemStats(&before)
			}
		})
		spent += cpu() - used
		took += time.Since(begin)
		runtime.ReadMemStats(&after)
		mallocs += after.Mallocs - before.Mallocs
		counted += uint64(groupMessages - warmed.Load())
	}
	n := float64(turns * groupMessages)
	b.ReportMetric(float64(took.Nanoseconds())/n, "ns/op")
	b.ReportMetric(float64(spent.Nanoseconds())/n, "cpu-ns/msg")
	b.ReportMetric(float64(mallocs)/float64(counted), "mallocs/msg")
}

func readTail(b *testing.B, p *engine.Partition, warm func(int)) {
	var es []core.Entry
	for at := core.Offset(0); at < groupMessages; warm(int(at)) {
		var err error
		if es, err = p.AppendEntries(b.Context(), es[:0], at, 256, 1<<20); err != nil {
			b.Fatal(err)
		}
		at = es[len(es)-1].End()
	}
}

// crew is a group with its consumers. One runner serves it, so what it hands over comes from one goroutine.
type crew struct {
	b     *testing.B
	group *engine.Group
	all   []*hand
	seen  int
	warm  func(int)
	done  chan struct{}
}

// hand is one of the crew.
type hand struct {
	crew *crew
	c    *engine.Consumer
}

func newCrew(b *testing.B, topic *engine.Topic, mode core.Mode, members, credit int) *crew {
	b.Helper()
	g, err := topic.BeginGroup("g-"+b.Name(), engine.Start{At: engine.Earliest, NonDurable: true})
	if err != nil {
		b.Fatal(err)
	}
	w := &crew{b: b, group: g, warm: func(int) {}, done: make(chan struct{}, 1)}
	for i := range members {
		h := &hand{crew: w}
		h.c, err = g.Join(b.Context(), engine.Member{Protocol: "bench", Name: fmt.Sprint("c", i), Mode: mode, Sink: h})
		if err != nil {
			b.Fatal(err)
		}
		w.all = append(w.all, h)
	}
	for _, h := range w.all {
		h.c.Permit(credit)
	}
	<-w.done
	return w
}

// consume has everything delivered once more.
func (w *crew) consume(warm func(int)) {
	w.warm = warm
	if err := w.group.Reset(0, 0); err != nil {
		w.b.Fatal(err)
	}
	<-w.done
}

func (w *crew) leave() {
	for _, h := range w.all {
		h.c.Leave()
	}
}

func (h *hand) Deliver(ds []engine.Delivery) {
	w := h.crew
	if h.c.Group().Mode() == core.Failover {
		h.c.AckThrough(0, ds[len(ds)-1].Entry.End())
	} else {
		for i := range ds {
			e := &ds[i].Entry
			h.c.Ack(0, core.Range{From: e.Base, To: e.End()})
		}
	}
	h.c.Permit(len(ds))
	w.seen += len(ds)
	w.warm(w.seen)
	if w.seen == groupMessages {
		w.seen = 0
		w.done <- struct{}{}
	}
}
func (h *hand) Active(int32, bool) {}
func (h *hand) Detached(error)     {}
