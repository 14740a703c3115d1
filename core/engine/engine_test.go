package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wait bounds everything that a test waits for.
const wait = 10 * time.Second

func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(wait):
		t.Fatalf("no %s within %v", what, wait)
	}
	panic("unreachable")
}

// publisher publishes and hands receipts to a channel.
type publisher struct {
	*engine.Producer
	receipts chan engine.Receipt
}

func newPublisher(e *engine.Engine) *publisher {
	p := &publisher{receipts: make(chan engine.Receipt, 1<<16)}
	p.Producer = e.NewProducer("mqtt", func(rs []engine.Receipt) {
		for _, r := range rs {
			p.receipts <- r
		}
	})
	return p
}

func message(key, body string) *core.Entry {
	m := core.Message{Body: []byte(body)}
	return &core.Entry{Count: 1, Flags: core.FlagHasKey, Key: []byte(key), PublishTime: 1, Data: m.AppendNeutral(nil)}
}

// publish sends one message and waits until it is durable.
func (p *publisher) publish(t testing.TB, part *engine.Partition, key, body string) core.Offset {
	t.Helper()
	if err := p.Publish(part, message(key, body), 7); err != nil {
		t.Fatal(err)
	}
	r := receive(t, p.receipts, "receipt")
	if r.Err != nil || r.Token != 7 {
		t.Fatalf("receipt %+v", r)
	}
	return r.Base
}

// inbox is a Sink that keeps what it gets.
type inbox struct {
	got      chan engine.Delivery
	active   chan bool
	detached chan error
}

func newInbox() *inbox {
	return &inbox{make(chan engine.Delivery, 1<<16), make(chan bool, 64), make(chan error, 1)}
}

func (i *inbox) Deliver(ds []engine.Delivery) {
	for _, d := range ds {
		i.got <- d
	}
}
func (i *inbox) Active(_ int32, a bool) { i.active <- a }
func (i *inbox) Detached(err error)     { i.detached <- err }

func join(t testing.TB, g *engine.Group, name string, mode core.Mode, permits int) (*engine.Consumer, *inbox) {
	t.Helper()
	in := newInbox()
	c, err := g.Join(context.Background(), engine.Member{Protocol: "pulsar", Name: name, Mode: mode, Sink: in})
	if err != nil {
		t.Fatal(err)
	}
	c.Permit(permits)
	return c, in
}

func begin(t testing.TB, topic *engine.Topic, name string, at engine.StartAt) *engine.Group {
	t.Helper()
	g, err := topic.BeginGroup(name, engine.Start{At: at})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// gathered is the value of a counter or gauge, over all its labels together.
func gathered(t testing.TB, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func body(t testing.TB, e *engine.Engine, d engine.Delivery) string {
	t.Helper()
	ms, err := e.Messages(&d.Entry, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(ms[0].Body)
}

func TestI2_OffsetsAreDenseAndComeBackInOrder(t *testing.T) {
	for _, slots := range []int{1, 4} {
		t.Run(fmt.Sprintf("slots=%d", slots), func(t *testing.T) {
			bed := enginetest.New(t, func(c *engine.Config) { c.Slots = slots })
			topic := bed.Topic(t, "event", 3)
			p := newPublisher(bed.Engine)
			const n = 3000
			for i := range n {
				if err := p.Publish(topic.Partition(int32(i%3)), message("k", fmt.Sprint(i)), uint64(i)); err != nil {
					t.Fatal(err)
				}
			}
			next := map[int32]core.Offset{}
			for range n {
				r := receive(t, p.receipts, "receipt")
				if r.Err != nil || r.Base != next[r.Partition.Index()] {
					t.Fatalf("receipt %+v, want offset %d", r, next[r.Partition.Index()])
				}
				next[r.Partition.Index()]++
			}
			for i := range int32(3) {
				part := topic.Partition(i)
				var from core.Offset
				for from < n/3 {
					es, err := part.Read(t.Context(), from, 100, 1<<20)
					if err != nil || len(es) == 0 {
						t.Fatalf("read at %d: %d entries, %v", from, len(es), err)
					}
					for _, e := range es {
						ms, err := bed.Engine.Messages(&e, nil)
						if want := fmt.Sprint(from*3 + int64(i)); err != nil || e.Base != from || string(ms[0].Body) != want {
							t.Fatalf("partition %d offset %d: base %d body %q, want %q (%v)", i, from, e.Base, ms[0].Body, want, err)
						}
						from = e.End()
					}
				}
			}
		})
	}
}

func TestI1_NoReceiptBeforeTheBlockIsDurable(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 0)
	entered, release := make(chan struct{}, 8), make(chan struct{})
	bed.Journals.OnAppend(func(string, []byte) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	g := begin(t, topic, "g", engine.Latest)
	_, in := join(t, g, "c", core.Exclusive, 10)
	p := newPublisher(bed.Engine)
	if err := p.Publish(topic.Partition(0), message("k", "x"), 1); err != nil {
		t.Fatal(err)
	}
	receive(t, entered, "append")
	if len(p.receipts) > 0 || len(in.got) > 0 {
		t.Fatal("a receipt or a delivery before the block was durable")
	}
	if _, next := topic.Partition(0).Bounds(); next != 0 {
		t.Fatal("visible before it was durable")
	}
	close(release)
	if r := receive(t, p.receipts, "receipt"); r.Err != nil {
		t.Fatal(r.Err)
	}
	receive(t, in.got, "delivery")
}

func TestI1_AFailedJournalAnswersEveryPublishWithAnError(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 0)
	p := newPublisher(bed.Engine)
	p.publish(t, topic.Partition(0), "k", "before")
	bed.Journals.OnAppend(func(string, []byte) error { return errors.New("disk on fire") })
	if err := p.Publish(topic.Partition(0), message("k", "lost"), 2); err != nil {
		t.Fatal(err)
	}
	if r := receive(t, p.receipts, "receipt"); !errors.Is(r.Err, core.ErrUnavailable) || r.Token != 2 {
		t.Fatalf("receipt %+v", r)
	}
	if err := p.Publish(topic.Partition(0), message("k", "later"), 3); !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("publish after the failure: %v", err)
	}
	bed.Journals.OnAppend(nil)
	bed.Restart(t)
	topic = bed.Topic(t, "event", 0)
	p = newPublisher(bed.Engine)
	if base := p.publish(t, topic.Partition(0), "k", "after"); base < 1 {
		t.Fatalf("offset %d was issued twice", base)
	}
}

func TestI7_AGroupThatExistedGetsEverythingAfterARestart(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 2)
	g := begin(t, topic, "g", engine.Latest)
	p := newPublisher(bed.Engine)
	for i := range 10 {
		p.publish(t, topic.Partition(int32(i%2)), "k", fmt.Sprint(i))
	}
	c, in := join(t, g, "c", core.Failover, 4)
	for range 4 {
		d := receive(t, in.got, "delivery")
		c.Ack(d.Partition.Index(), core.Range{From: d.Entry.Base, To: d.Entry.End()})
	}
	c.Leave()
	bed.Restart(t)
	topic = bed.Topic(t, "event", 2)
	g, err := topic.Group("g")
	if err != nil {
		t.Fatal(err)
	}
	_, in = join(t, g, "c", core.Failover, 100)
	var got []string
	for range 6 {
		got = append(got, body(t, bed.Engine, receive(t, in.got, "delivery")))
	}
	slices.Sort(got)
	if got = slices.Compact(got); len(got) != 6 || len(in.got) != 0 {
		t.Fatalf("after the restart: %v, and %d more", got, len(in.got))
	}
}

func TestI8_PermitsBoundWhatAConsumerGets(t *testing.T) {
	for _, slots := range []int{1, 4} {
		bed := enginetest.New(t, func(c *engine.Config) { c.Slots = slots })
		topic := bed.Topic(t, "event", 4)
		g := begin(t, topic, "g", engine.Latest)
		c, in := join(t, g, "c", core.Shared, 0)
		p := newPublisher(bed.Engine)
		for i := range 100 {
			p.publish(t, topic.Partition(int32(i%4)), "k", fmt.Sprint(i))
		}
		if len(in.got) > 0 {
			t.Fatal("a delivery without a permit")
		}
		seen := map[string]bool{}
		for range 10 {
			c.Permit(10)
			for range 10 {
				seen[body(t, bed.Engine, receive(t, in.got, "delivery"))] = true
			}
		}
		if len(seen) != 100 || len(in.got) > 0 {
			t.Fatalf("slots=%d: %d different messages for 100 permits, %d too many", slots, len(seen), len(in.got))
		}
		c.Leave()
	}
}

func TestModeOfAGroupWithConsumersStays(t *testing.T) {
	bed := enginetest.New(t, nil)
	g := begin(t, bed.Topic(t, "event", 0), "g", engine.Latest)
	c, _ := join(t, g, "a", core.Exclusive, 1)
	for _, m := range []core.Mode{core.Exclusive, core.Shared} {
		_, err := g.Join(t.Context(), engine.Member{Name: "b", Mode: m, Sink: newInbox()})
		if !errors.Is(err, core.ErrBusy) {
			t.Fatalf("a second consumer in mode %v: %v", m, err)
		}
	}
	c.Leave()
	join(t, g, "b", core.Shared, 1)
}

func TestDeleteGroupDetaches(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Latest)
	_, in := join(t, g, "a", core.Shared, 1)
	if err := topic.DeleteGroup("g"); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, in.detached, "notice"); !errors.Is(err, core.ErrGroupNotFound) {
		t.Fatal(err)
	}
	bed.Restart(t)
	if _, err := bed.Topic(t, "event", 0).Group("g"); !errors.Is(err, core.ErrGroupNotFound) {
		t.Fatalf("a deleted group is back: %v", err)
	}
}

func TestQueueOffsetsLocksAndMembers(t *testing.T) {
	var now atomic.Int64 // seconds
	now.Store(1_700_000_000)
	bed := enginetest.New(t, func(c *engine.Config) { c.Now = func() time.Time { return time.Unix(now.Load(), 0) } })
	topic := bed.Topic(t, "event", 2)
	g := begin(t, topic, "g", engine.Latest)
	p := newPublisher(bed.Engine)
	for range 5 {
		p.publish(t, topic.Partition(0), "k", "x")
	}
	if _, ok := g.Committed(0); ok {
		t.Fatal("committed before anything was")
	}
	g.Commit(0, 3)
	g.Commit(0, 2) // S3.27: never backwards
	g.Commit(1, 99)
	if at, ok := g.Committed(0); at != 3 || !ok {
		t.Fatalf("committed %d, %v", at, ok)
	}
	if at, _ := g.Committed(1); at != 0 {
		t.Fatalf("committed %d beyond the end of the log", at)
	}
	if !g.Lock(0, "a", time.Minute) || g.Lock(0, "b", time.Minute) || !g.Lock(0, "a", time.Minute) {
		t.Fatal("two members hold one lock, or its owner cannot renew it")
	}
	now.Add(61)
	if !g.Lock(0, "b", time.Minute) {
		t.Fatal("a lock outlives its time")
	}
	g.Heartbeat("b")
	g.Heartbeat("a")
	bed.Restart(t)
	if g, err := bed.Topic(t, "event", 2).Group("g"); err != nil || !slices.Equal(g.Members(), []string{"a", "b"}) {
		t.Fatalf("members after a restart: %v, %v", g.Members(), err)
	} else if at, ok := g.Committed(0); at != 3 || !ok {
		t.Fatalf("committed after a restart: %d, %v", at, ok)
	}
	now.Add(61)
	if g, _ := bed.Topic(t, "event", 2).Group("g"); len(g.Members()) != 0 {
		t.Fatalf("silent members are still there: %v", g.Members())
	}
}

func TestResetDeliversFromThere(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Latest)
	p := newPublisher(bed.Engine)
	for i := range 10 {
		p.publish(t, topic.Partition(0), "k", fmt.Sprint(i))
	}
	c, in := join(t, g, "c", core.Exclusive, 100)
	for range 10 {
		receive(t, in.got, "delivery")
	}
	c.AckThrough(0, 8)
	if err := g.Reset(0, 3); err != nil {
		t.Fatal(err)
	}
	for i := 3; i < 10; i++ {
		if d := receive(t, in.got, "delivery"); d.Entry.Base != core.Offset(i) {
			t.Fatalf("offset %d after a reset, want %d", d.Entry.Base, i)
		}
	}
	c.Leave()
	if err := g.Reset(0, 5); err != nil || g.Mark(0) != 5 {
		t.Fatalf("mark %d, %v", g.Mark(0), err)
	}
}
