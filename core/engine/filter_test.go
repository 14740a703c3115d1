package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// I7: what a member's filter refuses is acknowledged for the group, unless another member wants everything, whichever of them
// came first.
func TestI7_AFilterTakesNothingFromOtherMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		defer bed.Stop(t)
		topic := bed.Topic(t, "event", 0)
		g, p := begin(t, topic, "g", engine.Latest), newPublisher(bed.Engine)
		member := func(filter func(*core.Entry) bool) *engine.Consumer {
			c, err := g.Join(t.Context(), engine.Member{Name: "c", Mode: core.Shared, Filter: filter, Sink: newInbox()})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		picky := func() *engine.Consumer {
			return member(func(e *core.Entry) bool { return string(e.Key) == "wanted" })
		}
		check := func(when string, want int64) {
			t.Helper()
			p.publish(t, topic.Partition(0), "noise", "x")
			time.Sleep(time.Second) // what lies beyond a mark is counted with a delay
			if n, _ := g.Backlog(); n != want {
				t.Fatalf("%s: a backlog of %d, want %d", when, n, want)
			}
		}
		a := picky()
		a.Permit(10)
		check("alone", 0)
		all := member(nil)
		check("somebody wants all", 1)
		b := picky()
		check("and was not the last to come", 2)
		b.Leave()
		check("one of those that filter leaves", 3)
		all.Leave()
		check("nobody wants all any more", 3)
	})
}
