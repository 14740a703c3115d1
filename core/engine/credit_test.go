package engine_test

import (
	"syscall"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Permits that neither of a consumer's runners can use must not wander between them for ever.
func TestUnusablePermitsRest(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.Slots = 2; c.SaveEvery = time.Hour })
	topic := bed.Topic(t, "event", 2)
	g := begin(t, topic, "g", engine.Latest)
	p := newPublisher(bed.Engine)
	for i := range 20 {
		p.publish(t, topic.Partition(int32(i%2)), "k", "x")
	}
	// Both partitions are its own, and it takes nothing.
	if _, err := g.Join(t.Context(), engine.Member{Name: "active", Mode: core.Failover, Sink: deaf{}}); err != nil {
		t.Fatal(err)
	}
	c, err := g.Join(t.Context(), engine.Member{Name: "standby", Mode: core.Failover, Priority: 1, Sink: deaf{}})
	if err != nil {
		t.Fatal(err)
	}
	c.Permit(10)
	before := cpu()
	<-time.After(300 * time.Millisecond) // nothing is waited for: nothing is to happen
	if used := cpu() - before; used > 40*time.Millisecond {
		t.Fatalf("%v of CPU in 300 ms of silence", used)
	}
}

// One permit at a time, shared by two runners of which one has nothing to deliver but is woken all the time.
func TestAPermitReachesTheRunnerThatHasMessages(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.Slots = 2; c.SaveEvery = time.Hour; c.Window = 10 * time.Microsecond })
	topic := bed.Topic(t, "event", 2)
	g := begin(t, topic, "g", engine.Latest)
	p := newPublisher(bed.Engine)
	const n = 3000
	for range n {
		if err := p.Publish(topic.Partition(1), message("k", "wanted"), 0); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		receive(t, p.receipts, "receipt")
	}
	in := newInbox()
	c, err := g.Join(t.Context(), engine.Member{
		Name: "c", Mode: core.Shared, Sink: hangsUp{in},
		Filter: func(e *core.Entry) bool { return string(e.Key) == "k" },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		c.Permit(1)
		for range 3 {
			if err := p.Publish(topic.Partition(0), message("noise", "x"), 0); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-in.got:
		case <-time.After(2 * time.Second):
			t.Fatalf("permit %d of %d is lost between two runners", i, n)
		}
	}
}

// hangsUp is an inbox that does not mind how often it is detached.
type hangsUp struct{ *inbox }

func (hangsUp) Detached(error) {}
