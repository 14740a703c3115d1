package engine_test

import (
	"errors"
	"fmt"
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
var parkedOperations = []string{
	"park", "park", "park", "half", "half", "commit", "commit", "rollback", "cancel", "publish", "wait", "wait",
	"restart", "down", "crash", "fail", "delete",
}

var parkedWaits = []time.Duration{time.Millisecond, 40 * time.Millisecond, time.Second, 7 * time.Second, 40 * time.Second, 3 * time.Minute}

func parkedSteps() *rapid.Generator[[]step] {
	one := rapid.Custom(func(t *rapid.T) step {
		small := rapid.IntRange(0, 11)
		return step{rapid.SampledFrom(parkedOperations).Draw(t, "op"), small.Draw(t, "a"), small.Draw(t, "b"), rapid.IntRange(1, 6).Draw(t, "n")}
	})
	return rapid.SliceOfN(one, 1, 60)
}

// I1, I2, I7 of parked messages over whole lives of an engine, in virtual time: parked, committed, rolled back, cancelled,
// released, with restarts, crashes and failures of the disk in the middle. Each is there once, none early, none late while
// the node is up, none that was taken back.
func TestI7_ModelOfParkedMessages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := parkedSteps().Draw(rt, "steps")
		small := rapid.Bool().Draw(rt, "small cache")
		var err error
		synctest.Test(t, func(t *testing.T) {
			w := &parkedWorld{t: t, known: map[uint64]*modelParked{}, seen: map[string]core.Offset{}}
			w.bed = enginetest.New(t, func(c *engine.Config) {
				c.Parked.MaxChecks = 2
				if small {
					c.TailBytes = 1
				}
			})
			w.up()
			if err = w.play(script); err == nil {
				time.Sleep(10 * time.Minute) // everything is due, and silence has ended all half messages
				err = w.settle()
			}
			if err == nil {
				err = w.nothingIsLeft()
			}
			if err == nil {
				err = w.bed.Engine.CheckViews()
			}
			w.bed.Kill()
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// modelParked is what is known about one message.
type modelParked struct {
	token  uint64
	topic  string
	part   int32
	id     engine.ParkedID
	half   bool
	wait   time.Duration // of a half message, after the commit
	due    int64         // unix ms
	check  int64         // when it is to be asked about first
	asked  int
	gone   bool // taken back, rolled back, or its topic was deleted
	stored bool
	there  int // how often it is in the log
}

type parkedWorld struct {
	t      *testing.T
	bed    *enginetest.Bed
	pub    *publisher
	tokens uint64
	known  map[uint64]*modelParked // by token
	live   []*modelParked          // parked, as far as is known
	seen   map[string]core.Offset  // by partition, how far it was read
	since  int64                   // the node is up since
	wrong  error

	checks struct {
		sync.Mutex
		made []check
	}
}

func (w *parkedWorld) up() {
	w.since = w.bed.Engine.In(0)
	w.pub = newPublisher(w.bed.Engine)
	w.bed.Engine.OnCheck(core.FormatNeutral, func(m *engine.ParkedMessage) bool {
		w.checks.Lock()
		defer w.checks.Unlock()
		w.checks.made = append(w.checks.made, check{uint64(m.Entry.SeqLow), time.Now().UnixMilli()})
		return true
	})
}

// check is a question about a half message.
type check struct {
	token uint64
	at    int64
}

// asked notes the questions, before any decision that came after them.
func (w *parkedWorld) asked() {
	w.checks.Lock()
	defer w.checks.Unlock()
	for _, c := range w.checks.made {
		switch k := w.known[c.token]; {
		case k == nil || !k.half || k.gone || k.there > 0:
			w.wrong = fmt.Errorf("asked about %+v", k)
		case c.at < k.check:
			w.wrong = fmt.Errorf("asked %d ms early about %+v", k.check-c.at, k)
		default:
			k.asked++
			k.check = c.at + 30_000
		}
	}
	w.checks.made = nil
}

func (w *parkedWorld) play(script []step) error {
	for i, s := range script {
		w.step(s)
		if err := w.settle(); err != nil {
			return fmt.Errorf("step %d %v: %w", i, s, err)
		}
		if i%7 == 0 {
			if err := w.bed.Engine.CheckViews(); err != nil {
				return fmt.Errorf("step %d %v: %w", i, s, err)
			}
		}
	}
	return nil
}

func (w *parkedWorld) step(s step) {
	switch s.op {
	case "park", "half", "publish":
		for range s.n {
			w.publish(s)
		}
	case "wait":
		time.Sleep(parkedWaits[s.a%len(parkedWaits)])
	case "restart", "down":
		w.bed.Stop(w.t)
		if s.op == "down" {
			time.Sleep(parkedWaits[s.a%len(parkedWaits)])
		}
		w.bed.Start(w.t)
		w.receipts()
		w.up()
	case "crash":
		w.publish(step{op: "park", a: s.a, b: s.b})
		w.bed.Meta.OnApply(func([]meta.Write) error { return errors.New("killed") })
		w.bed.Kill()
		w.bed.Meta.OnApply(nil)
		w.bed.Start(w.t)
		w.receipts()
		w.up()
	case "fail":
		w.bed.Journals.OnAppend(func(string, []byte) error { return errors.New("disk on fire") })
		w.publish(step{op: "park", a: s.a, b: s.b})
		time.Sleep(5 * time.Millisecond)
		w.bed.Journals.OnAppend(nil)
		w.bed.Kill()
		w.bed.Start(w.t)
		w.receipts()
		w.up()
	case "delete":
		if s.a == 0 {
			w.remove()
		}
	default:
		w.decide(s)
	}
}

func (w *parkedWorld) topic(name string) *engine.Topic { return w.bed.Topic(w.t, name, 2) }

func (w *parkedWorld) publish(s step) {
	w.tokens++
	k := &modelParked{token: w.tokens, topic: []string{"a", "b"}[s.a%2], part: int32(s.b % 2), due: w.bed.Engine.In(0)}
	e := message("k", fmt.Sprint(k.token))
	e.SeqLow = int64(k.token)
	part := w.topic(k.topic).Partition(k.part)
	wait := parkedWaits[(s.a+s.b+int(k.token))%len(parkedWaits)]
	var err error
	switch s.op {
	case "publish":
		err = w.pub.Publish(part, e, k.token)
	case "park":
		k.due = w.bed.Engine.In(wait)
		err = w.pub.PublishAt(part, e, k.due, k.token)
	default:
		k.half, k.check = true, w.bed.Engine.In(6*time.Second)
		if s.n%2 == 0 {
			k.wait = wait
		}
		err = w.pub.PublishHalf(part, e, engine.HalfMessage{Check: k.check, Wait: k.wait}, k.token)
	}
	if err == nil {
		w.known[k.token] = k
	}
}

// Tokens of decisions have these bits beside the token of the message.
const (
	committed = 1 << 40
	takenBack = 1 << 41
)

func (w *parkedWorld) decide(s step) {
	if len(w.live) == 0 {
		return
	}
	k := w.live[(s.a*12+s.b)%len(w.live)]
	wrong := (s.op == "cancel") == k.half
	var err error
	switch s.op {
	case "commit":
		err = w.pub.Commit(k.id, k.token|committed)
	case "rollback":
		err = w.pub.Rollback(k.id, k.token|takenBack)
	case "cancel":
		err = w.pub.Cancel(k.id, k.token|takenBack)
	}
	if wrong && !errors.Is(err, engine.ErrNotParked) {
		w.wrong = fmt.Errorf("%s of %+v: %w", s.op, k, err)
	}
	if !wrong && err != nil && !k.gone && k.there == 0 && k.asked < 2 && !(k.due <= w.bed.Engine.In(0) && !k.half) {
		w.wrong = fmt.Errorf("%s of %+v: %w", s.op, k, err)
	}
}

// remove deletes topic b and makes it again. What is parked for it goes with it.
func (w *parkedWorld) remove() {
	name := w.topic("b").Name()
	w.receipts()
	if err := w.bed.Engine.DeleteTopic(name, true); err != nil {
		w.wrong = err
	}
	for _, k := range w.known {
		if k.topic == "b" {
			k.gone = true
		}
	}
	delete(w.seen, "b/0")
	delete(w.seen, "b/1")
}

// receipts notes what became durable.
func (w *parkedWorld) receipts() {
	w.asked()
	for len(w.pub.receipts) > 0 {
		r := <-w.pub.receipts
		if r.Err != nil {
			continue
		}
		k := w.known[r.Token&(committed-1)]
		switch {
		case r.Token&takenBack != 0:
			k.gone = true
		case r.Token&committed != 0:
			k.half = false
			if k.wait > 0 {
				k.id, k.due = r.Parked, 0 // known only by what is read: not before the commit and the wait
			} else {
				k.due = 0
			}
		default:
			k.stored, k.id = true, r.Parked
			if r.Parked != 0 {
				w.live = append(w.live, k)
			}
		}
	}
}

// settle lets everything come to rest and looks at it.
func (w *parkedWorld) settle() error {
	time.Sleep(110 * time.Millisecond) // what is due may be 100 ms late
	synctest.Wait()
	w.receipts()
	for _, topic := range []string{"a", "b"} {
		for i := range int32(2) {
			if err := w.read(topic, i); err != nil {
				return fmt.Errorf("%s/%d: %w", topic, i, err)
			}
		}
	}
	late := w.bed.Engine.In(0) - 105
	for _, k := range w.known {
		switch {
		case k.there > 1:
			return fmt.Errorf("%+v is there %d times", k, k.there)
		case k.stored && !k.half && !k.gone && k.there == 0 && k.wait == 0 && max(k.due, w.since) < late:
			return fmt.Errorf("%+v is not there, up since %d, late before %d", k, w.since, late)
		}
	}
	return w.wrong
}

func (w *parkedWorld) read(topic string, i int32) error {
	key := fmt.Sprint(topic, "/", i)
	es, err := w.topic(topic).Partition(i).Read(w.t.Context(), w.seen[key], 1<<20, 1<<30)
	if err != nil {
		return err
	}
	for _, e := range es {
		k := w.known[uint64(e.SeqLow)]
		if e.Base != w.seen[key] {
			return fmt.Errorf("offset %d comes after %d", e.Base, w.seen[key])
		}
		w.seen[key] = e.End()
		if k == nil || !k.stored || k.topic != topic || k.part != i || k.gone || k.half {
			return fmt.Errorf("offset %d is %+v", e.Base, k)
		}
		if e.Commit < k.due {
			return fmt.Errorf("%+v is %d ms early", k, k.due-e.Commit)
		}
		k.there++
	}
	return nil
}

// nothingIsLeft is called when everything is due and everybody was asked.
func (w *parkedWorld) nothingIsLeft() error {
	for _, k := range w.known {
		if k.stored && !k.gone && !k.half && k.there != 1 {
			return fmt.Errorf("in the end %+v is not there", k)
		}
		if k.stored && k.half && !k.gone && k.asked != 2 {
			return fmt.Errorf("in the end %+v was not asked about twice", k)
		}
	}
	for _, topic := range []string{"a", "b"} {
		for i := range int32(2) {
			if n := w.topic(topic).Partition(i).Parked(); n != 0 {
				return fmt.Errorf("%d are still parked for %s/%d", n, topic, i)
			}
		}
	}
	return nil
}
