package engine_test

import (
	"context"
	"errors"
	"testing"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/journal"
)

// brokenStore finds one journal damaged.
type brokenStore struct {
	journal.Store
	name string
}

func (s brokenStore) Open(ctx context.Context, name string, epoch uint64, durable journal.Seq) (journal.Journal, error) {
	if name == s.name {
		return nil, &journal.Damage{Where: name, Position: 1, Seq: 1, Why: "wrong checksum"}
	}
	return s.Store.Open(ctx, name, epoch, durable)
}

func TestADamagedJournalStopsItsTopicAndNoOther(t *testing.T) {
	bed := enginetest.New(t, nil)
	name := core.TopicName{Tenant: "acme", Namespace: "out", Name: "event"}
	declared, err := bed.Engine.DeclareTopic(name, engine.TopicSpec{Partitions: 2, Groups: []string{"g"}})
	if err != nil {
		t.Fatal(err)
	}
	number := declared.Partition(0).Number()
	bed.Topic(t, "other", 0)
	bed.Stop(t)
	bed.Config.Journals = brokenStore{bed.Journals, "topic-0-0"}
	bed.Start(t)

	p := newPublisher(bed.Engine)
	p.publish(t, bed.Topic(t, "other", 0).Partition(0), "k", "goes on")
	if _, err := bed.Engine.EnsureTopic(name, 2); !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("a damaged topic: %v", err)
	}
	if _, err := bed.Engine.DeclareTopic(name, engine.TopicSpec{Partitions: 2}); !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("a damaged topic was declared anew: %v", err)
	}
	if err := bed.Engine.Health(); !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("health: %v", err)
	}

	bed.Stop(t)
	bed.Config.Journals = bed.Journals
	bed.Start(t)
	repaired, err := bed.Engine.Topic(name)
	if err != nil || repaired.Partition(0).Number() != number {
		t.Fatalf("after the repair: %v", err)
	}
	if _, err := repaired.Group("g"); err != nil {
		t.Fatal(err)
	}
}
