package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// The seams of leases: what happens between two steps of a queue-based member.

// I6: consumers take a partition over between a pull and its answer; the pull is told, and its answer stays empty.
func TestI6_APartitionMovesDuringAPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := bed.Topic(t, "event", 1)
		g := begin(t, topic, "g", engine.Latest)
		g.Heartbeat("client-a")
		newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "x")
		if !g.Pull(0, "client-a") {
			t.Fatal("alone, and may not pull")
		}
		g.Heartbeat("client-0") // the only partition is the first client's in order of name
		_, in := join(t, g, "consumer", core.Shared, 10)
		if g.Pulled(0, "client-a", 1) {
			t.Error("the answer is given although the partition is somebody else's")
		}
		g.Forget("client-0")
		g.Forget("client-a")
		if _, d := arrives(t, in); d.Entry.Base != 0 {
			t.Errorf("the consumer got %d", d.Entry.Base)
		}
		bed.Stop(t)
	})
}

// A consumer joins while a queue-based member is being noted, wherever that one has got to (it looks at the clock at some
// places, and stops there): the group knows of both.
func TestLeasesKnowMembersThatComeTogether(t *testing.T) {
	var calls atomic.Int32 // until the clock stops; below 0: it does not
	stopped, goOn := make(chan struct{}), make(chan struct{})
	bed := enginetest.New(t, func(c *engine.Config) {
		c.SaveEvery = time.Hour // nobody else looks at the clock
		c.Now = func() time.Time {
			if calls.Add(-1) == 0 {
				stopped <- struct{}{}
				<-goOn
			}
			return time.Now()
		}
	})
	calls.Store(-1 << 20)
	topic := bed.Topic(t, "event", 1)
	for at := int32(1); ; at++ {
		g := begin(t, topic, fmt.Sprint("g", at), engine.Latest)
		noted, joined := make(chan struct{}), make(chan struct{})
		calls.Store(at)
		go func() { defer close(noted); g.Heartbeat("client-a") }()
		select {
		case <-noted: // it looks at the clock no more
			calls.Store(-1 << 20)
			if at < 3 {
				t.Fatalf("%d moments were tried", at-1)
			}
			return
		case <-stopped:
		}
		var c *engine.Consumer
		go func() { defer close(joined); c, _ = join(t, g, "consumer", core.Shared, 10) }()
		select {
		case <-joined:
		case <-time.After(50 * time.Millisecond): // it waits for the other one
		}
		goOn <- struct{}{}
		<-noted
		<-joined
		if got := g.PoolSize(); got != 1 {
			t.Errorf("moment %d: the pool has %d members", at, got)
		}
		c.Leave() // its runner looks at the clock too
		calls.Store(-1 << 20)
	}
}

// A group whose queue-based member pulls does not stall for want of a consumer.
func TestGroupInfoKnowsThatAMemberPulls(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 1)
	g := begin(t, topic, "g", engine.Latest)
	newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "x")
	if i := g.Info(); i.Stall != "no consumer" {
		t.Errorf("nobody is there, and the group stalls because %q", i.Stall)
	}
	g.Heartbeat("client-a")
	g.Pull(0, "client-a")
	if i := g.Info(); i.Stall != "" || i.Backlog != 1 {
		t.Errorf("a member pulls, and the group stalls because %q; backlog %d", i.Stall, i.Backlog)
	}
}
