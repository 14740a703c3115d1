package engine_test

import (
	"context"
	"testing"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// follow runs a follower of the bed until the test ends and hands over what comes after the stamp.
func follow(t *testing.T, bed *enginetest.Bed, active func() bool, since *uint64) <-chan string {
	ctx, cancel := context.WithCancel(context.Background())
	got, ended := make(chan string, 16), make(chan struct{})
	f := bed.Engine.Follower()
	go func() {
		defer close(ended)
		f.Run(ctx, active, func(_ *engine.Partition, stamp uint64, es []core.Entry) {
			for i := range es {
				ms, err := bed.Engine.Messages(&es[i], nil)
				if err == nil && stamp > *since {
					got <- string(ms[0].Body)
				}
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return got
}

func TestFollowGivesWhatIsCommittedAfterTheStamp(t *testing.T) {
	bed := enginetest.New(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	p := newPublisher(bed.Engine)
	p.publish(t, part, "k", "before")
	since := bed.Engine.Stamp()
	got := follow(t, bed, func() bool { return true }, &since)
	p.publish(t, part, "k", "after")
	if b := receive(t, got, "message"); b != "after" {
		t.Fatalf("got %q", b)
	}
}

// Somebody subscribes right after the follower has asked whether anybody listens; then a message is published and
// acknowledged. It must be delivered.
func TestFollowMissesNothingAfterASubscribe(t *testing.T) {
	bed := enginetest.New(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	p, q := newPublisher(bed.Engine), newPublisher(bed.Engine)
	asked := false
	var since uint64
	active := func() bool {
		if asked {
			return true
		}
		asked = true
		// The answer is no. In this moment comes the SUBSCRIBE, and after its SUBACK the publish.
		since = bed.Engine.Stamp()
		q.publish(t, part, "k", "after the subscribe")
		return false
	}
	got := follow(t, bed, active, &since)
	p.publish(t, part, "k", "nobody listens")
	if b := receive(t, got, "message"); b != "after the subscribe" {
		t.Fatalf("the first message after the subscribe is %q: one is missing", b)
	}
}
