package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta"
)

// The frequent ones are there more than once.
var mixedOperations = []string{
	"rest", "publish", "publish", "publish", "publish", "join", "join", "join split", "leave", "permit", "permit",
	"ack", "ack", "ack", "ack all", "ack all", "through", "late ack", "nack", "nack all", "nack later",
	"come", "come", "beat", "go", "pull", "pull", "pull", "pull all", "pull all", "commit", "commit", "commit all", "commit all", "commit beyond",
	"lock", "unlock", "reset", "skip", "restart", "crash", "wait", "wait", "wait long",
}

// Members of several kinds come and go as they like, over whole lives of an engine and in virtual time: they leave with
// messages that they have not acknowledged, fall silent, come back after a restart, ask for what is not theirs, acknowledge
// late. After each step everything comes to rest and is compared with a model of single messages; see mixedPart.
// ACCEPTANCE appendix B, B-1, B-3, B-4; DESIGN I4, I6, I7
func TestS2_28_MembersComeAndGo(t *testing.T) {
	steps := 0
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]core.Mode{core.Exclusive, core.Failover, core.Shared, core.KeyShared}).Draw(rt, "mode")
		slots, grace := rapid.IntRange(1, 3).Draw(rt, "slots"), rapid.SampledFrom([]time.Duration{-1, time.Second, 5 * time.Second}).Draw(rt, "grace")
		one := rapid.Custom(func(t *rapid.T) step {
			small := rapid.IntRange(0, 11)
			return step{rapid.SampledFrom(mixedOperations).Draw(t, "op"), small.Draw(t, "a"), small.Draw(t, "b"), rapid.IntRange(1, 6).Draw(t, "n")}
		})
		script := rapid.SliceOfN(one, 25, 120).Draw(rt, "steps")
		steps += len(script)
		var err error
		synctest.Test(t, func(t *testing.T) {
			w := newMixed(t, mode, slots, grace)
			if err = w.play(script); err == nil {
				err = w.quiet()
			}
			w.bed.Kill()
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
	t.Logf("%d steps", steps)
}

// mixed is a group of members of several kinds and what is known about it.
type mixed struct {
	t         *testing.T
	mode      core.Mode
	grace     time.Duration
	bed       *enginetest.Bed
	g         *engine.Group
	pub       *publisher
	parts     []*mixedPart
	consumers []*mixedConsumer
	pullers   []*mixedPuller // clients that run, whether or not they are members
	names     int

	mu     sync.Mutex
	events []mixedEvent // what consumers were told since the last look, in order
}

const mixedPartitions = 3

func newMixed(t *testing.T, mode core.Mode, slots int, grace time.Duration) *mixed {
	w := &mixed{t: t, mode: mode, grace: grace}
	w.bed = enginetest.New(t, func(c *engine.Config) { c.Slots, c.FailoverGrace = slots, grace })
	for i := range int32(mixedPartitions) {
		w.parts = append(w.parts, &mixedPart{w: w, index: i})
	}
	w.up()
	return w
}

func (w *mixed) up() {
	w.g = begin(w.t, w.bed.Topic(w.t, "event", mixedPartitions), "g", engine.Latest)
	w.pub = newPublisher(w.bed.Engine)
}

func (w *mixed) play(script []step) error {
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

// settle lets everything come to rest, also the copies of cursors, and looks at it.
func (w *mixed) settle() error {
	time.Sleep(300 * time.Millisecond) // of virtual time
	synctest.Wait()
	if err := w.observe(); err != nil {
		return err
	}
	for _, p := range w.parts {
		if err := p.check(); err != nil {
			return fmt.Errorf("partition %d: %w", p.index, err)
		}
	}
	return nil
}

func (w *mixed) step(s step) error {
	p := w.parts[s.a%len(w.parts)]
	switch s.op {
	case "publish":
		for range s.n {
			w.publish(p, s.b+s.n)
		}
	case "join", "join split":
		return w.join(s.n*s.b, s.op == "join split")
	case "come":
		return w.come(s.a)
	case "reset":
		if err := w.g.Reset(p.index, core.Offset(s.b)); err != nil {
			return err
		}
		p.reset(core.Offset(s.b))
	case "skip":
		if err := w.g.Skip(p.index, int64(s.n)); err != nil {
			return err
		}
		p.skip(s.n)
	case "restart", "crash":
		return w.restart(s.op == "crash")
	case "wait":
		time.Sleep(time.Duration(s.n) * time.Second)
	case "wait long":
		time.Sleep(time.Duration(s.n) * 12 * time.Second)
	default:
		if len(w.consumers) > 0 {
			if done, err := w.consumerStep(w.consumers[s.a%len(w.consumers)], s); done {
				return err
			}
		}
		if len(w.pullers) > 0 {
			return w.pullers[s.a%len(w.pullers)].step(w.parts[s.b%len(w.parts)], s)
		}
	}
	return nil
}

func (w *mixed) publish(p *mixedPart, key int) {
	name := fmt.Sprint("k", key%7)
	o := w.pub.publish(w.t, w.g.Topic().Partition(p.index), name, "x")
	if int(o) != len(p.messages) {
		w.t.Fatalf("partition %d: published at %d of %d", p.index, o, len(p.messages))
	}
	p.messages = append(p.messages, mixedMessage{key: name})
}

// join adds a consumer, or one client with a consumer for each partition.
func (w *mixed) join(permits int, split bool) error {
	w.names++
	reads := [][]int32{nil}
	if split {
		reads = [][]int32{{0}, {1}, {2}}
	}
	for _, ps := range reads {
		c := &mixedConsumer{w: w, name: fmt.Sprint("c", w.names*5%7, "-", w.names), reads: ps}
		var err error
		c.Consumer, err = w.g.Join(w.t.Context(), engine.Member{
			Protocol: "pulsar", Name: c.name, Priority: w.names % 2, Mode: w.mode, Partitions: ps, Sink: c,
		})
		if w.mode == core.Exclusive && slices.ContainsFunc(w.consumers, func(x *mixedConsumer) bool { return x.overlaps(c) }) {
			if !errors.Is(err, core.ErrBusy) {
				return fmt.Errorf("a second exclusive consumer: %w", err)
			}
			continue
		}
		if err != nil {
			return err
		}
		w.consumers = append(w.consumers, c)
		w.touched()
		c.permit(permits)
	}
	return nil
}

// come makes a queue-based client a member; it starts where the group stands.
func (w *mixed) come(n int) error {
	if len(w.pullers) == 3 {
		return nil
	}
	w.names++
	u := &mixedPuller{w: w, name: fmt.Sprint("client-", n, "-", w.names)}
	for _, p := range w.parts {
		u.at = append(u.at, w.g.Mark(p.index))
	}
	u.pulled, u.got = make([]time.Time, len(w.parts)), make([]core.Offset, len(w.parts))
	w.pullers = append(w.pullers, u)
	return u.beat()
}

// restart ends the engine and starts it again: consumers are gone, queue-based members presumed alive. A crash forgets what
// was not saved.
func (w *mixed) restart(crash bool) error {
	if crash {
		w.bed.Meta.OnApply(func([]meta.Write) error { return errors.New("killed") })
	}
	for _, c := range w.consumers {
		c.leaving = true
	}
	w.bed.Kill()
	w.bed.Meta.OnApply(nil)
	if err := w.observe(); err != nil {
		return err
	}
	w.consumers, w.events = nil, nil
	w.bed.Start(w.t)
	w.up()
	for _, u := range w.pullers {
		u.gone = u.gone || u.lapsed()
		u.until = time.Now().Add(time.Minute)
		if listed := slices.Contains(w.g.Members(), u.name); !listed && !u.gone && !crash {
			return fmt.Errorf("%s is no member after a restart", u.name)
		} else if !listed { // a crash may have forgotten it
			u.gone = true
		}
	}
	for _, p := range w.parts {
		if err := p.restarted(crash); err != nil {
			return fmt.Errorf("partition %d: %w", p.index, err)
		}
	}
	return nil
}

// quiet: those who are left, and one more if nobody is, take and acknowledge whatever they get; some queue-based members
// are there and never pull. In the end nothing is left, and what comes then does not wait for those who do not pull.
func (w *mixed) quiet() error {
	idle := 0
	for i, u := range w.pullers {
		if u.idle = i%2 == 1; u.idle {
			idle++
		}
	}
	if len(w.consumers) == 0 && idle == len(w.pullers) || w.mode == core.Exclusive {
		for len(w.consumers) > 0 {
			w.leave(w.consumers[0])
		}
		if err := w.join(0, false); err != nil {
			return err
		}
	}
	if len(w.consumers) > 0 && len(w.consumers[0].reads) > 0 { // one that reads all partitions
		if err := w.join(0, false); err != nil && w.mode != core.Exclusive {
			return err
		}
	}
	for range 200 {
		if err := w.turn(); err != nil {
			return fmt.Errorf("quiet: %w", err)
		}
	}
	if err := w.finished(); err != nil {
		return err
	}
	for _, p := range w.parts {
		w.publish(p, int(p.index))
	}
	for range 5 {
		if err := w.turn(); err != nil {
			return fmt.Errorf("after the quiet: %w", err)
		}
	}
	if err := w.finished(); err != nil {
		return fmt.Errorf("after the quiet: %w", err)
	}
	if err := w.restart(false); err != nil {
		return fmt.Errorf("after the quiet: %w", err)
	}
	return nil
}

// turn lets everybody take and acknowledge once, and a second pass.
func (w *mixed) turn() error {
	for _, c := range w.consumers {
		c.ackAll()
	}
	if err := w.settle(); err != nil { // an ack that comes late, after the hand-over, is not seen at once by who pulls
		return err
	}
	for _, u := range w.pullers {
		if err := u.beat(); err != nil {
			return err
		}
		for _, p := range w.parts {
			if u.idle {
				continue
			}
			if err := u.pull(p, 20); err != nil {
				return err
			}
			if err := u.commit(p, u.at[p.index]); err != nil {
				return err
			}
		}
	}
	for _, c := range w.consumers {
		c.permit(max(0, 50-c.permits))
	}
	time.Sleep(400 * time.Millisecond)
	return w.settle()
}

// finished tells whether everything was acknowledged.
func (w *mixed) finished() error {
	for _, p := range w.parts {
		if end := core.Offset(len(p.messages)); w.g.Mark(p.index) != end {
			return fmt.Errorf("partition %d stands at %d of %d, leased to %q: %+v", p.index, w.g.Mark(p.index), end, w.g.Lease(p.index), w.g.Info())
		}
	}
	return nil
}
