package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/journal"
	"isthmus/core/meta"
	"isthmus/core/parked"
)

// parkAt parks one message and waits until it is durable.
func (p *publisher) parkAt(t testing.TB, part *engine.Partition, body string, due int64) engine.ParkedID {
	t.Helper()
	if err := p.PublishAt(part, message("k", body), due, 9); err != nil {
		t.Fatal(err)
	}
	r := receive(t, p.receipts, "receipt")
	if r.Err != nil || r.Token != 9 || r.Partition != part || r.Parked == 0 {
		t.Fatalf("receipt %+v", r)
	}
	return r.Parked
}

func (p *publisher) half(t testing.TB, part *engine.Partition, body string, h engine.HalfMessage) engine.ParkedID {
	t.Helper()
	if err := p.PublishHalf(part, message("k", body), h, 9); err != nil {
		t.Fatal(err)
	}
	r := receive(t, p.receipts, "receipt")
	if r.Err != nil || r.Partition != part || r.Parked == 0 {
		t.Fatalf("receipt %+v", r)
	}
	return r.Parked
}

func entries(t testing.TB, part *engine.Partition) []core.Entry {
	t.Helper()
	first, _ := part.Bounds()
	es, err := part.Read(context.Background(), first, 1<<20, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

func bodiesOf(t testing.TB, es []core.Entry) (out []string) {
	t.Helper()
	for i := range es {
		ms, err := core.DecodeNeutral(&es[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(ms[0].Body))
	}
	return out
}

// inBubble runs f in virtual time with a bed that ends in it.
func inBubble(t *testing.T, change func(*engine.Config), f func(t *testing.T, bed *enginetest.Bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, change)
		defer bed.Stop(t)
		f(t, bed)
	})
}

func TestS3_30_ADelayedMessageIsThereInTimeAndNeverEarly(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, 10 * time.Second, time.Hour} {
		inBubble(t, func(c *engine.Config) { c.SaveEvery = 24 * time.Hour }, func(t *testing.T, bed *enginetest.Bed) {
			part := bed.Topic(t, "event", 0).Partition(0)
			c, in := join(t, begin(t, part.Topic(), "g", engine.Latest), "c", core.Shared, 5)
			defer c.Leave()
			due := bed.Engine.In(d)
			newPublisher(bed.Engine).parkAt(t, part, "x", due)
			if n := part.Parked(); n != 1 {
				t.Errorf("%d are parked", n)
			}
			time.Sleep(time.Until(time.UnixMilli(due)) - 1)
			synctest.Wait()
			if _, next := part.Bounds(); next != 0 || len(in.got) > 0 {
				t.Fatal("it is visible before its time")
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if len(in.got) != 1 || part.Parked() != 0 {
				t.Fatalf("%v after its time it is not there", d)
			}
			if e := (<-in.got).Entry; e.Commit < due {
				t.Errorf("committed %d ms early", due-e.Commit)
			}
		})
	}
}

// What is due already is no parked message; what is too far away, or one too many, is refused.
func TestI8_LimitsOfParking(t *testing.T) {
	inBubble(t, func(c *engine.Config) { c.Parked.Max, c.Parked.MaxHalf = 3, 1 }, func(t *testing.T, bed *enginetest.Bed) {
		part := bed.Topic(t, "event", 0).Partition(0)
		p := newPublisher(bed.Engine)
		if err := p.PublishAt(part, message("k", "now"), bed.Engine.In(0), 1); err != nil {
			t.Fatal(err)
		}
		if r := receive(t, p.receipts, "receipt"); r.Parked != 0 || r.Base != 0 || r.Err != nil {
			t.Fatalf("%+v", r)
		}
		year := 366 * 24 * time.Hour
		refused := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused("delay", p.PublishAt(part, message("k", "x"), bed.Engine.In(year+time.Second), 1), core.ErrInvalid)
		refused("half, due", p.PublishHalf(part, message("k", "x"), engine.HalfMessage{Due: bed.Engine.In(year + time.Second)}, 1), core.ErrInvalid)
		refused("half, wait", p.PublishHalf(part, message("k", "x"), engine.HalfMessage{Wait: year + time.Second}, 1), core.ErrInvalid)
		p.half(t, part, "h", engine.HalfMessage{Check: bed.Engine.In(time.Hour)})
		refused("second half", p.PublishHalf(part, message("k", "x"), engine.HalfMessage{}, 1), core.ErrOverloaded)
		id := p.parkAt(t, part, "a", bed.Engine.In(year))
		if err := p.PublishAt(part, message("k", "b"), bed.Engine.In(time.Second), 1); err != nil {
			t.Fatal(err)
		}
		refused("before the last is durable", p.PublishAt(part, message("k", "x"), bed.Engine.In(time.Second), 1), core.ErrOverloaded)
		receive(t, p.receipts, "receipt")
		if err := p.Cancel(id, 1); err != nil {
			t.Fatal(err)
		}
		receive(t, p.receipts, "receipt")
		p.parkAt(t, part, "c", bed.Engine.In(time.Second))
	})
}

// Release is one block: whoever has the message has the tombstone, so no crash brings it twice or not at all.
func TestI7_ReleaseIsOneBlock(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, bed *enginetest.Bed) {
		part := bed.Topic(t, "event", 0).Partition(0)
		p := newPublisher(bed.Engine)
		var due int64
		for i := range 50 {
			due = bed.Engine.In(time.Duration(1+i%7) * time.Second)
			if err := p.PublishAt(part, message("k", fmt.Sprint(i)), due, 1); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 {
			receive(t, p.receipts, "receipt")
		}
		half := p.half(t, part, "half", engine.HalfMessage{Check: due, Wait: time.Second})
		seen := 0
		bed.Journals.OnAppend(func(_ string, raw []byte) error {
			b, err := journal.ParseBlock(raw)
			if err != nil {
				return err
			}
			messages, done := 0, 0
			for x := range b.Extents() {
				for rest, next := x.Data, x.First; len(rest) > 0; {
					var e core.Entry
					if rest, err = core.ParseEntry(rest, next, &e); err != nil {
						return err
					}
					next = e.End()
					var r parked.Record
					switch {
					case e.Format != core.FormatParked:
						messages++
					case r.Parse(e.Data) == nil && r.Kind == parked.Done:
						done++
					case r.Kind == parked.Delay: // the half message, committed, waits a second
						messages++
					}
				}
			}
			if messages != done {
				return fmt.Errorf("%d messages with %d tombstones", messages, done)
			}
			seen += messages
			return nil
		})
		if err := p.Commit(half, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if err := part.Health(); err != nil || seen != 52 || len(entries(t, part)) != 51 {
			t.Fatalf("%v, %d seen, %d released", err, seen, len(entries(t, part)))
		}
	})
}

// While the node was down many became due: they are released at start, in order of their time.
func TestI7_WhatBecameDueWhileTheNodeWasDown(t *testing.T) {
	inBubble(t, func(c *engine.Config) { c.TailBytes = 1 }, func(t *testing.T, bed *enginetest.Bed) {
		part := bed.Topic(t, "event", 0).Partition(0)
		p := newPublisher(bed.Engine)
		const n = 3000
		now := bed.Engine.In(0)
		for i := range n {
			at := now + 60_000 - int64(i*7%n) // not in the order of parking
			if err := p.PublishAt(part, message("k", fmt.Sprint(at)), at, 1); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			if r := receive(t, p.receipts, "receipt"); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		bed.Stop(t)
		time.Sleep(time.Hour)
		bed.Start(t)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		es := entries(t, bed.Topic(t, "event", 0).Partition(0))
		if len(es) != n {
			t.Fatalf("%d are released, want %d", len(es), n)
		}
		for i, body := range bodiesOf(t, es) {
			if i > 0 && body < bodiesOf(t, es[i-1:i])[0] {
				t.Fatalf("%s comes after a later one", body)
			}
		}
		bed.Restart(t)
		time.Sleep(time.Second)
		synctest.Wait()
		if es := entries(t, bed.Topic(t, "event", 0).Partition(0)); len(es) != n {
			t.Fatalf("after another restart there are %d", len(es))
		}
	})
}

// The wall clock is set back: nothing is early. It is set forward: what is due by it is released within a second or so.
func TestI7_JumpsOfTheWallClock(t *testing.T) {
	var shift atomic.Int64
	var bed *enginetest.Bed
	now := func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
	synctest.Test(t, func(t *testing.T) {
		bed = enginetest.New(t, func(c *engine.Config) { c.Now = now })
		defer bed.Stop(t)
		part := bed.Topic(t, "event", 0).Partition(0)
		p := newPublisher(bed.Engine)
		due := bed.Engine.In(10 * time.Second)
		p.parkAt(t, part, "a", due)
		synctest.Wait()
		shift.Store(int64(-time.Hour))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(entries(t, part)) > 0 {
			t.Fatal("released before its time by the wall clock")
		}
		shift.Store(int64(time.Hour))
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		es := entries(t, part)
		if len(es) != 1 || es[0].Commit < due {
			t.Fatalf("%+v", es)
		}
	})
}

// A half message is invisible until it is committed, and for ever after it is rolled back; each decision counts once.
func TestS3_30_HalfMessages(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, bed *enginetest.Bed) {
		part := bed.Topic(t, "event", 0).Partition(0)
		p := newPublisher(bed.Engine)
		check := bed.Engine.In(time.Hour)
		yes, no := p.half(t, part, "yes", engine.HalfMessage{Check: check}), p.half(t, part, "no", engine.HalfMessage{Check: check})
		later := p.half(t, part, "later", engine.HalfMessage{Check: check, Wait: 5 * time.Second})
		bed.Restart(t)
		p = newPublisher(bed.Engine)
		part = bed.Topic(t, "event", 0).Partition(0)
		m, err := bed.Engine.Parked(yes)
		if err != nil || !m.Half || m.Partition != part || bodiesOf(t, []core.Entry{m.Entry})[0] != "yes" {
			t.Fatalf("%+v %v", m, err)
		}
		if err := p.Cancel(yes, 1); !errors.Is(err, engine.ErrNotParked) {
			t.Errorf("cancel of a half message: %v", err)
		}
		if err := errors.Join(p.Commit(yes, 1), p.Rollback(no, 2), p.Commit(later, 3)); err != nil {
			t.Fatal(err)
		}
		for _, id := range []engine.ParkedID{yes, no, later} { // on its way to the disk, and when it is there
			if err := p.Commit(id, 4); !errors.Is(err, engine.ErrNotParked) {
				t.Errorf("second decision: %v", err)
			}
		}
		for _, id := range []engine.ParkedID{yes, no} {
			if r := receive(t, p.receipts, "receipt"); r.Err != nil || r.Parked != id || r.Partition != part {
				t.Errorf("%+v", r)
			}
		}
		waits := receive(t, p.receipts, "receipt").Parked
		for _, id := range []engine.ParkedID{yes, no, later} {
			if _, err := bed.Engine.Parked(id); !errors.Is(err, engine.ErrNotParked) {
				t.Errorf("second decision: %v", err)
			}
		}
		if got := bodiesOf(t, entries(t, part)); len(got) != 1 || got[0] != "yes" {
			t.Fatalf("%v", got)
		}
		if m, err := bed.Engine.Parked(waits); err != nil || m.Half {
			t.Errorf("%+v %v", m, err)
		}
		time.Sleep(5100 * time.Millisecond)
		synctest.Wait()
		if got := bodiesOf(t, entries(t, part)); len(got) != 2 || got[1] != "later" {
			t.Fatalf("%v", got)
		}
		for _, id := range []engine.ParkedID{0, 1, yes + 1<<20, 1 << 62} {
			if _, err := bed.Engine.Parked(id); !errors.Is(err, engine.ErrNotParked) {
				t.Errorf("%d: %v", id, err)
			}
		}
	})
}

// The producer of a half message is asked at its time, then at intervals, also over a restart, and given up after the last;
// a question that nobody heard does not count, but a half message does not outlive its age.
func TestS3_30_SilentProducersAreAsked(t *testing.T) {
	inBubble(t, func(c *engine.Config) { c.Parked.MaxChecks, c.Parked.MaxHalfAge = 3, time.Hour }, func(t *testing.T, bed *enginetest.Bed) {
		var asked []string
		var heard atomic.Bool
		heard.Store(true)
		var mu sync.Mutex // guards asked
		ask := func() {
			bed.Engine.OnCheck(core.FormatNeutral, func(m *engine.ParkedMessage) bool {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, fmt.Sprintf("%s %d at %v", bodiesOf(t, []core.Entry{m.Entry})[0], m.Checks, time.Since(time.UnixMilli(m.Entry.Commit)).Truncate(time.Second)))
				return heard.Load()
			})
		}
		ask()
		part := bed.Topic(t, "event", 0).Partition(0)
		id := newPublisher(bed.Engine).half(t, part, "h", engine.HalfMessage{Check: bed.Engine.In(6 * time.Second)})
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(asked) != fmt.Sprint(want) {
				t.Fatalf("asked %q, want %q", asked, want)
			}
			asked = nil
		}
		time.Sleep(5990 * time.Millisecond)
		expect()
		time.Sleep(31 * time.Second)
		expect("h 0 at 6s", "h 1 at 36s")
		heard.Store(false)
		bed.Stop(t)
		time.Sleep(time.Minute)
		bed.Start(t)
		synctest.Wait()
		ask()
		time.Sleep(61 * time.Second)
		expect("h 2 at 2m6s", "h 2 at 2m36s") // the first was due at start, before there was anybody
		heard.Store(true)
		time.Sleep(30 * time.Second)
		expect("h 2 at 3m6s")
		time.Sleep(27 * time.Second)
		if _, err := bed.Engine.Parked(id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		expect()
		if _, err := bed.Engine.Parked(id); !errors.Is(err, engine.ErrNotParked) {
			t.Fatalf("after its last check: %v", err)
		}
		heard.Store(false)
		part = bed.Topic(t, "event", 0).Partition(0)
		id = newPublisher(bed.Engine).half(t, part, "h", engine.HalfMessage{Check: bed.Engine.In(6 * time.Second)})
		time.Sleep(time.Hour)
		if _, err := bed.Engine.Parked(id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := bed.Engine.Parked(id); !errors.Is(err, engine.ErrNotParked) {
			t.Fatalf("when it is too old: %v", err)
		}
		if es := entries(t, part); len(es) > 0 {
			t.Fatalf("%d are visible", len(es))
		}
	})
}

// The internal partition is nobody's business: no topic, no number, no follower shows it, and its number is never given
// again.
func TestParkedMessagesAreInvisible(t *testing.T) {
	bed := enginetest.New(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	followed := make(chan core.Entry, 100)
	fw := bed.Engine.Follower()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fw.Run(ctx, func() bool { return true }, func(_ *engine.Partition, _ uint64, es []core.Entry) {
			for _, e := range es {
				followed <- e
			}
		})
	}()
	p := newPublisher(bed.Engine)
	id := p.parkAt(t, part, "x", bed.Engine.In(50*time.Millisecond))
	if ts := bed.Engine.Topics(); len(ts) != 1 || bed.Engine.PartitionByNumber(uint32(id>>43)) != nil {
		t.Errorf("%d topics", len(ts))
	}
	if e := receive(t, followed, "release"); e.Format != core.FormatNeutral {
		t.Errorf("%+v", e)
	}
	stop()
	<-ended
	for range 2 {
		if n := bed.Topic(t, "other", 0).Partition(0).Number(); n == uint32(id>>43) {
			t.Errorf("number %d is given twice", n)
		}
		bed.Restart(t)
	}
	kept := 0
	if err := bed.Meta.Load(meta.Parked, func(string, []byte) error { kept++; return nil }); err != nil || kept != 1 {
		t.Errorf("%d partitions in metadata, %v", kept, err)
	}
}

// The journal may not be trimmed past a parked body, however old it is.
func TestI7_AParkedBodyHoldsTheJournal(t *testing.T) {
	inBubble(t, func(c *engine.Config) { c.TailBytes = 1 }, func(t *testing.T, bed *enginetest.Bed) {
		part := bed.Topic(t, "event", 0).Partition(0)
		p := newPublisher(bed.Engine)
		due := bed.Engine.In(2 * time.Hour)
		p.publish(t, part, "k", string(make([]byte, 5<<20)))
		p.parkAt(t, part, "x", due)
		for range 3 {
			p.publish(t, part, "k", string(make([]byte, 5<<20)))
		}
		time.Sleep(time.Hour)
		if first, _ := part.Bounds(); first != 1 {
			t.Fatalf("the first offset is %d: what lies before the parked body can go, what lies after it cannot", first)
		}
		bed.Restart(t)
		time.Sleep(time.Hour)
		synctest.Wait()
		part = bed.Topic(t, "event", 0).Partition(0)
		es, err := part.Read(t.Context(), 4, 1, 1)
		if err != nil || len(es) != 1 || bodiesOf(t, es)[0] != "x" {
			t.Fatalf("%v %v", es, err)
		}
		time.Sleep(time.Hour)
		if first, _ := part.Bounds(); first < 3 {
			t.Fatalf("the first offset is %d after the release", first)
		}
	})
}

// A topic that is deleted takes along what is parked for it, and nothing else, also when its record comes back to life with
// the journal of others.
func TestParkedMessagesGoWithTheirTopic(t *testing.T) {
	inBubble(t, func(c *engine.Config) { c.Parked.Max = 2 }, func(t *testing.T, bed *enginetest.Bed) {
		keep, gone := bed.Topic(t, "keep", 0).Partition(0), bed.Topic(t, "gone", 0)
		p := newPublisher(bed.Engine)
		p.parkAt(t, keep, "a", bed.Engine.In(time.Hour))
		p.parkAt(t, gone.Partition(0), "b", bed.Engine.In(time.Minute))
		if err := bed.Engine.DeleteTopic(gone.Name(), true); err != nil {
			t.Fatal(err)
		}
		if err := p.PublishAt(gone.Partition(0), message("k", "x"), bed.Engine.In(time.Hour), 1); !errors.Is(err, core.ErrTopicNotFound) && !errors.Is(err, core.ErrOverloaded) {
			t.Errorf("parked for a deleted topic: %v", err)
		}
		refused := func(p *publisher) {
			t.Helper()
			if err := p.PublishAt(bed.Topic(t, "keep", 0).Partition(0), message("k", "x"), bed.Engine.In(time.Hour), 1); !errors.Is(err, core.ErrOverloaded) {
				t.Errorf("one too many: %v", err)
			}
		}
		id := p.parkAt(t, keep, "c", bed.Engine.In(time.Hour)) // its place is free
		refused(p)
		bed.Restart(t)
		p = newPublisher(bed.Engine)
		refused(p)
		if err := p.Cancel(id, 1); err != nil {
			t.Fatal(err)
		}
		receive(t, p.receipts, "receipt")
		p.parkAt(t, bed.Topic(t, "keep", 0).Partition(0), "d", bed.Engine.In(time.Hour))
		refused(p)
		bed.Topic(t, "gone", 0)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := bodiesOf(t, entries(t, bed.Topic(t, "keep", 0).Partition(0))); fmt.Sprint(got) != "[a d]" {
			t.Errorf("%v", got)
		}
		if es := entries(t, bed.Topic(t, "gone", 0).Partition(0)); len(es) > 0 {
			t.Errorf("%d came back", len(es))
		}
	})
}

// I8: a message that was accepted just before its topic was deleted is parked for nobody: it takes no place and is not asked about.
func TestI8_ParkedWhileItsTopicGoes(t *testing.T) {
	inBubble(t, func(c *engine.Config) { c.Parked.Max = 2 }, func(t *testing.T, bed *enginetest.Bed) {
		keep, gone := bed.Topic(t, "keep", 0).Partition(0), bed.Topic(t, "gone", 0)
		p := newPublisher(bed.Engine)
		p.parkAt(t, keep, "x", bed.Engine.In(24*time.Hour))
		write := make(chan bool)
		bed.Journals.OnAppend(func(string, []byte) error { <-write; return nil })
		if err := p.PublishHalf(gone.Partition(0), message("k", "x"), engine.HalfMessage{Check: bed.Engine.In(time.Hour)}, 1); err != nil {
			t.Fatal(err)
		}
		deleted := make(chan error, 1)
		go func() { deleted <- bed.Engine.DeleteTopic(gone.Name(), true) }()
		synctest.Wait() // as far as it comes while the record is being written
		bed.Journals.OnAppend(nil)
		close(write)
		if err := <-deleted; err != nil {
			t.Fatal(err)
		}
		if r := <-p.receipts; r.Err != nil {
			t.Fatal(r.Err)
		}
		p.parkAt(t, keep, "y", bed.Engine.In(24*time.Hour))
	})
}
