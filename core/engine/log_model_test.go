package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta"
)

// logOperations are what happens to logs; the frequent ones are there more than once, and the first one is what a history
// shrinks to.
var logOperations = []string{
	"rest", "create", "create", "send", "send", "send", "send", "resend", "delay", "delay", "half", "decide", "cancel",
	"ack", "ack", "drink", "drink", "through", "nack", "reset", "skip", "rejoin", "pass", "pass", "pass",
	"grow", "empty", "delete", "restart", "crash", "late", "fail", "disk",
}

// I1, I2, I6, I7 and the promises of retention, backlogs, TTL, de-duplication, delays and transactions, all together, over
// whole lives of an engine in virtual time. After each step everything comes to rest, all logs are read, and what is there,
// what is not there any more, what groups got and what producers were told is held against a model of single messages.
func TestI1_I2_I6_I7_ModelOfTheLog(t *testing.T) {
	one := rapid.Custom(func(t *rapid.T) step {
		small := rapid.IntRange(0, 11)
		return step{rapid.SampledFrom(logOperations).Draw(t, "op"), small.Draw(t, "a"), small.Draw(t, "b"), rapid.IntRange(1, 8).Draw(t, "n")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(1, 2).Draw(rt, "slots")
		script := rapid.SliceOfN(one, 40, 200).Draw(rt, "steps")
		var err error
		synctest.Test(t, func(t *testing.T) {
			w := newLogWorld(t, slots)
			for i, s := range script {
				if err = w.play(s); err != nil {
					err = fmt.Errorf("step %d %v: %w", i, s, err)
					break
				}
			}
			w.bed.Kill()
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// Sizes and times of the model's engine: small, so that a short history gets through all of them.
const (
	modelFloor = time.Second // consumed data stays at least this long
	modelMarks = 512         // bytes between two places to trim at
	parkedSlow = 300 * time.Millisecond
)

// logWorld is an engine and what is known of its topics.
type logWorld struct {
	t      *testing.T
	bed    *enginetest.Bed
	topics [2]*logTopic // nil: there is none
	pub    *publisher
	sent   map[uint64]*logSent // by token
	tokens uint64
	up     time.Time // since when the engine runs
	down   time.Time // when it crashed last
	moved  time.Time // when a group's place changed last
	sentAt time.Time // when something was published last
	crash  bool      // what groups had acknowledged a moment before may come again
	disk   modelDisk
	asked  int // times
}

func newLogWorld(t *testing.T, slots int) *logWorld {
	w := &logWorld{t: t, sent: map[uint64]*logSent{}}
	w.bed = enginetest.New(t, func(c *engine.Config) {
		c.Slots, c.TrimFloor, c.MarkBytes, c.ViewBytes, c.TailBytes = slots, modelFloor, modelMarks, 2<<10, 2<<10
		c.Storage = w.disk.storage()
	})
	w.connect()
	return w
}

// connect makes a new producer. Where it is made to wait for room it does so for a moment.
func (w *logWorld) connect() {
	w.pub, w.up = newPublisher(w.bed.Engine), time.Now()
	w.pub.Wait(40 * time.Millisecond)
}

func (w *logWorld) play(s step) error {
	if err := w.step(s); err != nil {
		return err
	}
	return w.settle()
}

// settle lets everything come to rest and looks at it.
func (w *logWorld) settle() error {
	time.Sleep(5 * time.Millisecond) // longer than the commit window
	synctest.Wait()
	if err := w.receipts(); err != nil {
		return err
	}
	for _, t := range w.topics {
		if t == nil {
			continue
		}
		if err := t.check(w); err != nil {
			return fmt.Errorf("topic %s: %w", t.name, err)
		}
		if err := t.ask(w); err != nil {
			return fmt.Errorf("topic %s: %w", t.name, err)
		}
	}
	w.crash = false
	if err := w.bed.Engine.CheckViews(); err != nil {
		return err
	}
	return w.parkedInTime()
}

func (w *logWorld) step(s step) error {
	if s.op == "create" {
		return w.create(s)
	}
	switch s.op {
	case "rest":
		return nil
	case "disk":
		w.disk.turn()
		return nil
	case "pass":
		time.Sleep([]time.Duration{100, 700, 1600, 6000, 13000, 61000}[s.a%6] * time.Millisecond)
		return nil
	case "restart":
		w.bed.Stop(w.t)
		return w.start(s)
	case "crash", "late", "fail":
		return w.die(s)
	}
	t := w.topics[s.a%2]
	if t == nil {
		return nil
	}
	switch s.op {
	case "grow", "empty", "delete":
		w.moved = time.Now()
		return w.alter(t, s)
	case "drink":
		w.moved = time.Now()
		for i := range t.groups {
			t.groups[i].drink(s.n % 3 * (s.b >> i & 1))
		}
		return nil
	case "ack", "through", "nack", "reset", "skip", "rejoin":
		w.moved = time.Now()
		return t.groups[s.a/2%2].step(w, s)
	}
	return w.produce(t, s)
}

// die ends the engine as a crash does: metadata is as it was at the last tick. Something is on its way: it still becomes
// durable (late), or the disk refuses it (fail).
func (w *logWorld) die(s step) error {
	if s.op == "fail" {
		w.bed.Journals.OnAppend(func(string, []byte) error { return errors.New("disk on fire") })
	}
	if t := w.topics[s.a%2]; t != nil && s.op != "crash" {
		if err := w.send(t, s); err != nil {
			return err
		}
	}
	if s.op == "fail" {
		time.Sleep(5 * time.Millisecond)
	}
	w.bed.Meta.OnApply(func([]meta.Write) error { return errors.New("killed") })
	w.bed.Kill()
	w.bed.Journals.OnAppend(nil)
	w.bed.Meta.OnApply(nil)
	w.crash, w.down = true, time.Now()
	if err := w.receipts(); err != nil {
		return err
	}
	return w.start(s)
}

// start starts the engine after a while. Consumers come back, and producers that number their messages send again what
// they heard nothing of.
func (w *logWorld) start(s step) error {
	time.Sleep(time.Duration(s.b) * 400 * time.Millisecond)
	w.bed.Start(w.t)
	w.connect()
	w.moved = time.Now()
	if err := w.bed.Engine.Health(); err != nil {
		return fmt.Errorf("after the start: %w", err)
	}
	for _, t := range w.topics {
		if t == nil {
			continue
		}
		if err := t.open(w); err != nil {
			return err
		}
	}
	time.Sleep(5 * time.Millisecond)
	synctest.Wait()
	if err := w.bed.Engine.CheckViews(); err != nil { // before anything is sent
		return err
	}
	for _, t := range w.topics {
		if t != nil {
			if err := w.resendLost(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// receipts notes what producers are told.
func (w *logWorld) receipts() error {
	for len(w.pub.receipts) > 0 {
		r := <-w.pub.receipts
		s := w.sent[r.Token&^decision]
		switch {
		case r.Err != nil && r.Token&decision == 0:
			s.told = errorsTold // it may come again from its producer
		case r.Err != nil:
			return fmt.Errorf("decision about publish %d: %w", s.token, r.Err)
		case r.Token&decision != 0:
			s.decided = s.wish
		case r.Duplicate && s.told != heardOf && !s.resent:
			return fmt.Errorf("publish %d is called a duplicate, and it was never sent before", s.token)
		case r.Duplicate:
			s.told = heardOf
		case s.due > 0:
			s.told, s.id = heardOf, r.Parked
		default:
			if s.told == heardOf {
				return fmt.Errorf("publish %d was acknowledged, came again, and was stored again at %d", s.token, r.Base)
			}
			if r.Base < s.part.end {
				return fmt.Errorf("offset %d is given to publish %d, and offsets below %d were given before", r.Base, s.token, s.part.end)
			}
			s.told, s.base, s.part.end = heardOf, r.Base, r.Base+core.Offset(s.count)
		}
	}
	return nil
}
