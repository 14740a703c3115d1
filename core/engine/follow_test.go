package engine_test

import (
	"context"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// Somebody subscribes right after the follower has asked whether anybody listens; then a message is published and
// acknowledged. It must be delivered.
func TestFollowMissesNothingAfterASubscribe(t *testing.T) {
	bed := enginetest.New(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	p := newPublisher(bed.Engine)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan core.Offset, 16)
	asked := 0
	var since uint64
	active := func() bool {
		if asked++; asked > 1 {
			return true
		}
		// The answer is no. In this moment comes the SUBSCRIBE, and after its SUBACK the publish.
		since = bed.Engine.Stamp()
		p.publish(t, part, "k", "after the subscribe")
		return false
	}
	ended := make(chan error, 1)
	go func() {
		ended <- bed.Engine.Follow(ctx, active, func(_ *engine.Partition, stamp uint64, es []core.Entry) {
			for _, e := range es {
				if stamp > since {
					got <- e.Base
				}
			}
		})
	}()
	defer func() { cancel(); <-ended }()
	q := newPublisher(bed.Engine)
	bell := time.NewTicker(10 * time.Millisecond)
	defer bell.Stop()
	deadline := time.After(wait)
	wanted := core.Offset(-1)
	for {
		select {
		case o := <-got:
			if wanted < 0 {
				wanted = o
			}
			es, err := part.Read(t.Context(), o, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			ms, _ := bed.Engine.Messages(&es[0], nil)
			if string(ms[0].Body) != "after the subscribe" {
				t.Fatalf("the first message after the subscribe is %q: one is missing", ms[0].Body)
			}
			return
		case <-bell.C:
			q.publish(t, part, "k", "bell")
		case <-deadline:
			t.Fatal("nothing followed")
		}
	}
}
