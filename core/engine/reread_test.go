package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// What cannot be read for a while is delivered afterwards, in its order and as if nothing had been: nothing behind it comes
// before, and its attempts are those that its consumer has seen. Here entries of three messages wait for permits, or were
// asked for again, so that they are read a second time.
func TestI7_WhatCannotBeReadWaits(t *testing.T) {
	for _, mode := range []core.Mode{core.Exclusive, core.Failover, core.Shared, core.KeyShared} {
		for _, once := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/once=%v", mode, once), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { rereadUnderFaults(t, mode, once) })
			})
		}
	}
}

func rereadUnderFaults(t *testing.T, mode core.Mode, once bool) {
	bed, w := coldBed(t, func(c *engine.Config) { c.ColdBytes = 1 })
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Earliest)
	if err := g.SetRetry(engine.Retry{MaxAttempts: 3}); err != nil {
		t.Fatal(err)
	}
	const entries = 8
	publishBatches(t, bed.Engine, topic.Partition(0), entries-1, 3)
	publishBatches(t, bed.Engine, topic.Partition(0), 1, 3) // the newest block is in memory
	c, in := join(t, g, "c", mode, 4)
	next := func(base core.Offset, attempt int32) engine.Delivery {
		t.Helper()
		d := receive(t, in.got, "delivery")
		if d.Entry.Base != base || d.Attempt != attempt {
			t.Fatalf("offset %d attempt %d, want %d, %d", d.Entry.Base, d.Attempt, base, attempt)
		}
		return d
	}
	next(0, 0)
	next(3, 0)
	first, attempt := core.Offset(6), int32(0) // these wait for permits
	if mode == core.Shared || mode == core.KeyShared {
		c.Nack(0, 3)
		first, attempt = 3, 1
	}
	synctest.Wait()
	fault := errors.New("bad sector")
	if !once {
		w.fault.Store(&fault)
	}
	if reads := 0; once {
		w.gate.Store(ref(func() { // the first read is of what comes next, the others are of what waits
			w.fault.Store(nil)
			if reads++; reads == 2 {
				w.fault.Store(&fault)
			}
		}))
	}
	c.Permit(100)
	time.Sleep(10 * time.Second)
	if n := len(in.got); n > 0 && !once {
		t.Fatalf("%d deliveries from a log that cannot be read", n)
	}
	if s := g.Info().Stall; !once && !strings.Contains(s, "bad sector") {
		t.Errorf("the group stalls, it says, because of %q", s)
	}
	w.gate.Store(nil)
	w.fault.Store(nil)
	for base := first; base < 3*entries; base += 3 {
		next(base, attempt)
		attempt = 0
	}
	if mode == core.Exclusive || mode == core.Failover {
		c.AckThrough(0, 3*entries)
	} else {
		c.Ack(0, core.Range{From: 0, To: 3 * entries})
	}
	c.Leave()
	if n, _ := g.Backlog(); n != 0 || len(in.got) > 0 {
		t.Errorf("%d messages are left, %d deliveries too many", n, len(in.got))
	}
	bed.Stop(t)
}

// publishBatches publishes entries of several messages each, with one key.
func publishBatches(t *testing.T, e *engine.Engine, part *engine.Partition, entries, count int) {
	t.Helper()
	done := make(chan []engine.Receipt, entries)
	p := e.NewProducer("pulsar", func(rs []engine.Receipt) { done <- slices.Clone(rs) })
	for i := range entries {
		b := message("k", fmt.Sprint(i))
		b.Count = int32(count)
		if err := p.Publish(part, b, 1); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n < entries; {
		for _, r := range receive(t, done, "receipt") {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			n++
		}
	}
}

func ref[T any](v T) *T { return &v }

// What is past its TTL is not delivered, though it was read before: here it waits for redelivery.
func TestTTLHoldsForRedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = time.Hour }) // no policy runs
		topic := declare(t, bed, "event", engine.TopicSpec{Policy: engine.Policy{TTL: 10 * time.Second}})
		g := begin(t, topic, "g", engine.Earliest)
		newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "old")
		c, in := join(t, g, "c", core.Shared, 1)
		receive(t, in.got, "delivery")
		time.Sleep(11 * time.Second)
		c.Nack(0, 0)
		c.Permit(1)
		synctest.Wait()
		if len(in.got) > 0 {
			t.Error("delivered again, past its TTL")
		}
		newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "new")
		if d := receive(t, in.got, "delivery of the next, for the same permit"); body(t, bed.Engine, d) != "new" {
			t.Errorf("%s comes", body(t, bed.Engine, d))
		}
		bed.Stop(t)
	})
}
