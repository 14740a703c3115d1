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

// step is one thing that happens to the engine. The numbers choose among what is there when it happens.
type step struct {
	op   string
	a, b int
	n    int
}

func (s step) String() string { return fmt.Sprintf("%s(%d,%d,%d)", s.op, s.a, s.b, s.n) }

// The frequent ones are there more than once.
var operations = []string{
	"publish", "publish", "publish", "join", "join", "leave", "permit", "permit", "permit",
	"ack", "ack", "ack", "ackPart", "through", "nack", "nackAll", "tick", "restart", "crash", "fail",
}

func steps() *rapid.Generator[[]step] {
	one := rapid.Custom(func(t *rapid.T) step {
		small := rapid.IntRange(0, 11)
		return step{rapid.SampledFrom(operations).Draw(t, "op"), small.Draw(t, "a"), small.Draw(t, "b"), rapid.IntRange(1, 6).Draw(t, "n")}
	})
	return rapid.SliceOfN(one, 1, 60)
}

// I2, I3, I4, I6, I7, I8 over whole lives of an engine, in virtual time: after each step everything comes to rest, and
// then what happened and what did not happen is compared with a model of single messages.
func TestI6_I7_ModelOfWholeLives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slots, script := rapid.IntRange(1, 3).Draw(rt, "slots"), steps().Draw(rt, "steps")
		var err error
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, slots)
			if err = w.play(script); err == nil {
				err = w.drain()
			}
			w.bed.Kill()
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// world is an engine and what is known about it. Topics are a and b, with partitions in one set of journals; each has a
// group in every mode that begins before the first message.
type world struct {
	t      *testing.T
	bed    *enginetest.Bed
	logs   []*modelLog
	groups []*modelGroup
	pub    *publisher
	tokens uint64
	live   []*modelConsumer
	names  int
}

// modelLog is what was acknowledged to producers in one partition.
type modelLog struct {
	topic   string
	index   int32
	entries []core.Entry // Base and Count; SeqLow is the token
	end     core.Offset
}

var modelTopics = map[string]int32{"a": 3, "b": 2}

func newWorld(t *testing.T, slots int) *world {
	w := &world{t: t}
	w.bed = enginetest.New(t, func(c *engine.Config) { c.Slots = slots })
	for _, topic := range []string{"a", "b"} {
		for i := range modelTopics[topic] {
			w.logs = append(w.logs, &modelLog{topic: topic, index: i})
		}
		for _, mode := range []core.Mode{core.Exclusive, core.Failover, core.Shared} {
			g := &modelGroup{topic: topic, name: mode.String(), mode: mode}
			for _, l := range w.logs {
				if l.topic == topic {
					g.parts = append(g.parts, &modelPart{log: l, acked: map[core.Offset]bool{}, saved: map[core.Offset]bool{}})
				}
			}
			w.groups = append(w.groups, g)
			begin(t, w.topic(topic), g.name, engine.Earliest)
		}
	}
	w.pub = newPublisher(w.bed.Engine)
	return w
}

func (w *world) topic(name string) *engine.Topic { return w.bed.Topic(w.t, name, modelTopics[name]) }

func (w *world) group(g *modelGroup) *engine.Group {
	eg, err := w.topic(g.topic).Group(g.name)
	if err != nil {
		w.t.Fatal(err)
	}
	return eg
}

func (w *world) play(script []step) error {
	for i, s := range script {
		err := w.step(s)
		if err == nil {
			err = w.settle()
		}
		if err != nil {
			return fmt.Errorf("step %d %v: %w", i, s, err)
		}
	}
	return nil
}

// settle lets everything come to rest and looks at it.
func (w *world) settle() error {
	time.Sleep(5 * time.Millisecond) // longer than the commit window
	synctest.Wait()
	if err := w.receipts(); err != nil {
		return err
	}
	for _, g := range w.groups {
		if err := g.observe(); err != nil {
			return fmt.Errorf("group %s of %s: %w", g.name, g.topic, err)
		}
		if err := g.quiet(); err != nil {
			return fmt.Errorf("group %s of %s: %w", g.name, g.topic, err)
		}
	}
	return nil
}

func (w *world) step(s step) error {
	switch s.op {
	case "publish":
		w.publish(w.logs[s.a%len(w.logs)], s.n, int32(1+s.b%3))
	case "join":
		return w.join(w.groups[s.a%len(w.groups)], s.b%2, s.n)
	case "tick":
		time.Sleep(1500 * time.Millisecond) // a snapshot and a tick at least
		synctest.Wait()
		for _, g := range w.groups {
			g.save()
		}
	case "restart":
		w.down(w.bed.Kill)
		return w.up(true)
	case "crash":
		w.publish(w.logs[s.a%len(w.logs)], s.n, 1) // some are on their way
		w.bed.Meta.OnApply(func([]meta.Write) error { return errors.New("killed") })
		w.down(w.bed.Kill)
		w.bed.Meta.OnApply(nil)
		return w.up(false)
	case "fail":
		w.bed.Journals.OnAppend(func(string, []byte) error { return errors.New("disk on fire") })
		w.publish(w.logs[s.a%len(w.logs)], s.n, 2)
		time.Sleep(5 * time.Millisecond)
		w.bed.Journals.OnAppend(nil)
		w.down(w.bed.Kill)
		return w.up(true)
	default:
		if len(w.live) > 0 {
			w.consumerStep(w.live[s.a%len(w.live)], s)
		}
	}
	return nil
}

// consumerStep does something with a consumer and, mostly, one of the entries that it holds.
func (w *world) consumerStep(c *modelConsumer, s step) {
	switch s.op {
	case "leave":
		w.leave(c)
		return
	case "permit":
		c.permits += int64(s.n)
		c.Permit(s.n)
		return
	case "nackAll":
		c.nackAll()
		return
	}
	if len(c.held) == 0 {
		return
	}
	h := c.held[s.b%len(c.held)]
	switch s.op {
	case "ack":
		c.ack(h, core.Range{From: h.base, To: h.base + core.Offset(h.count)})
	case "ackPart":
		at := h.base + core.Offset(s.n)%core.Offset(h.count)
		c.ack(h, core.Range{From: at, To: at + 1})
	case "through":
		c.through(h)
	case "nack":
		c.nack(h)
	}
}

func (w *world) publish(l *modelLog, n int, count int32) {
	for range n {
		w.tokens++
		e := message("k", fmt.Sprint(w.tokens))
		e.Count, e.SeqLow = count, int64(w.tokens)
		// A refusal means that a journal has failed: no receipt follows.
		_ = w.pub.Publish(w.topic(l.topic).Partition(l.index), e, w.tokens<<8|uint64(count))
	}
}

// receipts notes what is durable. I2: dense from 0.
func (w *world) receipts() error {
	for {
		select {
		case r := <-w.pub.receipts:
			if r.Err != nil {
				continue
			}
			for _, l := range w.logs {
				if l.topic != r.Partition.Topic().Name().Name || l.index != r.Partition.Index() {
					continue
				}
				if r.Base != l.end {
					return fmt.Errorf("%s/%d: offset %d is acknowledged, want %d", l.topic, l.index, r.Base, l.end)
				}
				e := core.Entry{Base: r.Base, Count: int32(r.Token & 0xff), SeqLow: int64(r.Token >> 8)}
				l.entries, l.end = append(l.entries, e), e.End()
			}
		default:
			return nil
		}
	}
}

func (w *world) join(g *modelGroup, priority, permits int) error {
	w.names++
	c := &modelConsumer{group: g, sink: &modelSink{g: g}}
	c.sink.c = c
	var err error
	c.Consumer, err = w.group(g).Join(w.t.Context(), engine.Member{
		Protocol: "pulsar", Name: fmt.Sprint("c", w.names%5, "-", w.names), Priority: priority, Mode: g.mode, Sink: c.sink,
	})
	if g.mode == core.Exclusive && len(g.members) > 0 {
		if !errors.Is(err, core.ErrBusy) {
			return fmt.Errorf("a second exclusive consumer: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if g.mode == core.Exclusive {
		g.activate(c)
	}
	g.members = append(g.members, c)
	w.live = append(w.live, c)
	c.permits = int64(permits)
	c.Permit(permits)
	return nil
}
