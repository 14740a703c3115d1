package engine_test

import (
	"math"
	"testing"

	"isthmus/core/engine/enginetest"
)

// I9: a Pulsar producer says how many messages its batch holds; in an encrypted one nobody can check it.
func TestI9_CountsOfEntriesNeverBreakABlock(t *testing.T) {
	bed := enginetest.New(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	p := newPublisher(bed.Engine)
	p.publish(t, part, "k", "before")
	entered, release := make(chan struct{}, 64), make(chan struct{})
	bed.Journals.OnAppend(func(string, []byte) error { entered <- struct{}{}; <-release; return nil })
	if err := p.Publish(part, message("k", "first"), 0); err != nil {
		t.Fatal(err)
	}
	receive(t, entered, "append")
	accepted := 1
	for range 3 { // they share a block, since one is on its way
		e := message("k", "x")
		e.Count = math.MaxInt32 / 2
		if p.Publish(part, e, 0) == nil {
			accepted++
		}
	}
	close(release)
	for range accepted {
		if r := receive(t, p.receipts, "receipt"); r.Err != nil {
			t.Errorf("receipt: %v", r.Err)
		}
	}
	if err := bed.Engine.Health(); err != nil {
		t.Errorf("the journal is dead: %v", err)
	}
}
