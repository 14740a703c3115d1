package engine_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// sequenced is a message of a producer that counts.
func sequenced(producer string, handle int32, sequence int64) *core.Entry {
	e := message("k", fmt.Sprint(producer, " ", handle, " ", sequence))
	e.Producer, e.Handle, e.SeqLow, e.SeqHigh = []byte(producer), handle, sequence, sequence
	e.Flags |= core.FlagSequenced
	return e
}

// send publishes an entry, waits until it is answered, and tells whether it was stored.
func (p *publisher) send(t testing.TB, part *engine.Partition, e *core.Entry) (stored bool) {
	t.Helper()
	if err := p.Publish(part, e, 9); err != nil {
		t.Fatal(err)
	}
	r := receive(t, p.receipts, "receipt")
	if r.Err != nil || r.Token != 9 || r.Duplicate != (r.Base == -1) {
		t.Fatalf("receipt %+v", r)
	}
	return !r.Duplicate
}

func dedupBed(t testing.TB, change func(*engine.Config)) *enginetest.Bed {
	return enginetest.New(t, func(c *engine.Config) {
		c.Defaults.Deduplicate = true
		if change != nil {
			change(c)
		}
	})
}

func checkViews(t testing.TB, bed *enginetest.Bed) {
	t.Helper()
	if err := bed.Engine.CheckViews(); err != nil {
		t.Fatal(err)
	}
}

// I1: a duplicate whose original is on its way to the disk is acknowledged with it and not before, in the order of sending.
func TestI1_ADuplicateIsAcknowledgedWithItsOriginal(t *testing.T) {
	bed := dedupBed(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	syncing, release := make(chan bool, 16), make(chan bool)
	bed.Journals.OnAppend(func(string, []byte) error { syncing <- true; <-release; return nil })
	p, again := newPublisher(bed.Engine), newPublisher(bed.Engine)
	token := uint64(0)
	publish := func(p *publisher, seq int64) {
		if err := p.Publish(part, sequenced("p", 0, seq), token); err != nil {
			t.Fatal(err)
		}
		token++
	}
	publish(p, 0)
	receive(t, syncing, "append")
	publish(p, 1)
	publish(p, 2)
	for seq := range int64(4) { // one is on its way, two wait, the last is new
		publish(again, seq)
	}
	if len(p.receipts)+len(again.receipts) > 0 {
		t.Fatal("acknowledged before anything is durable")
	}
	close(release)
	for i := range 7 {
		from := p
		if i > 2 {
			from = again
		}
		r := receive(t, from.receipts, "receipt")
		if r.Token != uint64(i) || r.Err != nil || r.Duplicate != (i >= 3 && i < 6) {
			t.Fatalf("receipt %d: %+v", i, r)
		}
	}
	if _, end := part.Bounds(); end != 4 {
		t.Fatalf("%d messages are stored, want 4", end)
	}
	checkViews(t, bed)
}

// I1: when the original is lost, so is its duplicate.
func TestI1_ADuplicateOfWhatFailedFails(t *testing.T) {
	bed := dedupBed(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	syncing, release := make(chan bool, 1), make(chan bool)
	bed.Journals.OnAppend(func(string, []byte) error { syncing <- true; <-release; return errors.New("disk on fire") })
	p := newPublisher(bed.Engine)
	letGo := sync.OnceFunc(func() { close(release) })
	defer letGo()
	for i := range 2 {
		if err := p.Publish(part, sequenced("p", 0, 1), 0); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			receive(t, syncing, "append")
		}
	}
	letGo()
	for range 2 {
		if r := receive(t, p.receipts, "receipt"); r.Err == nil {
			t.Fatalf("acknowledged: %+v", r)
		}
	}
	bed.Journals.OnAppend(nil)
	bed.Kill()
	bed.Start(t)
	if !newPublisher(bed.Engine).send(t, bed.Topic(t, "event", 0).Partition(0), sequenced("p", 0, 1)) {
		t.Fatal("what was lost counts as stored")
	}
}

// Each producer and handle counts for itself, at the partition it writes to.
func TestSequencesAreCountedPerProducerHandleAndPartition(t *testing.T) {
	bed := dedupBed(t, nil)
	topic := bed.Topic(t, "event", 2)
	p := newPublisher(bed.Engine)
	for _, step := range []struct {
		producer string
		handle   int32
		part     int32
		seq      int64
		stored   bool
	}{
		{"a", 0, 0, 5, true}, {"a", 0, 0, 5, false}, {"a", 0, 0, 4, false}, {"a", 1, 0, 4, true}, {"a", 0, 1, 4, true},
		{"b", 0, 0, 5, true}, {"a", 0, 0, 6, true}, {"a", 1, 0, 5, true}, {"a", 0, 1, 4, false}, {"", 0, 0, 1, true}, {"", 0, 0, 1, true},
	} {
		if got := p.send(t, topic.Partition(step.part), sequenced(step.producer, step.handle, step.seq)); got != step.stored {
			t.Fatalf("%+v: stored %v", step, got)
		}
	}
	for name, want := range map[string]int64{"a": 6, "b": 5, "c": -1} {
		if got := topic.LastSequence(name, 0); got != want {
			t.Errorf("last sequence of %s: %d, want %d", name, got, want)
		}
	}
	plain := message("k", "a device")
	plain.Producer = []byte("a") // of a protocol without sequences
	for range 2 {
		if !p.send(t, topic.Partition(0), plain) {
			t.Fatal("a message without a sequence is no duplicate")
		}
	}
	checkViews(t, bed)
}

// A batch counts from its lowest to its highest sequence; interleaved ones are stored rather than lost.
func TestBatchesAndChunksCount(t *testing.T) {
	bed := dedupBed(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	p := newPublisher(bed.Engine)
	batch := func(low, high int64, flags core.Flags) *core.Entry {
		e := sequenced("p", 0, low)
		e.SeqHigh, e.Flags = high, e.Flags|flags
		return e
	}
	for i, step := range []struct {
		e      *core.Entry
		stored bool
	}{
		{batch(0, 9, 0), true}, {batch(0, 9, 0), false}, {batch(8, 12, 0), true}, {batch(8, 12, 0), false},
		{batch(13, 13, core.FlagMoreChunks), true}, {batch(13, 13, core.FlagMoreChunks), true}, {batch(13, 13, 0), true},
		{batch(13, 13, core.FlagMoreChunks), false}, {batch(13, 13, 0), false}, {batch(14, 14, 0), true},
	} {
		if got := p.send(t, part, step.e); got != step.stored {
			t.Fatalf("step %d: stored %v", i, got)
		}
	}
	checkViews(t, bed)
	crash(t, bed)
	checkViews(t, bed)
	if newPublisher(bed.Engine).send(t, bed.Topic(t, "event", 0).Partition(0), batch(8, 12, 0)) {
		t.Fatal("forgotten in a crash")
	}
}

// A producer that has stored nothing for six hours is forgotten, by the journal's own clock: also when it is replayed.
func TestIdleProducersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := dedupBed(t, nil)
		p := newPublisher(bed.Engine)
		event := func() *engine.Topic { return bed.Topic(t, "event", 0) }
		send := func(name string, seq int64, stored bool) {
			t.Helper()
			if got := p.send(t, event().Partition(0), sequenced(name, 0, seq)); got != stored {
				t.Fatalf("sequence %d: stored %v", seq, got)
			}
		}
		send("p", 50, true)
		time.Sleep(5 * time.Hour)
		send("p", 50, false)
		send("other", 1, true)
		time.Sleep(2 * time.Hour)
		if last := event().LastSequence("p", 0); last != -1 {
			t.Fatalf("last sequence %d after seven hours", last)
		}
		send("p", 3, true) // it has begun anew
		send("p", 3, false)
		send("other", 1, false)
		checkViews(t, bed)
		crash(t, bed)
		p = newPublisher(bed.Engine)
		checkViews(t, bed)
		send("p", 3, false)
		send("p", 4, true)
		bed.Stop(t)
	})
}

// I8: a partition knows so many producers and no more; at the limit the one that was silent the longest is forgotten.
func TestI8_ProducersAreBounded(t *testing.T) {
	bed := dedupBed(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	p := newPublisher(bed.Engine)
	p.send(t, part, sequenced("first", 0, 1))
	p.send(t, part, sequenced("second", 0, 1))
	const more = 10_000
	for i := range more - 1 {
		if err := p.Publish(part, sequenced(fmt.Sprint("p", i), 0, 1), 0); err != nil {
			t.Fatal(err)
		}
	}
	for range more - 1 {
		receive(t, p.receipts, "receipt")
	}
	checkViews(t, bed)
	if p.send(t, part, sequenced("second", 0, 1)) {
		t.Fatal("the second is forgotten within the limit")
	}
	if !p.send(t, part, sequenced("first", 0, 1)) {
		t.Fatal("the one that was silent the longest is known beyond the limit")
	}
	if p.send(t, part, sequenced(fmt.Sprint("p", more-2), 0, 1)) {
		t.Fatal("the newest is forgotten")
	}
}

// What was published while a topic did not de-duplicate says nothing: a producer may have begun again meanwhile.
func TestDeduplicationIsSwitchedOnAndOff(t *testing.T) {
	bed := enginetest.New(t, nil)
	p := newPublisher(bed.Engine)
	for i, step := range []struct {
		on, crash, stored bool
		seq, last         int64
	}{
		{on: false, seq: 100, stored: true, last: -1}, {on: false, seq: 100, stored: true, last: -1},
		{on: true, seq: 7, stored: true, last: 7}, {on: true, seq: 7, last: 7}, {on: true, crash: true, seq: 7, last: 7},
		{on: false, seq: 7, stored: true, last: -1}, {on: true, seq: 3, stored: true, last: 3},
		{on: true, crash: true, seq: 3, last: 3}, {on: true, crash: true, seq: 4, stored: true, last: 4},
	} {
		if step.crash {
			crash(t, bed)
			p = newPublisher(bed.Engine)
		}
		topic := declare(t, bed, "event", engine.TopicSpec{Partitions: 2, Deduplicate: step.on})
		if topic.Deduplicates() != step.on {
			t.Fatalf("step %d: de-duplicates: %v", i, !step.on)
		}
		if got := p.send(t, topic.Partition(1), sequenced("p", 1, step.seq)); got != step.stored {
			t.Fatalf("step %d %+v: stored %v", i, step, got)
		}
		if got := topic.LastSequence("p", 1); got != step.last {
			t.Fatalf("step %d: last sequence %d, want %d", i, got, step.last)
		}
		checkViews(t, bed)
	}
}

// Topics that clients create follow the defaults, also those that are there.
func TestDeduplicationByDefault(t *testing.T) {
	bed := enginetest.New(t, nil)
	bed.Topic(t, "event", 2)
	declare(t, bed, "declared", engine.TopicSpec{})
	bed.Stop(t)
	bed.Config.Defaults.Deduplicate = true
	bed.Start(t)
	if !bed.Topic(t, "event", 2).Deduplicates() || !bed.Topic(t, "new", 0).Deduplicates() || bed.Topic(t, "declared", 0).Deduplicates() {
		t.Fatal("not as the defaults say")
	}
	bed.Stop(t)
	bed.Config.Defaults.Deduplicate = false
	bed.Start(t)
	if bed.Topic(t, "event", 2).Deduplicates() {
		t.Fatal("still on")
	}
}

// What is published counts once, what is sent again as a duplicate.
func TestPublishesAndDuplicatesAreCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	bed := dedupBed(t, func(c *engine.Config) { c.Registerer = reg })
	p, part := newPublisher(bed.Engine), bed.Topic(t, "event", 0).Partition(0)
	for _, seq := range []int64{1, 2, 2, 3} {
		p.send(t, part, sequenced("p", 0, seq))
	}
	if n, again := gathered(t, reg, "isthmus_publishes_total"), gathered(t, reg, "isthmus_duplicates_total"); n != 3 || again != 1 {
		t.Errorf("%v publishes, %v duplicates", n, again)
	}
}
