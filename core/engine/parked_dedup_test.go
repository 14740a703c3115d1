package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core/engine"
)

// A numbered message is checked when it is parked, at its target; its release is no duplicate of itself, and what the
// producer sends again before, after and over a crash is. A half message that is given up counts as sent.
func TestI6_ParkedMessagesAreDeduplicatedWhenParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := dedupBed(t, func(c *engine.Config) { c.Parked.Max = 3 })
		defer bed.Stop(t)
		part := bed.Topic(t, "event", 0).Partition(0)
		p := newPublisher(bed.Engine)
		park := func(seq int64) bool {
			t.Helper()
			if err := p.PublishAt(part, sequenced("p", 0, seq), bed.Engine.In(time.Minute), 9); err != nil {
				t.Fatal(err)
			}
			r := receive(t, p.receipts, "receipt")
			if r.Err != nil || r.Partition != part || r.Duplicate == (r.Parked != 0) {
				t.Fatalf("%+v", r)
			}
			return !r.Duplicate
		}
		if !park(5) || park(5) || park(4) || !park(6) || p.send(t, part, sequenced("p", 0, 6)) || !p.send(t, part, sequenced("q", 0, 6)) {
			t.Fatal("before the release")
		}
		for range 10 { // a duplicate takes no place
			park(6)
		}
		checkViews(t, bed)
		bed.Kill() // what was parked is in no checkpoint yet, or it is: both ways lead here
		bed.Start(t)
		part = bed.Topic(t, "event", 0).Partition(0)
		p = newPublisher(bed.Engine)
		if park(6) || !park(7) {
			t.Fatal("after a restart")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if es := entries(t, part); len(es) != 4 {
			t.Fatalf("%d are there", len(es))
		}
		checkViews(t, bed)
		if park(7) || p.send(t, part, sequenced("p", 0, 5)) || !p.send(t, part, sequenced("p", 0, 8)) {
			t.Fatal("after the release")
		}
	})
}
