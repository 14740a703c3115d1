package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

func nonPersistent(t testing.TB, bed *enginetest.Bed, name string) *engine.Topic {
	t.Helper()
	topic, err := bed.Engine.EnsureTopic(core.TopicName{NonPersistent: true, Tenant: "public", Namespace: "default", Name: name}, 4)
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// Spec: Pulsar NonPersistentTopic: at most once, to consumers that have permits, and nothing is kept for anybody
func TestNonPersistentTopicsKeepNothing(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := nonPersistent(t, bed, "event")
	if n := topic.Partitions(); n != 0 {
		t.Fatalf("%d partitions", n)
	}
	part := topic.Partition(0)
	p := newPublisher(bed.Engine)
	p.publish(t, part, "k", "nobody is there")
	c, in := join(t, begin(t, topic, "g", engine.Earliest), "c", core.Shared, 2)
	_, other := join(t, begin(t, topic, "other", engine.Earliest), "c", core.Failover, 100)
	for i := range 5 {
		p.publish(t, part, "k", fmt.Sprint(i))
	}
	for i := range 5 {
		if d := receive(t, other.got, "delivery"); body(t, bed.Engine, d) != fmt.Sprint(i) {
			t.Errorf("with permits for all: got %s as number %d", body(t, bed.Engine, d), i)
		}
	}
	var got []string
	for range 2 {
		got = append(got, body(t, bed.Engine, receive(t, in.got, "delivery")))
	}
	if !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("with two permits: %q", got)
	}
	awaitSaved(t, bed, "drop", func() bool { return dropped(bed, "no_credit") == 3 })
	if n := dropped(bed, "no_group"); n != 1 {
		t.Errorf("%v messages without a group", n)
	}
	c.NackAll() // what was handed out never comes again
	c.Permit(10)
	p.publish(t, part, "k", "later")
	if d := receive(t, in.got, "delivery"); body(t, bed.Engine, d) != "later" {
		t.Errorf("got %s", body(t, bed.Engine, d))
	}
	if err := bed.Engine.EmptyTopic(topic.Name()); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("emptied: %v", err)
	}
	number := part.Number()
	bed.Restart(t)
	if _, err := bed.Engine.Topic(topic.Name()); !errors.Is(err, core.ErrTopicNotFound) {
		t.Errorf("there after a restart: %v", err)
	}
	if again := nonPersistent(t, bed, "event").Partition(0).Number(); again == number {
		t.Errorf("partition number %d is used again", number)
	}
}

func TestANonPersistentTopicIsDeleted(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := nonPersistent(t, bed, "event")
	_, in := join(t, begin(t, topic, "g", engine.Latest), "c", core.Shared, 2)
	if err := bed.Engine.DeleteTopic(topic.Name(), true); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, in.detached, "end"); !errors.Is(err, core.ErrTopicNotFound) {
		t.Errorf("the consumer is told %v", err)
	}
	if err := newPublisher(bed.Engine).Publish(topic.Partition(0), message("k", "x"), 0); !errors.Is(err, core.ErrTopicNotFound) {
		t.Errorf("a publish: %v", err)
	}
	nonPersistent(t, bed, "event")
}

// A consumer that falls behind the memory for recent messages goes on with what is left; nothing hangs.
func TestI8_NonPersistentMessagesAreBounded(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.TailBytes = 32 << 10 })
	topic := nonPersistent(t, bed, "event")
	p := newPublisher(bed.Engine)
	for i := range 200 {
		p.publish(t, topic.Partition(0), "k", kilo(i))
	}
	first, end := topic.Partition(0).Bounds()
	if end != 200 || first < 150 {
		t.Fatalf("%d to %d are kept in 32 KiB", first, end)
	}
	if _, err := topic.Partition(0).Read(t.Context(), 0, 1, 1); !errors.Is(err, core.ErrOffsetOutOfRange) {
		t.Errorf("what is gone: %v", err)
	}
	_, in := join(t, begin(t, topic, "g", engine.Latest), "c", core.Shared, 1000)
	for i := range 200 {
		p.publish(t, topic.Partition(0), "k", kilo(i))
	}
	got := 0
	for last := int64(199); last < 399; got++ {
		d := receive(t, in.got, "delivery")
		if d.Entry.Base <= last {
			t.Fatalf("offset %d after %d", d.Entry.Base, last)
		}
		last = d.Entry.Base
	}
	awaitSaved(t, bed, "count", func() bool { return dropped(bed, "slow") == float64(200-got) })
}
