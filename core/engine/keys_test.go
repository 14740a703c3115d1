package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"

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
