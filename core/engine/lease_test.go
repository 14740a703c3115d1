package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// puller is a queue-based member that pulls every partition, whatever its share: what it may not take has to look empty.
type puller struct {
	g    *engine.Group
	name string
	got  map[string]int
	at   map[int32]core.Offset // its own idea of its place
	asks bool                  // it asks for its place each time: among pullers alone it is for them to share out partitions
}

// turn pulls each partition once and commits what it got; it returns how many messages that were.
func (p *puller) turn(t *testing.T) (n int) {
	t.Helper()
	for i := range p.g.Topic().Logs() {
		if !p.g.Pull(i, p.name) {
			continue
		}
		if p.asks {
			p.at[i] = p.g.Mark(i)
		}
		from, until := p.g.From(i, p.name, p.at[i])
		es, err := p.g.Topic().Partition(i).Read(context.Background(), from, 5, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		next := from
		for _, e := range es {
			if e.Base >= until {
				break
			}
			p.got[fmt.Sprint(i, "/", e.Base)]++
			next = e.End()
			n++
		}
		p.at[i] = next
		p.g.Pulled(i, p.name, next)
		if err := p.g.CommitAs(i, p.name, next); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// S2.28 as far as the engine decides it: a group has consumers and a queue-based member; every message is at one of them,
// once, while members come and go in order.
func TestS2_28_PullersAndConsumersShareAGroup(t *testing.T) {
	for _, mode := range []core.Mode{core.Shared, core.KeyShared, core.Failover} {
		t.Run(mode.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { sharedGroup(t, mode) }) })
	}
}

func sharedGroup(t *testing.T, mode core.Mode) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 4)
	g := begin(t, topic, "g", engine.Latest)
	c, in := join(t, g, "consumer", mode, 1000)
	p := newPublisher(bed.Engine)
	pull := &puller{g: g, name: "client-a", got: map[string]int{}, at: map[int32]core.Offset{}}
	consumed := map[string]int{}
	take := func() {
		for {
			synctest.Wait()
			select {
			case d := <-in.got:
				consumed[fmt.Sprint(d.Partition.Index(), "/", d.Entry.Base)]++
				c.Ack(d.Partition.Index(), core.Range{From: d.Entry.Base, To: d.Entry.End()})
				if mode == core.Failover {
					c.AckThrough(d.Partition.Index(), d.Entry.End())
				}
			default:
				return
			}
		}
	}
	publish := func(n int) {
		for i := range 4 * n {
			p.publish(t, topic.Partition(int32(i%4)), fmt.Sprint("k", i), "x")
		}
	}
	publish(5) // all the consumer's
	take()
	if len(consumed) != 20 {
		t.Fatalf("the consumer alone got %d", len(consumed))
	}
	g.Heartbeat(pull.name)
	publish(5)
	for range 20 {
		take()
		pull.turn(t)
		time.Sleep(time.Second) // of virtual time
	}
	if len(pull.got) != 10 || len(consumed) != 30 {
		t.Errorf("the puller has got %d, the consumer %d of 40; want 10 and 30", len(pull.got), len(consumed))
	}
	if got := g.Lease(0); got != pull.name {
		t.Errorf("partition 0 is leased to %q", got)
	}
	g.Forget(pull.name)
	publish(5)
	for range 20 {
		take()
		time.Sleep(time.Second) // of virtual time
	}
	g.Heartbeat("client-b")
	c.Leave()
	publish(5)
	pull.name = "client-b"
	for range 20 {
		pull.turn(t)
	}
	for o, n := range consumed {
		if n+pull.got[o] != 1 {
			t.Errorf("message %s came %d times to the consumer, %d times to pullers", o, n, pull.got[o])
		}
	}
	if total := len(consumed) + len(pull.got); total != 80 {
		t.Errorf("%d messages of 80 came", total)
	}
	for i := range topic.Logs() {
		if _, end := topic.Partition(i).Bounds(); g.Mark(i) != end {
			t.Errorf("partition %d stands at %d of %d", i, g.Mark(i), end)
		}
	}
	bed.Stop(t)
}

// A queue-based member that does not pull loses its partitions to the consumers; one that holds on to what it was given, after
// a while too; and nobody may acknowledge what it was never given.
func TestLeasesAreEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := bed.Topic(t, "event", 2)
		g := begin(t, topic, "g", engine.Latest)
		_, in := join(t, g, "consumer", core.Shared, 1000)
		g.Heartbeat("client-a")
		synctest.Wait()
		p := newPublisher(bed.Engine)
		for i := range int32(2) {
			p.publish(t, topic.Partition(i), "k", "x")
		}
		time.Sleep(2 * time.Second)
		if err := g.CommitAs(0, "client-a", 1); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("a commit of what was never given: %v", err)
		}
		if g.Lock(1, "client-a", time.Minute) {
			t.Error("a lock of what the consumers have")
		}
		if !g.Pull(0, "client-a") || g.Pull(1, "client-a") {
			t.Error("the member may not pull its own partition, or may pull another")
		}
		if _, d := arrives(t, in); d.Partition.Index() != 1 {
			t.Errorf("the consumer got partition %d", d.Partition.Index())
		}
		after, d := arrives(t, in) // the member has not pulled since
		if d.Partition.Index() != 0 || after < 55*time.Second || after > 65*time.Second {
			t.Errorf("partition %d came to the consumer after %v", d.Partition.Index(), after)
		}
		bed.Stop(t)
	})
}
