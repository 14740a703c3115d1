package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta"
)

// A topic is deleted while producers and consumers are at work on it: they are told, every accepted message has its
// receipt, and the topic of the same name that comes next is another one.
func TestATopicIsDeletedUnderLoad(t *testing.T) {
	for _, declared := range []bool{true, false} {
		t.Run(fmt.Sprintf("declared=%v", declared), func(t *testing.T) {
			bed := enginetest.New(t, func(c *engine.Config) { c.Slots = 2 })
			make := func() *engine.Topic {
				if declared {
					return declare(t, bed, "event", engine.TopicSpec{Partitions: 3, Groups: []string{"durable"}})
				}
				return bed.Topic(t, "event", 3)
			}
			topic := make()
			bed.Topic(t, "neighbour", 2)
			_, in := join(t, begin(t, topic, "g", engine.Latest), "c", core.Shared, 1<<20)
			var producers sync.WaitGroup
			started := make2(3)
			for i := range int32(3) {
				producers.Go(func() {
					p := newPublisher(bed.Engine)
					accepted := 0
					for ; ; accepted++ {
						err := p.Publish(topic.Partition(i), message("k", "x"), 0)
						if errors.Is(err, core.ErrTopicNotFound) {
							break
						}
						if err != nil {
							t.Error(err)
							return
						}
						if accepted == 100 {
							started <- struct{}{}
						}
						if accepted%64 == 63 {
							for range 64 {
								receive(t, p.receipts, "receipt")
							}
						}
					}
					for range accepted % 64 {
						receive(t, p.receipts, "receipt")
					}
				})
			}
			for range 3 {
				receive(t, started, "start")
			}
			if err := bed.Engine.DeleteTopic(topic.Name(), false); !errors.Is(err, core.ErrBusy) {
				t.Fatalf("somebody uses it: %v", err)
			}
			numbers := []uint32{topic.Partition(0).Number(), topic.Partition(2).Number()}
			if err := bed.Engine.DeleteTopic(topic.Name(), true); err != nil {
				t.Fatal(err)
			}
			producers.Wait()
			if err := receive(t, in.detached, "end of the consumer"); !errors.Is(err, core.ErrTopicNotFound) {
				t.Errorf("the consumer is told %v", err)
			}
			if _, err := bed.Engine.Topic(topic.Name()); !errors.Is(err, core.ErrTopicNotFound) {
				t.Errorf("still there: %v", err)
			}
			if _, err := topic.BeginGroup("late", engine.Start{}); !errors.Is(err, core.ErrTopicNotFound) {
				t.Errorf("a group of a topic that is gone: %v", err)
			}
			if name := fmt.Sprintf("topic-%d-0", numbers[0]); declared && bed.Journals.Has(name) {
				t.Errorf("journal %s is left", name)
			}
			for range 2 {
				topic = make()
				for i := range topic.Logs() {
					if n := topic.Partition(i).Number(); slices.Contains(numbers, n) {
						t.Errorf("partition number %d is used again", n)
					}
					if first, end := topic.Partition(i).Bounds(); first != 0 || end != 0 {
						t.Errorf("begins with offsets %d to %d", first, end)
					}
				}
				crash(t, bed)
			}
			newPublisher(bed.Engine).publish(t, bed.Topic(t, "neighbour", 2).Partition(1), "k", "alive")
		})
	}
}

func make2(n int) chan struct{} { return make(chan struct{}, n) }

// The last topic of a shared journal is deleted, before anything was saved: the next one may be made, also after a crash.
func TestASharedJournalOutlivesItsTopics(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = time.Hour })
	for i := range 3 {
		topic := bed.Topic(t, fmt.Sprint("event", i), 0)
		newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "x")
		if err := bed.Engine.DeleteTopic(topic.Name(), true); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			crash(t, bed)
		}
	}
}

// Whatever fails on the way, a deletion leaves the old topic or none.
func TestAFailedDeletionLeavesAllOrNothing(t *testing.T) {
	failing := errors.New("disk full")
	for name, arrange := range map[string]struct {
		fail  func(bed *enginetest.Bed)
		stays bool
	}{
		"metadata": {func(bed *enginetest.Bed) {
			bed.Meta.OnApply(func(ws []meta.Write) error {
				if deletes(ws, meta.Topics) {
					return failing
				}
				return nil
			})
		}, true},
		"journal": {func(bed *enginetest.Bed) { bed.Journals.OnRemove(func(string) error { return failing }) }, false},
		"records": {func(bed *enginetest.Bed) {
			bed.Meta.OnApply(func(ws []meta.Write) error {
				if deletes(ws, meta.Journals) {
					return failing
				}
				return nil
			})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bed := enginetest.New(t, nil)
			topic := declare(t, bed, "event", engine.TopicSpec{Groups: []string{"g"}})
			journal := fmt.Sprintf("topic-%d-0", topic.Partition(0).Number())
			newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "kept")
			arrange.fail(bed)
			err := bed.Engine.DeleteTopic(topic.Name(), true)
			if stays := errors.Is(err, failing); stays != arrange.stays {
				t.Fatalf("deletion says %v", err)
			}
			if arrange.stays {
				newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "goes on")
			}
			bed.Meta.OnApply(nil)
			bed.Journals.OnRemove(nil)
			bed.Restart(t)
			topic, err = bed.Engine.Topic(topic.Name())
			switch {
			case arrange.stays && err != nil:
				t.Fatal(err)
			case arrange.stays:
				if n := backlogOf(t, topic, "g"); n != 2 {
					t.Errorf("a backlog of %d", n)
				}
			case err == nil:
				t.Error("it is back")
			case bed.Journals.Has(journal):
				t.Error("its journal is still there after a start")
			}
		})
	}
}

// Everything up to now is gone for groups with and without consumers, also after a crash; offsets go on.
func TestATopicIsEmptied(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = time.Hour })
	topic := bed.Topic(t, "event", 2)
	absent := begin(t, topic, "absent", engine.Latest)
	live := begin(t, topic, "live", engine.Latest)
	c, in := join(t, live, "c", core.Shared, 1)
	p := newPublisher(bed.Engine)
	for i := range 10 {
		p.publish(t, topic.Partition(int32(i%2)), "k", "old")
	}
	receive(t, in.got, "delivery")
	failing := errors.New("disk full")
	bed.Meta.OnApply(func([]meta.Write) error { return failing })
	if err := bed.Engine.EmptyTopic(topic.Name()); !errors.Is(err, failing) {
		t.Fatalf("got %v", err)
	}
	if n, _ := absent.Backlog(); n != 10 {
		t.Fatalf("a failed call left %d messages", n)
	}
	bed.Meta.OnApply(nil)
	if err := bed.Engine.EmptyTopic(topic.Name()); err != nil {
		t.Fatal(err)
	}
	if got := p.publish(t, topic.Partition(0), "k", "new"); got != 5 {
		t.Fatalf("the next offset is %d", got)
	}
	c.Permit(10)
	if d := receive(t, in.got, "delivery"); body(t, bed.Engine, d) != "new" {
		t.Errorf("delivered %q", body(t, bed.Engine, d))
	}
	for range 2 {
		for _, g := range []string{"absent", "live"} {
			if n := backlogOf(t, topic, g); n != 1 {
				t.Errorf("%s: a backlog of %d", g, n)
			}
		}
		if i := topic.Info(); i.Messages != 1 || i.Backlog != 1 {
			t.Errorf("info %+v", i)
		}
		if _, err := topic.Partition(0).Read(t.Context(), 4, 1, 1); !errors.Is(err, core.ErrOffsetOutOfRange) {
			t.Errorf("what was dropped can be read: %v", err)
		}
		crash(t, bed)
		topic = bed.Topic(t, "event", 2)
	}
}

// Topics that clients made go when nobody uses them, and no other.
func TestIdleTopicsAreRemovedIfAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, func(c *engine.Config) {
			c.Defaults.DeleteWhenIdle = time.Hour
			c.TrimFloor = time.Minute
		})
		p := newPublisher(bed.Engine)
		declare(t, bed, "declared", engine.TopicSpec{})
		bed.Topic(t, "idle", 2)
		begin(t, bed.Topic(t, "caught-up", 0), "g", engine.Latest)
		join(t, begin(t, bed.Topic(t, "consumed", 0), "g", engine.Latest), "c", core.Shared, 1)
		begin(t, bed.Topic(t, "queued", 0), "g", engine.Latest).Heartbeat("client")
		bed.Topic(t, "produced", 0).Use(true)
		behind := bed.Topic(t, "behind", 0)
		begin(t, behind, "g", engine.Latest)
		p.publish(t, behind.Partition(0), "k", "x")
		p.parkAt(t, bed.Topic(t, "delayed", 0).Partition(0), "x", bed.Engine.In(24*time.Hour))
		p.half(t, bed.Topic(t, "undecided", 0).Partition(0), "x", engine.HalfMessage{Check: bed.Engine.In(time.Hour)})
		busy := bed.Topic(t, "busy", 0)
		for range 5 {
			time.Sleep(20 * time.Minute)
			p.publish(t, busy.Partition(0), "k", "x")
		}
		var left []string
		for _, topic := range bed.Engine.Topics() {
			left = append(left, topic.Name().Name)
		}
		if got, want := strings.Join(left, " "), "behind busy consumed declared delayed produced queued undecided"; got != want {
			t.Errorf("left: %s\nwant: %s", got, want)
		}
		bed.Stop(t)
	})
}

// I7: what a group of a deleted topic had acknowledged a moment before is not taken for what the group of its namesake has.
func TestI7_ADeletedTopicLeavesNoCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		spec := engine.TopicSpec{Groups: []string{"g"}}
		topic := declare(t, bed, "event", spec)
		p := newPublisher(bed.Engine)
		p.publish(t, topic.Partition(0), "k", "old")
		g, _ := topic.Group("g")
		c, in := join(t, g, "c", core.Shared, 10)
		d := receive(t, in.got, "delivery")
		c.Ack(0, core.Range{From: d.Entry.Base, To: d.Entry.End()})
		synctest.Wait()
		if err := bed.Engine.DeleteTopic(topic.Name(), true); err != nil {
			t.Fatal(err)
		}
		declare(t, bed, "event", spec)
		time.Sleep(2 * time.Second) // ticks
		bed.Restart(t)
		newPublisher(bed.Engine).publish(t, declare(t, bed, "event", spec).Partition(0), "k", "new")
		bed.Restart(t)
		g, _ = declare(t, bed, "event", spec).Group("g")
		_, in = join(t, g, "c", core.Shared, 10)
		if d := receive(t, in.got, "delivery"); body(t, bed.Engine, d) != "new" {
			t.Errorf("%s comes", body(t, bed.Engine, d))
		}
		bed.Stop(t)
	})
}
