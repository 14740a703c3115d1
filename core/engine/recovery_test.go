package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta"
)

// crash stops the engine such that nothing more reaches the metadata store, as a SIGKILL after the last tick would.
func crash(t *testing.T, bed *enginetest.Bed) {
	t.Helper()
	bed.Meta.OnApply(func([]meta.Write) error { return errors.New("killed") })
	bed.Kill()
	bed.Meta.OnApply(nil)
	bed.Start(t)
}

func TestI2_OffsetsGoOnAfterACrash(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = time.Hour })
	for round := range 3 {
		topic := bed.Topic(t, "event", 2)
		p := newPublisher(bed.Engine)
		for i := range 10 {
			want := core.Offset(round*5 + i/2)
			if got := p.publish(t, topic.Partition(int32(i%2)), "k", fmt.Sprint(i)); got != want {
				t.Fatalf("round %d: offset %d, want %d", round, got, want)
			}
		}
		crash(t, bed)
	}
}

func TestI7_AcknowledgedMessagesSurviveACrash(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = time.Hour })
	topic := bed.Topic(t, "event", 0)
	begin(t, topic, "g", engine.Latest)
	p := newPublisher(bed.Engine)
	for i := range 100 {
		p.publish(t, topic.Partition(0), "k", fmt.Sprint(i))
	}
	crash(t, bed)
	g, err := bed.Topic(t, "event", 0).Group("g")
	if err != nil {
		t.Fatal(err)
	}
	_, in := join(t, g, "c", core.Exclusive, 1000)
	for i := range 100 {
		if got := body(t, bed.Engine, receive(t, in.got, "delivery")); got != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, got)
		}
	}
}

func TestI6_AcksOlderThanATickSurviveACrash(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = 5 * time.Millisecond })
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Latest)
	p := newPublisher(bed.Engine)
	for i := range 20 {
		p.publish(t, topic.Partition(0), "k", fmt.Sprint(i))
	}
	c, in := join(t, g, "c", core.Shared, 20)
	for range 20 {
		if d := receive(t, in.got, "delivery"); d.Entry.Base != 15 {
			c.Ack(0, core.Range{From: d.Entry.Base, To: d.Entry.End()})
		}
	}
	awaitSaved(t, bed, "cursors", func() bool {
		var rec meta.CursorRecord
		_ = bed.Meta.Load(meta.Cursors, func(_ string, v []byte) (err error) { rec, err = meta.DecodeCursor(v); return err })
		return rec.Cursor.Next == 15 && rec.Cursor.Covers(19)
	})
	crash(t, bed)
	g, _ = bed.Topic(t, "event", 0).Group("g")
	_, in = join(t, g, "c", core.Shared, 100)
	if d := receive(t, in.got, "delivery"); d.Entry.Base != 15 {
		t.Fatalf("offset %d came back", d.Entry.Base)
	}
	p = newPublisher(bed.Engine)
	p.publish(t, bed.Topic(t, "event", 0).Partition(0), "k", "new")
	if d := receive(t, in.got, "delivery"); d.Entry.Base != 20 {
		t.Fatalf("offset %d came back", d.Entry.Base)
	}
}

// awaitSaved polls the metadata store, which has no events of its own.
func awaitSaved(t *testing.T, bed *enginetest.Bed, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(wait)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s not saved within %v", what, wait)
		}
	}
}

// fill publishes n messages of 64 KiB, so that marks are taken and the tail cache overflows.
func fill(t *testing.T, bed *enginetest.Bed, topic *engine.Topic, n int) {
	t.Helper()
	p := newPublisher(bed.Engine)
	big := string(make([]byte, 64<<10))
	for i := range n {
		if err := p.Publish(topic.Partition(int32(i)%topic.Logs()), message("k", fmt.Sprint(i)+big), 0); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		if r := receive(t, p.receipts, "receipt"); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

func TestColdReadsFindEveryOffset(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.TailBytes = 1 << 20; c.SaveEvery = 5 * time.Millisecond })
	topic := bed.Topic(t, "event", 3)
	fill(t, bed, topic, 300) // 19 MiB: several marks
	check := func(topic *engine.Topic) {
		t.Helper()
		for i := range int32(3) {
			for at := core.Offset(0); at < 100; at += 7 {
				es, err := topic.Partition(i).Read(t.Context(), at, 3, 1<<20)
				if err != nil || len(es) != min(3, int(100-at)) || es[0].Base != at {
					t.Fatalf("partition %d offset %d: %d entries, %v", i, at, len(es), err)
				}
			}
		}
	}
	check(topic)
	crash(t, bed)
	check(bed.Topic(t, "event", 3))
}

func TestJournalIsTrimmedToWhatGroupsNeed(t *testing.T) {
	now := time.Now()
	bed := enginetest.New(t, func(c *engine.Config) {
		c.TailBytes, c.SaveEvery = 1<<20, 5*time.Millisecond
		c.Now = func() time.Time { return now.Add(time.Hour) } // everything is older than the floor
	})
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Latest)
	fill(t, bed, topic, 300)
	g.Commit(0, 150)
	part := topic.Partition(0)
	awaitSaved(t, bed, "trim", func() bool { first, _ := part.Bounds(); return first > 0 })
	first, next := part.Bounds()
	if first > 150 || next != 300 {
		t.Fatalf("bounds %d..%d after a commit of 150", first, next)
	}
	if _, err := part.Read(t.Context(), 0, 1, 1); !errors.Is(err, core.ErrOffsetOutOfRange) {
		t.Fatalf("read before the first offset: %v", err)
	}
	crash(t, bed)
	part = bed.Topic(t, "event", 0).Partition(0)
	if again, _ := part.Bounds(); again != first {
		t.Fatalf("first offset %d, after a crash %d", first, again)
	}
	if es, err := part.Read(t.Context(), 150, 1, 1); err != nil || es[0].Base != 150 {
		t.Fatalf("what the group needs: %v", err)
	}
}

func TestOffsetAt(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 0)
	p := newPublisher(bed.Engine)
	part := topic.Partition(0)
	for range 3 {
		p.publish(t, part, "k", "x")
	}
	es, err := part.Read(t.Context(), 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for ms, want := range map[int64][2]core.Offset{0: {0, 0}, es[0].Commit: {0, 1}, es[0].Commit + 1e9: {3, 3}} {
		if at, err := part.OffsetAt(context.Background(), ms); err != nil || at < want[0] || at > want[1] {
			t.Errorf("OffsetAt(%d) = %d, %v; want %v", ms, at, err, want)
		}
	}
}
