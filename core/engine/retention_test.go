package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// kilo is a message of about 1 KiB.
func kilo(i int) string { return fmt.Sprintf("%04d", i) + strings.Repeat("x", 1000) }

func dropped(bed *enginetest.Bed, reason string) float64 {
	var m dto.Metric
	if err := bed.Engine.Metrics().GroupDropped.WithLabelValues(reason).Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue()
}

func backlogOf(t testing.TB, topic *engine.Topic, group string) int64 {
	t.Helper()
	g, err := topic.Group(group)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := g.Backlog()
	return n
}

// S1.11: messages older than the TTL are no longer delivered and leave the backlog count, with a consumer that does not
// acknowledge and without any; also after a restart.
func TestS1_11_ExpiredMessagesLeaveTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := declare(t, bed, "event", engine.TopicSpec{Partitions: 2, Policy: engine.Policy{TTL: time.Minute}, Groups: []string{"absent"}})
		live := begin(t, topic, "live", engine.Latest)
		_, in := join(t, live, "c", core.Shared, 3)
		p := newPublisher(bed.Engine)
		for i := range 10 {
			p.publish(t, topic.Partition(int32(i%2)), "k", "old")
		}
		for range 3 {
			receive(t, in.got, "delivery")
		}
		time.Sleep(40 * time.Second)
		p.publish(t, topic.Partition(0), "k", "young")
		time.Sleep(30 * time.Second)
		for _, g := range []string{"absent", "live"} {
			if n := backlogOf(t, topic, g); n != 1 {
				t.Errorf("%s has a backlog of %d, want the young one alone", g, n)
			}
		}
		late, in2 := join(t, live, "d", core.Shared, 100)
		if d := receive(t, in2.got, "delivery"); body(t, bed.Engine, d) != "young" {
			t.Errorf("an expired message was delivered: %s", body(t, bed.Engine, d))
		}
		late.Leave()
		if got := dropped(bed, "ttl"); got != 20 {
			t.Errorf("%v messages counted, want 20", got)
		}
		bed.Restart(t)
		topic = bed.Topic(t, "event", 2)
		if n := backlogOf(t, topic, "absent"); n != 1 {
			t.Errorf("after a restart the backlog is %d", n)
		}
		time.Sleep(time.Minute)
		if n := backlogOf(t, topic, "absent"); n != 0 {
			t.Errorf("a minute later the backlog is %d", n)
		}
		bed.Stop(t)
	})
}

// What is read in the moment between expiry and sweep is not delivered either.
func TestExpiredMessagesAreNotDeliveredBeforeTheSweepEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = time.Hour })
		topic := declare(t, bed, "event", engine.TopicSpec{Policy: engine.Policy{TTL: time.Second}})
		g := begin(t, topic, "g", engine.Latest)
		p := newPublisher(bed.Engine)
		p.publish(t, topic.Partition(0), "k", "old")
		time.Sleep(2 * time.Second)
		p.publish(t, topic.Partition(0), "k", "young")
		_, in := join(t, g, "c", core.Exclusive, 10)
		if d := receive(t, in.got, "delivery"); body(t, bed.Engine, d) != "young" {
			t.Errorf("got %q", body(t, bed.Engine, d))
		}
		bed.Stop(t)
	})
}

func TestAFullBacklogIsRefusedUntilThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := declare(t, bed, "event", engine.TopicSpec{Policy: engine.Policy{Backlog: engine.Backlog{Size: 10 << 10}}})
		p := newPublisher(bed.Engine)
		part := topic.Partition(0)
		for i := range 30 { // nobody waits for them
			p.publish(t, part, "k", kilo(i))
		}
		begin(t, topic, "g", engine.Latest)
		n := 0
		for ; n < 30; n++ {
			if err := p.Publish(part, message("k", kilo(n)), 0); err != nil {
				if !errors.Is(err, core.ErrBacklogFull) {
					t.Fatal(err)
				}
				break
			}
			receive(t, p.receipts, "receipt")
		}
		if n < 8 || n > 11 {
			t.Fatalf("%d messages of 1 KiB in a backlog of 10 KiB", n)
		}
		if wait, err := topic.Full(); wait || !errors.Is(err, core.ErrBacklogFull) {
			t.Fatalf("Full: %v, %v", wait, err)
		}
		bed.Restart(t)
		topic = bed.Topic(t, "event", 0)
		part, p = topic.Partition(0), newPublisher(bed.Engine)
		if err := p.Publish(part, message("k", "x"), 0); !errors.Is(err, core.ErrBacklogFull) {
			t.Fatalf("after a restart: %v", err)
		}
		g, err := topic.Group("g")
		if err != nil {
			t.Fatal(err)
		}
		g.Commit(0, g.Mark(0)+5)
		time.Sleep(20 * time.Millisecond)
		p.publish(t, part, "k", "there is room again")
		bed.Stop(t)
	})
}

func TestAnOldBacklogIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := declare(t, bed, "event", engine.TopicSpec{Groups: []string{"g"}, Policy: engine.Policy{Backlog: engine.Backlog{Age: time.Minute}}})
		p := newPublisher(bed.Engine)
		p.publish(t, topic.Partition(0), "k", "x")
		time.Sleep(59 * time.Second)
		p.publish(t, topic.Partition(0), "k", "y")
		time.Sleep(3 * time.Second)
		if err := p.Publish(topic.Partition(0), message("k", "z"), 0); !errors.Is(err, core.ErrBacklogFull) {
			t.Fatalf("the first message is a minute old: %v", err)
		}
		g, _ := topic.Group("g")
		g.Commit(0, 1)
		time.Sleep(2 * time.Second)
		p.publish(t, topic.Partition(0), "k", "z")
		bed.Stop(t)
	})
}

// A producer that may wait does: until there is room, no longer than it may, and not at shutdown.
func TestABlockedProducerWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := declare(t, bed, "event", engine.TopicSpec{
			Groups: []string{"g"}, Policy: engine.Policy{Backlog: engine.Backlog{Size: 1 << 10, WhenFull: engine.Block}}})
		g, _ := topic.Group("g")
		part := topic.Partition(0)
		p := newPublisher(bed.Engine)
		p.publish(t, part, "k", kilo(0))
		if err := p.Publish(part, message("k", kilo(1)), 0); !errors.Is(err, core.ErrBacklogFull) {
			t.Fatalf("a producer that may not wait: %v", err)
		}
		p.Wait(5 * time.Second)
		before := time.Now()
		if err := p.Publish(part, message("k", kilo(1)), 0); !errors.Is(err, core.ErrBacklogFull) || time.Since(before) < 5*time.Second {
			t.Fatalf("after %v: %v", time.Since(before), err)
		}
		done := make(chan error, 1)
		publish := func() { done <- p.Publish(part, message("k", kilo(2)), 0) }
		go publish()
		time.Sleep(time.Second)
		g.Commit(0, 1)
		if err := receive(t, done, "end of the wait"); err != nil {
			t.Fatal(err)
		}
		if r := receive(t, p.receipts, "receipt"); r.Err != nil || r.Base != 1 {
			t.Fatalf("%+v", r)
		}
		p.Wait(time.Hour)
		time.Sleep(time.Second) // what was under way is measured
		go publish()
		synctest.Wait()
		bed.Stop(t)
		if err := receive(t, done, "end of the wait"); !errors.Is(err, core.ErrClosed) {
			t.Fatalf("at shutdown: %v", err)
		}
	})
}

// Nothing acknowledged is dropped unless drop_oldest says so: then the oldest are, of the slow group alone, counted.
func TestDropOldestMovesSlowGroupsForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := declare(t, bed, "event", engine.TopicSpec{Groups: []string{"slow"},
			Policy: engine.Policy{Backlog: engine.Backlog{Size: 50 << 10, WhenFull: engine.DropOldest}}})
		quick := begin(t, topic, "quick", engine.Latest)
		p := newPublisher(bed.Engine)
		for i := range 100 {
			p.publish(t, topic.Partition(0), "k", kilo(i))
		}
		quick.Commit(0, 90)
		time.Sleep(time.Second)
		if n := backlogOf(t, topic, "slow"); n < 40 || n > 45 {
			t.Errorf("the slow group keeps %d messages of 1 KiB, of 50 KiB", n)
		}
		if n := backlogOf(t, topic, "quick"); n != 10 {
			t.Errorf("the quick group keeps %d", n)
		}
		if got, want := dropped(bed, "backlog_size"), float64(100-backlogOf(t, topic, "slow")); got != want {
			t.Errorf("%v counted, want %v", got, want)
		}
		slow, _ := topic.Group("slow")
		_, in := join(t, slow, "c", core.Failover, 1)
		if d := receive(t, in.got, "delivery"); d.Entry.Base != slow.Mark(0) {
			t.Errorf("goes on at %d, its mark is %d", d.Entry.Base, slow.Mark(0))
		}
		bed.Stop(t)
	})
}

// A topic declared anew with other words has them after a restart.
func TestAPolicyIsRedeclared(t *testing.T) {
	bed := enginetest.New(t, nil)
	spec := engine.TopicSpec{Groups: []string{"g"}, Policy: engine.Policy{Backlog: engine.Backlog{Size: 1 << 10}}}
	topic := declare(t, bed, "event", spec)
	p := newPublisher(bed.Engine)
	p.publish(t, topic.Partition(0), "k", kilo(0))
	if err := p.Publish(topic.Partition(0), message("k", kilo(0)), 0); !errors.Is(err, core.ErrBacklogFull) {
		t.Fatal(err)
	}
	bed.Restart(t)
	spec.Policy.Backlog.Size = 1 << 20
	topic = declare(t, bed, "event", spec)
	newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", kilo(0))
	spec.Policy.Backlog.Size = -1
	if _, err := bed.Engine.DeclareTopic(topic.Name(), spec); !errors.Is(err, core.ErrInvalid) {
		t.Fatalf("a negative size: %v", err)
	}
}
