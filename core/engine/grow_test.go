package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta"
)

func declare(t testing.TB, bed *enginetest.Bed, name string, spec engine.TopicSpec) *engine.Topic {
	t.Helper()
	topic, err := bed.Engine.DeclareTopic(core.TopicName{Tenant: "public", Namespace: "default", Name: name}, spec)
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// Live consumers of the whole topic, and groups that exist, get everything that goes to new partitions.
func TestI7_AGrownTopicLosesNothing(t *testing.T) {
	for _, slots := range []int{1, 4} {
		t.Run(fmt.Sprintf("slots=%d", slots), func(t *testing.T) {
			bed := enginetest.New(t, func(c *engine.Config) { c.Slots = slots })
			topic := declare(t, bed, "event", engine.TopicSpec{Partitions: 2, Groups: []string{"sleeping"}})
			g := begin(t, topic, "live", engine.Latest)
			_, in := join(t, g, "c", core.Shared, 100)
			p := newPublisher(bed.Engine)
			p.publish(t, topic.Partition(1), "k", "before")
			receive(t, in.got, "message")
			if err := bed.Engine.GrowTopic(topic.Name(), 8, false); !errors.Is(err, core.ErrInvalid) {
				t.Fatalf("keys moved without anybody's consent: %v", err)
			}
			if err := bed.Engine.GrowTopic(topic.Name(), 8, true); err != nil {
				t.Fatal(err)
			}
			for i := range int32(8) {
				p.publish(t, topic.Partition(i), "k", fmt.Sprint("to ", i))
			}
			seen := map[int32]bool{}
			for range 8 {
				seen[receive(t, in.got, "message").Partition.Index()] = true
			}
			if len(seen) != 8 {
				t.Fatalf("messages of %d partitions", len(seen))
			}
			crash(t, bed)
			topic = bed.Topic(t, "event", 8)
			if n := topic.Partitions(); n != 8 {
				t.Fatalf("%d partitions after a crash", n)
			}
			g, err := topic.Group("sleeping")
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := g.Backlog(); n != 9 {
				t.Fatalf("a group that was there before has a backlog of %d, want 9", n)
			}
		})
	}
}

func TestGrowthIsRefusedWhereItMakesNoSense(t *testing.T) {
	bed := enginetest.New(t, nil)
	whole, parted := bed.Topic(t, "whole", 0), bed.Topic(t, "parted", 4)
	for name, err := range map[string]error{
		"unpartitioned": bed.Engine.GrowTopic(whole.Name(), 4, true),
		"fewer":         bed.Engine.GrowTopic(parted.Name(), 3, true),
		"the same":      bed.Engine.GrowTopic(parted.Name(), 4, true),
		"too many":      bed.Engine.GrowTopic(parted.Name(), 1<<20, true),
	} {
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := bed.Engine.GrowTopic(parted.Name(), 5, false); err != nil {
		t.Errorf("an empty topic has no key to move: %v", err)
	}
}

// A crash, or metadata that cannot be written, leaves the old topic or the new one.
func TestAFailedGrowthLeavesTheOldTopic(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 2)
	failing := errors.New("disk full")
	bed.Meta.OnApply(func(ws []meta.Write) error {
		if sets(ws, meta.Topics) {
			return failing
		}
		return nil
	})
	if err := bed.Engine.GrowTopic(topic.Name(), 3, true); !errors.Is(err, failing) {
		t.Fatalf("got %v", err)
	}
	if n := topic.Partitions(); n != 2 {
		t.Fatalf("%d partitions while running", n)
	}
	bed.Meta.OnApply(nil)
	bed.Restart(t)
	if n := bed.Topic(t, "event", 2).Partitions(); n != 2 {
		t.Fatalf("%d partitions after a restart", n)
	}
	if err := bed.Engine.GrowTopic(topic.Name(), 3, true); err != nil {
		t.Fatal(err)
	}
}
