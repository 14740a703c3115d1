package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core/engine/enginetest"
)

// The clock was set back between two runs (in a bubble it is the year 2000): commit times never decrease.
func TestCommitTimesNeverDecreaseOverARestart(t *testing.T) {
	bed := enginetest.New(t, nil)
	newPublisher(bed.Engine).publish(t, bed.Topic(t, "event", 0).Partition(0), "k", "now")
	bed.Stop(t)
	synctest.Test(t, func(t *testing.T) {
		bed.Start(t)
		newPublisher(bed.Engine).publish(t, bed.Topic(t, "event", 0).Partition(0), "k", "earlier")
		bed.Stop(t)
	})
	bed.Start(t)
	es, err := bed.Topic(t, "event", 0).Partition(0).Read(t.Context(), 0, 10, 1<<20)
	if err != nil || len(es) != 2 {
		t.Fatalf("%d entries, %v", len(es), err)
	}
	if es[1].Commit < es[0].Commit {
		t.Fatalf("committed at %v, then at %v", time.UnixMilli(es[0].Commit), time.UnixMilli(es[1].Commit))
	}
}
