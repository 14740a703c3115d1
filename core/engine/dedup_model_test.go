package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta"
)

// I1, I7 and views over random lives: producers send, and send again from anywhere; the engine restarts, crashes, loses
// its disk, takes checkpoints. After each step every view is what a pass over the whole journal makes of it.
func TestI7_DuplicatesOverWholeLives(t *testing.T) {
	ops := []string{"send", "send", "send", "resend", "resend", "restart", "crash", "fail", "noCheckpoint", "hours", "switch"}
	one := rapid.Custom(func(t *rapid.T) step {
		small := rapid.IntRange(0, 11)
		return step{rapid.SampledFrom(ops).Draw(t, "op"), small.Draw(t, "a"), small.Draw(t, "b"), rapid.IntRange(1, 8).Draw(t, "n")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		slots, script := rapid.IntRange(1, 3).Draw(rt, "slots"), rapid.SliceOfN(one, 1, 40).Draw(rt, "steps")
		var err error
		synctest.Test(t, func(t *testing.T) {
			l := newLives(t, slots)
			err = l.play(script)
			l.bed.Kill()
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// lives is an engine with one topic that de-duplicates, and what its producers know.
type lives struct {
	t       *testing.T
	bed     *enginetest.Bed
	pub     *publisher
	on      bool
	sources map[modelSource]*modelSequence
	waiting []modelSend // by token; they have no receipt yet
}

// modelSource writes to one partition, in the name of another one's handle maybe.
type modelSource struct {
	part, handle int32
	name         string
}

// modelSequence is a producer that numbers from 0 and sends again, before anything new, what has no receipt.
type modelSequence struct {
	next   int64
	acked  int64 // the first without a receipt
	unique int64 // from here on nothing may be stored twice
	lost   bool  // the engine has ended since it sent something
}

type modelSend struct {
	of  modelSource
	seq int64
}

func newLives(t *testing.T, slots int) *lives {
	l := &lives{t: t, on: true, sources: map[modelSource]*modelSequence{}}
	l.bed = enginetest.New(t, func(c *engine.Config) { c.Slots, c.ViewBytes, c.TrimFloor = slots, 700, 1000*time.Hour })
	l.up()
	return l
}

func (l *lives) up() {
	l.pub = newPublisher(l.bed.Engine)
	l.waiting = nil
	declare(l.t, l.bed, "event", engine.TopicSpec{Partitions: 3, Deduplicate: l.on})
}

func (l *lives) topic() *engine.Topic { return l.bed.Topic(l.t, "event", 3) }

func (l *lives) play(script []step) error {
	for i, s := range script {
		l.step(s)
		l.rest()
		err := l.receipts()
		if err == nil {
			err = l.bed.Engine.CheckViews()
		}
		if err == nil {
			err = l.lastSequences()
		}
		if err == nil {
			err = l.stored()
		}
		if err != nil {
			return fmt.Errorf("step %d %v: %w", i, s, err)
		}
	}
	return nil
}

func (l *lives) rest() {
	time.Sleep(5 * time.Millisecond) // longer than the commit window
	synctest.Wait()
}

func (l *lives) step(s step) {
	of := modelSource{int32(s.a % 3), int32(s.b % 2), string(rune('p' + s.b%3))}
	switch s.op {
	case "send":
		l.send(of, s.n)
	case "resend": // what has its receipt, which got lost on the way
		q := l.source(of)
		for seq := max(0, q.acked-int64(s.n)); seq < q.next; seq++ {
			l.publish(of, seq)
		}
		q.lost = false
	case "restart":
		l.down()
	case "crash":
		l.send(of, s.n)
		l.bed.Meta.OnApply(func([]meta.Write) error { return errors.New("killed") })
		l.down()
	case "fail":
		l.bed.Journals.OnAppend(func(string, []byte) error { return errors.New("disk on fire") })
		l.send(of, s.n)
		l.rest()
		l.bed.Journals.OnAppend(nil)
		l.down()
	case "noCheckpoint":
		fail := errors.New("disk full")
		if s.n%2 == 0 {
			fail = nil
		}
		l.bed.Journals.OnCheckpoint(func(string, string) error { return fail })
	case "hours":
		time.Sleep(time.Duration(s.n) * time.Hour)
		l.anew()
	case "switch":
		l.on = !l.on
		declare(l.t, l.bed, "event", engine.TopicSpec{Partitions: 3, Deduplicate: l.on})
		l.anew()
	}
}

// down ends the engine and starts it again. Nobody gets the receipts of what was still on its way.
func (l *lives) down() {
	l.bed.Kill()
	l.bed.Meta.OnApply(nil)
	l.bed.Start(l.t)
	l.up()
	for _, q := range l.sources {
		q.lost = true
	}
}

// anew says that what was sent so far may be stored again, if it is sent again.
func (l *lives) anew() {
	for _, q := range l.sources {
		q.unique = q.next
	}
}

func (l *lives) source(of modelSource) *modelSequence {
	if l.sources[of] == nil {
		l.sources[of] = &modelSequence{}
	}
	return l.sources[of]
}

func (l *lives) send(of modelSource, n int) {
	q := l.source(of)
	if q.lost {
		for seq := q.acked; seq < q.next; seq++ {
			l.publish(of, seq)
		}
		q.lost = false
	}
	for range n {
		l.publish(of, q.next)
		q.next++
	}
	if !l.on {
		q.unique = q.next
	}
}

func (l *lives) publish(of modelSource, seq int64) {
	token := uint64(len(l.waiting))
	if l.pub.Publish(l.topic().Partition(of.part), sequenced(of.name, of.handle, seq), token) == nil {
		l.waiting = append(l.waiting, modelSend{of, seq})
	}
}

// receipts: each send has exactly one, and those of one partition come in the order of sending.
func (l *lives) receipts() error {
	last := map[int32]int{}
	n := 0
	for ; len(l.pub.receipts) > 0; n++ {
		r := <-l.pub.receipts
		s := l.waiting[r.Token]
		if at, ok := last[s.of.part]; ok && int(r.Token) <= at {
			return fmt.Errorf("receipt %d of partition %d after %d", r.Token, s.of.part, at)
		}
		last[s.of.part] = int(r.Token)
		if r.Err != nil {
			return fmt.Errorf("%+v: %w", s, r.Err)
		}
		q := l.source(s.of)
		if !r.Duplicate && s.seq < q.acked && s.seq >= q.unique {
			return fmt.Errorf("%+v is stored twice", s)
		}
		q.acked = max(q.acked, s.seq+1)
	}
	if n != len(l.waiting) {
		return fmt.Errorf("%d receipts of %d", n, len(l.waiting))
	}
	l.waiting = l.waiting[:0]
	return nil
}

// lastSequences: a producer that returns is told what it has receipts for, and no number that it has not used.
func (l *lives) lastSequences() error {
	for of, q := range l.sources {
		got, end := l.topic().LastSequence(of.name, of.handle), int64(0)
		for i := range int32(3) {
			end = max(end, l.source(modelSource{i, of.handle, of.name}).next)
		}
		switch {
		case !l.on && got != -1:
			return fmt.Errorf("last sequence %d without de-duplication", got)
		case got >= end || l.on && q.acked > q.unique && got < q.acked-1:
			return fmt.Errorf("last sequence of %+v is %d; it has receipts up to %d, and %d is unused", of, got, q.acked-1, end)
		}
	}
	return nil
}

// stored: everything with a receipt is there, and once.
func (l *lives) stored() error {
	found := map[modelSend]int{}
	for i := range int32(3) {
		p := l.topic().Partition(i)
		for from, end := p.Bounds(); from < end; {
			es, err := p.Read(l.t.Context(), from, 1000, 1<<20)
			if err != nil {
				return err
			}
			for _, e := range es {
				found[modelSend{modelSource{i, e.Handle, string(e.Producer)}, e.SeqLow}]++
				from = e.End()
			}
		}
	}
	for of, q := range l.sources {
		for seq := range q.next {
			n := found[modelSend{of, seq}]
			if n == 0 && seq < q.acked || n > 1 && seq >= q.unique {
				return fmt.Errorf("%+v: sequence %d, acknowledged up to %d, is stored %d times", of, seq, q.acked-1, n)
			}
		}
	}
	return nil
}
