package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// arrives tells after how long of quiet the next delivery comes, and of what.
func arrives(t *testing.T, in *inbox) (after time.Duration, d engine.Delivery) {
	t.Helper()
	from := time.Now()
	select {
	case d = <-in.got:
	case <-time.After(time.Hour):
		t.Fatal("nothing within an hour")
	}
	return time.Since(from), d
}

func about(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+5*time.Millisecond {
		t.Fatalf("%s after %v, want %v", what, got, want)
	}
}

// A newcomer takes over from a connected consumer: what that one has not acknowledged within a second goes to the newcomer.
func TestFailoverWaitsForLateAcks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := bed.Topic(t, "event", 1)
		g := begin(t, topic, "g", engine.Latest)
		old, a := join(t, g, "b", core.Failover, 10)
		p := newPublisher(bed.Engine)
		for range 3 {
			p.publish(t, topic.Partition(0), "k", "x")
			arrives(t, a)
		}
		_, b := join(t, g, "a", core.Failover, 10)
		old.AckThrough(0, 2)
		after, d := arrives(t, b)
		about(t, "the tail", after, time.Second)
		if d.Entry.Base != 2 {
			t.Fatalf("offset %d comes first, want 2", d.Entry.Base)
		}
		bed.Stop(t)
	})
}

// An ack timeout, a hold and a delayed negative ack wake a runner that nothing else wakes.
func TestTimersOfASharedGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := bed.Topic(t, "event", 0)
		g := begin(t, topic, "g", engine.Latest)
		in := newInbox()
		c, err := g.Join(t.Context(), engine.Member{Name: "c", Mode: core.Shared, AckTimeout: 30 * time.Second, Sink: in})
		if err != nil {
			t.Fatal(err)
		}
		c.Permit(10)
		newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "x")
		arrives(t, in)
		for i, step := range []struct {
			what string
			do   func()
			want time.Duration
		}{
			{"ack timeout", func() {}, 30 * time.Second},
			{"hold", func() { c.Hold(0, 0, 3*time.Minute) }, 3 * time.Minute},
			{"shorter hold", func() { c.Hold(0, 0, 70*time.Millisecond) }, 70 * time.Millisecond},
			{"negative ack with a delay", func() { c.NackAfter(0, 0, 7*time.Second) }, 7 * time.Second},
			{"negative ack", func() { c.Nack(0, 0) }, 0},
		} {
			step.do()
			after, d := arrives(t, in)
			about(t, step.what, after, step.want)
			if d.Attempt != int32(i+1) {
				t.Fatalf("%s: attempt %d, want %d", step.what, d.Attempt, i+1)
			}
		}
		bed.Stop(t)
	})
}
