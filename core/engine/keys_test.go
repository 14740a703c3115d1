package engine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// waiters is a key_shared group of two: one takes all of its own, the other has no credit, so that what is the other's waits.
type waiters struct {
	bed    *enginetest.Bed
	topic  *engine.Topic
	group  *engine.Group
	idle   *engine.Consumer
	busy   *engine.Consumer
	at     map[*engine.Consumer]*inbox
	bodies int
}

func newWaiters(t *testing.T, bodies int) *waiters {
	t.Helper()
	w := &waiters{bed: enginetest.New(t, nil), bodies: bodies, at: map[*engine.Consumer]*inbox{}}
	w.topic = w.bed.Topic(t, "event", 0)
	w.group = begin(t, w.topic, "g", engine.Earliest)
	p := newPublisher(w.bed.Engine)
	for i := range bodies {
		p.publish(t, w.topic.Partition(0), fmt.Sprint("key-", i), fmt.Sprint("body-", i))
	}
	var a, b *inbox
	w.idle, a = join(t, w.group, "idle", core.KeyShared, 0)
	w.busy, b = join(t, w.group, "busy", core.KeyShared, 10_000)
	w.at[w.idle], w.at[w.busy] = a, b
	synctest.Wait()
	if n := len(b.got); n == 0 || n == bodies || len(a.got) > 0 {
		t.Fatalf("%d of %d came to the one, %d to the other", n, bodies, len(a.got))
	}
	return w
}

// bodiesAt are what came to a consumer.
func (w *waiters) bodiesAt(t *testing.T, c *engine.Consumer) map[string]int {
	t.Helper()
	synctest.Wait()
	got := map[string]int{}
	for in := w.at[c]; len(in.got) > 0; {
		d := <-in.got
		got[body(t, w.bed.Engine, d)]++
		if k, b := string(d.Entry.Key), body(t, w.bed.Engine, d); k[len("key-"):] != b[len("body-"):] {
			t.Errorf("%s has key %s", b, k)
		}
	}
	return got
}

// What waits for its consumer is kept, and let go when it is delivered, when its consumer and then the last one leaves, at a
// seek, and with the topic; each message comes as it was published.
func TestI8_WhatWaitsIsLetGo(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *waiters){
		"delivered": func(t *testing.T, w *waiters) {
			n := len(w.bodiesAt(t, w.busy))
			w.idle.Permit(10_000)
			if m := len(w.bodiesAt(t, w.idle)); n+m != w.bodies {
				t.Errorf("%d and %d of %d came", n, m, w.bodies)
			}
		},
		"its consumer left": func(t *testing.T, w *waiters) {
			w.idle.Leave()
			if n := len(w.bodiesAt(t, w.busy)); n != w.bodies {
				t.Errorf("%d of %d came", n, w.bodies)
			}
		},
		"all left": func(_ *testing.T, w *waiters) { w.busy.Leave(); w.idle.Leave() },
		"passed over": func(t *testing.T, w *waiters) {
			if err := w.group.Skip(0, int64(w.bodies)); err != nil {
				t.Fatal(err)
			}
			w.busy.Permit(1)
		},
		"sought": func(t *testing.T, w *waiters) {
			if err := w.group.Reset(0, core.Offset(w.bodies)); err != nil {
				t.Fatal(err)
			}
		},
		"deleted": func(t *testing.T, w *waiters) {
			if err := w.bed.Engine.DeleteTopic(w.topic.Name(), true); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWaiters(t, 300)
				if w.bed.Engine.AheadBytes() == 0 {
					t.Fatal("nothing is kept")
				}
				end(t, w)
				synctest.Wait()
				if n := w.bed.Engine.AheadBytes(); n != 0 {
					t.Errorf("%d bytes are still held", n)
				}
				w.bed.Stop(t)
			})
		})
	}
}

// A seek back to the beginning reads all again, and what was kept before is not kept twice.
func TestWhatWaitsIsReadAgainAfterASeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t, 300)
		was, n := w.bed.Engine.AheadBytes(), len(w.bodiesAt(t, w.busy))
		if err := w.group.Reset(0, 0); err != nil {
			t.Fatal(err)
		}
		if again := len(w.bodiesAt(t, w.busy)); again != n {
			t.Errorf("%d came again, %d at first", again, n)
		}
		if now := w.bed.Engine.AheadBytes(); now != was {
			t.Errorf("%d bytes held, before %d", now, was)
		}
		w.idle.Permit(10_000)
		if m := len(w.bodiesAt(t, w.idle)); n+m != w.bodies {
			t.Errorf("%d and %d of %d came", n, m, w.bodies)
		}
		w.bed.Stop(t)
	})
}

// torn takes batches of bytes apart, a message for each byte, which is its key. While it is broken it takes one message too
// few.
type torn struct{ broken atomic.Bool }

func (s *torn) split(e *core.Entry, dst []core.Entry) ([]core.Entry, error) {
	if s.broken.Load() {
		return append(dst, *e), nil
	}
	for i := range e.Count {
		one := *e
		one.Base, one.Count, one.Flags = e.Base+core.Offset(i), 1, core.FlagHasKey
		one.Key, one.Data = e.Data[i:i+1], e.Data[i:i+1]
		dst = append(dst, one)
	}
	return dst, nil
}

func publishBatch(t *testing.T, p *publisher, topic *engine.Topic, keys string) {
	t.Helper()
	e := &core.Entry{Count: int32(len(keys)), Format: core.FormatPulsar, Data: []byte(keys)}
	if err := p.Publish(topic.Partition(0), e, 0); err != nil {
		t.Fatal(err)
	}
	receive(t, p.receipts, "receipt")
}

// stalls is the reason that a group's partition gives.
func stalls(g *engine.Group) string {
	synctest.Wait()
	return g.Info().Stall
}

// I6: a message that the log has and that is not found as it was assigned is not acknowledged: the group says so, tries again,
// keeps its order, and raises no attempt.
func TestI6_WhatIsNotFoundAgainIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s torn
		bed := enginetest.New(t, func(c *engine.Config) {
			c.Splitters = map[core.Format]engine.Splitter{core.FormatPulsar: s.split}
		})
		topic := bed.Topic(t, "event", 0)
		g := begin(t, topic, "g", engine.Earliest)
		c, in := join(t, g, "c", core.KeyShared, 100)
		p := newPublisher(bed.Engine)
		publishBatch(t, p, topic, "abca")
		for want := range core.Offset(4) {
			if _, d := arrives(t, in); d.Entry.Base != want || d.Entry.Count != 1 {
				t.Fatalf("came %d, %d messages", d.Entry.Base, d.Entry.Count)
			}
		}
		s.broken.Store(true)
		c.Nack(0, 1)
		c.Nack(0, 2)
		c.Ack(0, core.Range{From: 3, To: 4})
		p.publish(t, topic.Partition(0), "b", "later")
		if why := stalls(g); !strings.Contains(why, "offsets 1 to 2 are not as they were read before") {
			t.Errorf("the group stalls because %q", why)
		}
		time.Sleep(10 * time.Second) // in bubble time
		if i := g.Info(); i.Backlog != 4 || i.InFlight != 1 || i.Members[0].Permits != 96 || len(in.got) > 0 {
			t.Errorf("backlog %d, %d in flight, %d permits, %d came", i.Backlog, i.InFlight, i.Members[0].Permits, len(in.got))
		}
		s.broken.Store(false)
		for _, want := range []struct {
			base    core.Offset
			attempt int32
		}{{1, 1}, {2, 1}, {4, 0}} {
			if _, d := arrives(t, in); d.Entry.Base != want.base || d.Attempt != want.attempt {
				t.Errorf("came %d at attempt %d, want %v", d.Entry.Base, d.Attempt, want)
			}
		}
		if why := stalls(g); why != "" {
			t.Errorf("in the end the group stalls because %q", why)
		}
		bed.Stop(t)
	})
}

// What people see of a key_shared group: what each member holds, and why it does not go on.
func TestGroupInfoTellsWhyAKeySharedGroupStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t, 300)
		got := int64(len(w.at[w.busy].got))
		i := w.group.Info()
		if i.InFlight != got || i.Members[1].InFlight != got || i.Members[0].InFlight != 0 || !strings.Contains(i.Stall, `waits for "idle", which takes no more`) {
			t.Errorf("%d came: %+v", got, i)
		}
		w.bed.Stop(t)
	})
}
