package engine_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/journal"
)

// faulty is a store of journals whose Open and Read can be made to fail.
type faulty struct {
	journal.Store
	open atomic.Pointer[func(name string) error]
	read atomic.Pointer[func() error]
}

func (s *faulty) Open(ctx context.Context, name string, epoch uint64, durable journal.Seq) (journal.Journal, error) {
	if f := s.open.Load(); f != nil {
		if err := (*f)(name); err != nil {
			return nil, err
		}
	}
	j, err := s.Store.Open(ctx, name, epoch, durable)
	return &faultyJournal{j, s}, err
}

type faultyJournal struct {
	journal.Journal
	store *faulty
}

func (j *faultyJournal) Read(ctx context.Context, from journal.Seq, h journal.Hint) iter.Seq2[journal.Record, error] {
	if f := j.store.read.Load(); f != nil {
		if err := (*f)(); err != nil {
			return func(yield func(journal.Record, error) bool) { yield(journal.Record{}, err) }
		}
	}
	return j.Journal.Read(ctx, from, h)
}

// A topic whose journal could not be opened must not share its partition numbers with the next one.
func TestI2_AFailedCreationNeverSharesItsPartitionNumber(t *testing.T) {
	var st *faulty
	bed := enginetest.New(t, func(c *engine.Config) {
		st = &faulty{Store: c.Journals}
		c.Journals, c.Slots = st, 4
	})
	full := func(string) error { return errors.New("no space left on device") }
	st.open.Store(&full)
	name, _ := core.ParseTopicName("a", "public", "default")
	if _, err := bed.Engine.EnsureTopic(name, 4); err == nil {
		t.Fatal("created without a journal")
	}
	st.open.Store(nil)
	other := bed.Topic(t, "b", 4)
	numbers := map[uint32]string{}
	p := newPublisher(bed.Engine)
	for i := range int32(4) {
		numbers[other.Partition(i).Number()] = "b"
		p.publish(t, other.Partition(i), "k", "x")
		p.publish(t, other.Partition(i), "k", "y")
	}
	bed.Restart(t)
	if a, err := bed.Engine.Topic(name); err == nil {
		for i := range int32(4) {
			if numbers[a.Partition(i).Number()] != "" {
				t.Errorf("partition number %d belongs to a and to b", a.Partition(i).Number())
			}
		}
	}
	other = bed.Topic(t, "b", 4)
	for i := range int32(4) {
		if _, next := other.Partition(i).Bounds(); next != 2 {
			t.Errorf("b partition %d ends at %d after a restart, want 2", i, next)
		}
	}
}

// How many slots there are is stored with a topic: a restart with another number finds it where it was.
func TestI2_AnotherNumberOfSlotsKeepsPartitionsWhereTheyAre(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 4)
	p := newPublisher(bed.Engine)
	for i := range int32(4) {
		p.publish(t, topic.Partition(i), "k", "x")
	}
	bed.Stop(t)
	bed.Config.Slots = 4
	bed.Start(t)
	for i := range int32(4) {
		if _, next := bed.Topic(t, "event", 4).Partition(i).Bounds(); next != 1 {
			t.Errorf("partition %d ends at %d, want 1", i, next)
		}
	}
}

// A read that fails once is tried again, without waiting for somebody to publish.
func TestAGroupGoesOnAfterAFailedRead(t *testing.T) {
	var st *faulty
	bed := enginetest.New(t, func(c *engine.Config) {
		st = &faulty{Store: c.Journals}
		c.Journals = st
	})
	topic := bed.Topic(t, "event", 0)
	begin(t, topic, "g", engine.Latest)
	newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "x")
	bed.Restart(t) // nothing is in the tail cache
	g, _ := bed.Topic(t, "event", 0).Group("g")
	failed := make(chan struct{}, 64)
	var n atomic.Int32
	once := func() error {
		if n.Add(1) == 1 {
			failed <- struct{}{}
			return errors.New("input/output error")
		}
		return nil
	}
	st.read.Store(&once)
	c, in := join(t, g, "c", core.Shared, 10)
	defer c.Leave()
	receive(t, failed, "failing read")
	select {
	case <-in.got:
	case <-time.After(3 * time.Second):
		t.Fatal("nothing is delivered after a read has failed once")
	}
}
