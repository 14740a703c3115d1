package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta"
)

func deletes(ws []meta.Write, b meta.Bucket) bool {
	for _, w := range ws {
		if w.Bucket == b && w.Value == nil {
			return true
		}
	}
	return false
}

func sets(ws []meta.Write, b meta.Bucket) bool {
	for _, w := range ws {
		if w.Bucket == b && w.Value != nil {
			return true
		}
	}
	return false
}

// A group that is begun again while its old self is being deleted is there after a crash.
func TestI7_AGroupBegunWhileItIsDeletedStays(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = time.Hour })
	topic := bed.Topic(t, "event", 0)
	begin(t, topic, "g", engine.Latest)
	entered, release := make(chan struct{}), make(chan struct{})
	bed.Meta.OnApply(func(ws []meta.Write) error {
		if deletes(ws, meta.Groups) {
			close(entered)
			<-release
		}
		return nil
	})
	deleted, begun := make(chan error, 1), make(chan error, 1)
	go func() { deleted <- topic.DeleteGroup("g") }()
	receive(t, entered, "deletion")
	go func() {
		_, err := topic.BeginGroup("g", engine.Start{At: engine.Latest})
		begun <- err
	}()
	select {
	case err := <-begun:
		begun <- err
	case <-time.After(200 * time.Millisecond): // it waits for the deletion: good
	}
	close(release)
	if err := errors.Join(receive(t, deleted, "end"), receive(t, begun, "group")); err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Group("g"); err != nil {
		t.Fatalf("while running: %v", err)
	}
	newPublisher(bed.Engine).publish(t, topic.Partition(0), "k", "acknowledged")
	crash(t, bed)
	if _, err := bed.Topic(t, "event", 0).Group("g"); err != nil {
		t.Fatalf("after a crash: %v", err)
	}
}

// What the saver has picked up before a group was deleted does not bring it back, nor its cursor.
func TestADeletedGroupIsNotSavedAgain(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = 2 * time.Millisecond })
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Latest)
	entered, release := make(chan struct{}, 64), make(chan struct{})
	bed.Meta.OnApply(func(ws []meta.Write) error {
		if sets(ws, meta.Groups) {
			entered <- struct{}{}
			<-release
		}
		return nil
	})
	g.Heartbeat("a")
	receive(t, entered, "tick")
	deleted := make(chan error, 1)
	go func() { deleted <- topic.DeleteGroup("g") }()
	select {
	case err := <-deleted:
		deleted <- err
	case <-time.After(200 * time.Millisecond): // it waits for the saver: good
	}
	close(release)
	if err := receive(t, deleted, "end"); err != nil {
		t.Fatal(err)
	}
	bed.Restart(t)
	if _, err := bed.Topic(t, "event", 0).Group("g"); !errors.Is(err, core.ErrGroupNotFound) {
		t.Fatal("a deleted group is back after a restart")
	}
}

// The late save of a deleted group's cursor must not become its namesake's: what that one has yet to get would be lost.
func TestI7_TheCursorOfADeletedGroupIsNotItsNamesakes(t *testing.T) {
	bed := enginetest.New(t, func(c *engine.Config) { c.SaveEvery = 2 * time.Millisecond })
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Latest)
	p := newPublisher(bed.Engine)
	for range 10 {
		p.publish(t, topic.Partition(0), "k", "x")
	}
	entered, release := make(chan struct{}, 64), make(chan struct{})
	first := make(chan struct{}, 1)
	first <- struct{}{}
	bed.Meta.OnApply(func(ws []meta.Write) error {
		if sets(ws, meta.Cursors) {
			select {
			case <-first:
				entered <- struct{}{}
				<-release
			default:
			}
		}
		return nil
	})
	g.Commit(0, 10)
	receive(t, entered, "tick")
	done := make(chan error, 1)
	go func() {
		err := topic.DeleteGroup("g")
		_, err2 := topic.BeginGroup("g", engine.Start{At: engine.Earliest})
		done <- errors.Join(err, err2)
	}()
	select {
	case err := <-done:
		done <- err
	case <-time.After(200 * time.Millisecond):
	}
	close(release)
	if err := receive(t, done, "group"); err != nil {
		t.Fatal(err)
	}
	bed.Restart(t) // in order, even: the cursor did not change, so it is not saved again
	g, err := bed.Topic(t, "event", 0).Group("g")
	if err != nil {
		t.Fatal(err)
	}
	if m := g.Mark(0); m != 0 {
		t.Fatalf("the group begun at 0 is at %d after a restart", m)
	}
}

// A reader's group ends with the attempt to join it.
func TestI8_AReadersGroupIsGoneWhenItsJoinFailed(t *testing.T) {
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 0)
	for i := range 5 {
		g, err := topic.BeginGroup("reader-"+string(rune('a'+i)), engine.Start{NonDurable: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Join(ctx, engine.Member{Name: "c", Mode: core.Shared, Sink: deaf{}}); err == nil {
			t.Fatal("joined though nobody waits any more")
		}
	}
	if n := len(topic.Groups()); n > 0 {
		t.Fatalf("%d groups of readers that never were", n)
	}
}
