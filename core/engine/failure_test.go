package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta/memory"
)

func TestI6_AFailedJournalHoldsUpNoOtherTopicsCursors(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = time.Hour })
	sick, err := bed.Engine.DeclareTopic(core.TopicName{Tenant: "acme", Namespace: "out", Name: "sick"}, engine.TopicSpec{})
	if err != nil {
		t.Fatal(err)
	}
	well := bed.Topic(t, "well", 0)
	g := begin(t, well, "g", engine.Latest)
	p := newPublisher(bed.Engine)
	for range 5 {
		p.publish(t, well.Partition(0), "k", "x")
	}
	bed.Journals.OnAppend(func(name string, _ []byte) error {
		if name == "topic-0-0" {
			return errors.New("disk full")
		}
		return nil
	})
	if err := p.Publish(sick.Partition(0), message("k", "x"), 1); err != nil {
		t.Fatal(err)
	}
	if r := receive(t, p.receipts, "receipt"); !errors.Is(r.Err, core.ErrUnavailable) {
		t.Fatalf("receipt %+v", r)
	}
	if err := sick.Partition(0).Health(); !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("health %v", err)
	}
	c, in := join(t, g, "c", core.Shared, 5)
	for range 5 {
		d := receive(t, in.got, "delivery")
		c.Ack(0, core.Range{From: d.Entry.Base, To: d.Entry.End()})
	}
	c.Leave()
	bed.Journals.OnAppend(nil)
	bed.Restart(t)
	if g, err := bed.Topic(t, "well", 0).Group("g"); err != nil || g.Mark(0) != 5 {
		t.Fatalf("mark %d, %v", g.Mark(0), err)
	}
}

func TestI7_AJournalThatMetadataDoesNotKnowIsNotHidden(t *testing.T) {
	bed := enginetest.New(t, nil)
	newPublisher(bed.Engine).publish(t, bed.Topic(t, "event", 0).Partition(0), "k", "x")
	bed.Stop(t)
	bed.Config.Meta = memory.New() // as if the file was lost
	n, _ := core.ParseTopicName("event", "public", "default")
	for start := range 4 { // fenced at first, until the epochs have caught up
		e, err := engine.Open(context.Background(), bed.Config)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := e.EnsureTopic(n, 0); err == nil {
				t.Fatalf("start %d: an old journal was given to a new topic", start)
			}
		}
	}
}
