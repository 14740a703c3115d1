package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

func thinBed(t testing.TB) *enginetest.Bed {
	return enginetest.New(t, func(c *engine.Config) {
		c.MarkBytes, c.ViewBytes, c.TailBytes, c.SaveEvery = 8<<10, 16<<10, 16<<10, time.Second
	})
}

// bytesHeld stops the engine and tells what the journals of auto-created topics hold, and from which block on.
func bytesHeld(t testing.TB, bed *enginetest.Bed) (bytes, first int64) {
	t.Helper()
	bed.Stop(t)
	j, err := bed.Journals.Open(context.Background(), "small-0", 1, 0)
	for epoch := uint64(2); err != nil; epoch++ { // no higher than the engine's own: it comes back
		j, err = bed.Journals.Open(context.Background(), "small-0", epoch, 0)
	}
	defer j.Close()
	from, next, n, err := j.Bounds(context.Background())
	if err != nil || next == 1 {
		t.Fatalf("next block %d, %v", next, err)
	}
	return n, int64(from)
}

// One message that nobody acknowledged holds itself, and not all that came after it.
func TestOneHoleHoldsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, hole = 300, 5
		bed := thinBed(t)
		topic := bed.Topic(t, "event", 1)
		g := begin(t, topic, "g", engine.Earliest)
		c, in := join(t, g, "c", core.Shared, 1000)
		p := newPublisher(bed.Engine)
		for i := range n {
			if p.publish(t, topic.Partition(0), "k", kilo(i)); i%20 == 19 {
				time.Sleep(time.Second)
			}
		}
		for range n {
			if d := receive(t, in.got, "delivery"); d.Entry.Base != hole {
				c.Ack(0, core.Range{From: d.Entry.Base, To: d.Entry.End()})
			}
		}
		time.Sleep(20 * time.Minute)
		bytes, first := bytesHeld(t, bed)
		if bytes > n*1000/3 || first != 1 {
			t.Errorf("%d bytes are held, from block %d", bytes, first)
		}
		bed.Start(t)
		topic = bed.Topic(t, "event", 1)
		if n := backlogOf(t, topic, "g"); n != 1 {
			t.Errorf("backlog %d", n)
		}
		p = newPublisher(bed.Engine)
		p.publish(t, topic.Partition(0), "k", kilo(n))
		c, in = join(t, begin(t, topic, "g", engine.Latest), "c", core.Shared, 1000)
		for _, want := range []int{hole, n} {
			d := receive(t, in.got, "delivery")
			if got := body(t, bed.Engine, d); got != kilo(want) || d.Entry.Base != core.Offset(want) {
				t.Fatalf("offset %d: %.10s, want %d", d.Entry.Base, got, want)
			}
			c.Ack(0, core.Range{From: d.Entry.Base, To: d.Entry.End()})
		}
		time.Sleep(20 * time.Minute)
		if n := backlogOf(t, topic, "g"); n != 0 {
			t.Errorf("backlog %d at last", n)
		}
		early := begin(t, topic, "early", engine.Earliest) // sees what is left, whole and in order
		_, in = join(t, early, "e", core.Exclusive, 1000)
		last := core.Offset(-1)
		for last < n {
			d := receive(t, in.got, "delivery")
			if d.Entry.Base <= last || body(t, bed.Engine, d) != kilo(int(d.Entry.Base)) {
				t.Fatalf("offset %d after %d", d.Entry.Base, last)
			}
			last = d.Entry.Base
		}
		bed.Stop(t)
	})
}

// A message for much later waits in its own bytes, across a restart, and comes in time.
func TestOneFarDelayHoldsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		bed := thinBed(t)
		topic := bed.Topic(t, "event", 1)
		g := begin(t, topic, "g", engine.Earliest)
		c, in := join(t, g, "c", core.Shared, 1000)
		p := newPublisher(bed.Engine)
		due := bed.Engine.In(2 * time.Hour)
		p.parkAt(t, topic.Partition(0), "far", due)
		for i := range n {
			if p.publish(t, topic.Partition(0), "k", kilo(i)); i%20 == 19 {
				time.Sleep(time.Second)
			}
		}
		for range n {
			d := receive(t, in.got, "delivery")
			c.Ack(0, core.Range{From: d.Entry.Base, To: d.Entry.End()})
		}
		time.Sleep(30 * time.Minute)
		if bytes, _ := bytesHeld(t, bed); bytes > n*1000/3 {
			t.Errorf("%d bytes are held", bytes)
		}
		bed.Start(t)
		topic = bed.Topic(t, "event", 1)
		_, in = join(t, begin(t, topic, "g", engine.Latest), "c", core.Shared, 1000)
		time.Sleep(2 * time.Hour)
		if d := receive(t, in.got, "delivery"); !strings.HasPrefix(body(t, bed.Engine, d), "far") {
			t.Fatalf("%s", body(t, bed.Engine, d))
		}
		bed.Stop(t)
	})
}

// A partition of which the newest messages were thinned away is read to its end, and a group that begins there waits for
// what comes.
func TestThinnedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, hole = 50, 3
		bed := thinBed(t)
		topic := bed.Topic(t, "event", 2)
		g := begin(t, topic, "g", engine.Earliest)
		c, in := join(t, g, "c", core.Shared, 1000)
		p := newPublisher(bed.Engine)
		for i := range 8 * n {
			p.publish(t, topic.Partition(int32(min(i/n, 1))), "k", kilo(i))
		}
		for range 8 * n {
			if d := receive(t, in.got, "delivery"); d.Entry.Base != hole || d.Partition.Index() != 0 {
				c.Ack(d.Partition.Index(), core.Range{From: d.Entry.Base, To: d.Entry.End()})
			}
		}
		time.Sleep(20 * time.Minute)
		if bytes, _ := bytesHeld(t, bed); bytes > 8*n*1000/2 {
			t.Errorf("%d bytes are held", bytes)
		}
		bed.Start(t)
		topic = bed.Topic(t, "event", 2)
		part := topic.Partition(0)
		es, err := part.Read(t.Context(), 0, 1000, 1<<20)
		if err != nil || len(es) != 1 || es[0].Base != hole {
			t.Fatalf("%d entries from the first, %v", len(es), err)
		}
		if es, err = part.Read(t.Context(), hole+1, 1000, 1<<20); err != nil || len(es) != 0 {
			t.Fatalf("%d entries behind the hole, %v", len(es), err)
		}
		_, in = join(t, begin(t, topic, "early", engine.Earliest), "e", core.Exclusive, 1000)
		p = newPublisher(bed.Engine)
		next := func() engine.Delivery { // of that partition
			for {
				if d := receive(t, in.got, "delivery"); d.Partition == part {
					return d
				}
			}
		}
		if d := next(); d.Entry.Base != hole {
			t.Fatalf("offset %d", d.Entry.Base)
		}
		p.publish(t, part, "k", kilo(n))
		if d := next(); d.Entry.Base != n || body(t, bed.Engine, d) != kilo(n) {
			t.Fatalf("offset %d", d.Entry.Base)
		}
		bed.Stop(t)
	})
}

// A thinned journal begins with block 1 and is not whole: a view that has lost its checkpoint must not be made of it.
func TestAThinnedJournalIsNotWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		bed := thinBed(t)
		topic := bed.Topic(t, "event", 1)
		g := begin(t, topic, "g", engine.Earliest)
		c, in := join(t, g, "c", core.Shared, 1000)
		p := newPublisher(bed.Engine)
		p.parkAt(t, topic.Partition(0), "far", bed.Engine.In(5*time.Hour))
		for i := range n {
			p.publish(t, topic.Partition(0), "k", kilo(i))
		}
		for range n {
			d := receive(t, in.got, "delivery")
			c.Ack(0, core.Range{From: d.Entry.Base, To: d.Entry.End()})
		}
		time.Sleep(20 * time.Minute)
		if bytes, first := bytesHeld(t, bed); bytes > n*1000/2 || first != 1 {
			t.Fatalf("%d bytes are held, from block %d", bytes, first)
		}
		names, err := bed.Journals.ListCheckpoints("small-0")
		if err != nil || len(names) == 0 {
			t.Fatalf("checkpoints %v, %v", names, err)
		}
		for _, name := range names {
			if err := bed.Journals.RemoveCheckpoint("small-0", name); err != nil {
				t.Fatal(err)
			}
		}
		bed.Start(t)
		if damaged := bed.Engine.Damaged(); len(damaged) != 1 {
			t.Fatalf("out of service: %v", damaged)
		}
		bed.Stop(t)
	})
}
