package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// A producer that never stops does not keep the engine from stopping.
func TestShutdownEndsUnderAPipelinedProducer(t *testing.T) {
	bed := enginetest.New(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	p := bed.Engine.NewProducer("mqtt", func([]engine.Receipt) {})
	var on, after atomic.Int64
	on.Store(1)
	ending := make(chan struct{})
	bed.Journals.OnAppend(func(string, []byte) error { // while this block is on its way, the next message comes
		if on.Load() == 1 {
			_ = p.Publish(part, message("k", "x"), 0)
		}
		select {
		case <-ending:
			if after.Add(1) > 2000 {
				on.Store(0)
			}
		default:
		}
		return nil
	})
	if err := bed.Engine.NewProducer("mqtt", func([]engine.Receipt) {}).Publish(part, message("k", "x"), 0); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { close(ending) })
	<-ending
	bed.Stop(t)
	if n := after.Load(); n > 1000 {
		t.Fatalf("%d blocks were committed after the stop, and it would have gone on", n)
	}
}

// Whoever is blocked in Publish gets an error when the journal fails.
func TestPublishBlockedAtTheBoundEndsWithTheJournal(t *testing.T) {
	bed := enginetest.New(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	entered, release := make(chan struct{}, 8), make(chan error)
	bed.Journals.OnAppend(func(string, []byte) error { entered <- struct{}{}; return <-release })
	big := string(make([]byte, 700<<10))
	p := newPublisher(bed.Engine)
	if err := p.Publish(part, message("k", big), 0); err != nil {
		t.Fatal(err)
	}
	receive(t, entered, "append")
	if err := p.Publish(part, message("k", big), 1); err != nil {
		t.Fatal(err)
	}
	third := make(chan error, 1)
	go func() { third <- p.Publish(part, message("k", big), 2) }()
	select {
	case err := <-third:
		t.Fatalf("not blocked at the bound: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	release <- core.ErrFenced
	if err := receive(t, third, "return of the blocked Publish"); err == nil {
		t.Fatal("accepted by a failed journal")
	}
	for range 2 {
		if r := receive(t, p.receipts, "receipt"); r.Err == nil {
			t.Fatal("acknowledged by a failed journal")
		}
	}
	if len(p.receipts) > 0 {
		t.Fatal("a receipt for what was refused")
	}
}

// Joins, leaves, resets and deletions while the engine ends: everybody returns.
func TestShutdownAmidMembershipChanges(t *testing.T) {
	for range 20 {
		bed := enginetest.New(t, func(c *engine.Config) { c.Slots = 2 })
		topic := bed.Topic(t, "event", 4)
		p := newPublisher(bed.Engine)
		for i := range 20 {
			p.publish(t, topic.Partition(int32(i%4)), "k", "x")
		}
		ended := make(chan struct{})
		const n = 4
		for i := range n {
			go func() {
				defer func() { ended <- struct{}{} }()
				for range 200 {
					g, err := topic.BeginGroup("g", engine.Start{At: engine.Earliest})
					if err != nil {
						return
					}
					c, err := g.Join(t.Context(), engine.Member{Protocol: "pulsar", Name: "c", Mode: core.Shared, Sink: deaf{}})
					if err != nil {
						continue
					}
					c.Permit(5)
					_ = g.Reset(int32(i), 1)
					g.Commit(int32(i), 2)
					if i == 0 {
						_ = topic.DeleteGroup("g")
					}
					c.Leave()
				}
			}()
		}
		bed.Kill()
		for range n {
			receive(t, ended, "end of a client")
		}
	}
}

// deaf is a Sink that drops what it gets.
type deaf struct{}

func (deaf) Deliver([]engine.Delivery) {}
func (deaf) Active(int32, bool)        {}
func (deaf) Detached(error)            {}
