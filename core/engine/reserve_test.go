package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/journal/disk"
	"isthmus/core/journal/disk/faultfs"
)

// intervalWorld is an engine whose messages are acknowledged before they are on the disk.
func intervalWorld(t *testing.T) *crashWorld {
	w := newCrashWorld(t, 14, true)
	w.kill()
	w.mode = disk.Interval
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *crashWorld) publishOne(body string) core.Offset {
	w.t.Helper()
	if err := w.pub.Publish(w.topic("b").Partition(0), message("k", body), 1); err != nil {
		w.t.Fatal(err)
	}
	r := <-w.pub.receipts
	if r.Err != nil {
		w.t.Fatal(r.Err)
	}
	return r.Base
}

// I2: offsets that were given to lost messages are not given again; groups and readers step over the hole; the jump is
// made once, not at every start, and a clean shutdown makes none.
func TestI2_OffsetsJumpAfterAPowerLossWithDurabilityInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := intervalWorld(t)
		defer func() { w.kill() }()
		kept := w.publishOne("kept")
		time.Sleep(time.Second) // synced
		lost := w.publishOne("lost")
		w.disk.PowerOff()
		w.kill()
		w.disk.RestartEmpty()
		if err := w.restart(); err != nil {
			t.Fatal(err)
		}
		p := w.topic("b").Partition(0)
		after := w.publishOne("after")
		if after <= lost || kept != 0 {
			t.Fatalf("offset %d after %d was given", after, lost)
		}
		ctx := context.Background()
		for _, from := range []core.Offset{lost, lost + 1, after} { // a client that knows the lost one, and the one behind
			es, err := p.Read(ctx, from, 10, 1<<20)
			if err != nil || len(es) == 0 || es[len(es)-1].Base != after {
				t.Fatalf("read from %d: %v %v", from, es, err)
			}
		}
		synctest.Wait()
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		for _, g := range w.groups {
			got := g.take()
			if g.topic != "b" {
				continue
			}
			if last := got[len(got)-1].Entry; last.Base != after {
				t.Fatalf("group %s got up to %d", g.name, last.Base)
			}
			for _, d := range got {
				g.consumer.Ack(0, core.Range{From: d.Entry.Base, To: d.Entry.End()})
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if mark := g.consumer.Group().Mark(0); mark != after+1 {
				t.Fatalf("group %s: mark %d, want %d: the hole holds it up", g.name, mark, after+1)
			}
		}
		w.kill() // in order
		if err := w.restart(); err != nil {
			t.Fatal(err)
		}
		if next := w.publishOne("next"); next != after+1 {
			t.Fatalf("offset %d after a clean shutdown, want %d", next, after+1)
		}
	})
}

// I2: metadata that cannot be told of more offsets stops the log before they are given, with durability interval alone.
func TestI2_NoOffsetWithoutAReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := intervalWorld(t)
		defer func() { w.kill() }()
		p := w.topic("b").Partition(0)
		w.meta.full.Store(true)
		if err := w.pub.Publish(p, message("k", "x"), 1); err != nil {
			t.Fatal(err)
		}
		if r := <-w.pub.receipts; !errors.Is(r.Err, errMetaFull) || !errors.Is(r.Err, core.ErrUnavailable) {
			t.Fatalf("receipt %+v", r)
		}
		w.meta.full.Store(false)
		w.kill()
		w.mode = disk.Fsync
		if err := w.restart(); err != nil {
			t.Fatal(err)
		}
		w.meta.full.Store(true)
		defer w.meta.full.Store(false)
		var r engine.Receipt
		if err := w.pub.Publish(w.eng.PartitionByNumber(p.Number()), message("k", "y"), 1); err != nil {
			t.Fatal(err)
		}
		if r = <-w.pub.receipts; r.Err != nil {
			t.Fatalf("with every message on the disk no metadata is needed: %v", r.Err)
		}
	})
}

// I2: where a partition went on after a loss holds also when nothing could be written there.
func TestI2_AJumpOutlivesTheNextFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := intervalWorld(t)
		defer func() { w.kill() }()
		lost := w.publishOne("lost")
		w.disk.PowerOff()
		w.kill()
		w.disk.RestartEmpty()
		w.mode = disk.Fsync
		if err := w.restart(); err != nil {
			t.Fatal(err)
		}
		w.disk.Before(func(op faultfs.Op) error {
			if op.Kind == "write" {
				return faultfs.ErrPower
			}
			return nil
		})
		if err := w.pub.Publish(w.topic("b").Partition(0), message("k", "x"), 1); err != nil {
			t.Fatal(err)
		}
		if r := <-w.pub.receipts; r.Err == nil {
			t.Fatal("acknowledged without power")
		}
		w.downAt.Store(1)
		w.kill()
		w.disk.RestartEmpty()
		w.downAt.Store(0)
		if err := w.restart(); err != nil {
			t.Fatal(err)
		}
		if next := w.publishOne("next"); next <= lost {
			t.Fatalf("offset %d is given again", next)
		}
	})
}

// I2: what a clean shutdown has settled says nothing about the offsets that are given after it.
func TestI2_OffsetsJumpAfterAPowerLossAfterACleanShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := intervalWorld(t)
		defer func() { w.kill() }()
		w.publishOne("kept")
		w.kill() // in order
		if err := w.restart(); err != nil {
			t.Fatal(err)
		}
		lost := w.publishOne("lost")
		w.disk.PowerOff()
		w.kill()
		w.disk.RestartEmpty()
		if err := w.restart(); err != nil {
			t.Fatal(err)
		}
		if after := w.publishOne("after"); after <= lost {
			t.Fatalf("offset %d was given to a message that is lost, and again", after)
		}
	})
}
