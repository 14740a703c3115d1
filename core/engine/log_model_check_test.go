package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
)

// What the model holds an engine's logs against.

// check reads everything that a topic has, and looks at what its groups got.
func (t *logTopic) check(w *logWorld) error {
	topic := w.topic(t)
	for _, g := range t.groups { // what was there may be gone again
		if err := g.receive(w); err != nil {
			return fmt.Errorf("group %v: %w", g.mode, err)
		}
	}
	for i, p := range t.parts {
		if err := p.check(w, t, topic.Partition(int32(i))); err != nil {
			return fmt.Errorf("partition %d: %w", i, err)
		}
	}
	for _, g := range t.groups {
		if err := g.check(w); err != nil {
			return fmt.Errorf("group %v: %w", g.mode, err)
		}
	}
	return nil
}

// check reads a partition. What is there is what was sent, once, in order and without holes; what is not there any more may
// be gone.
func (p *logPart) check(w *logWorld, t *logTopic, part *engine.Partition) error {
	first, end := part.Bounds()
	switch {
	case first < p.first && !w.crash:
		return fmt.Errorf("begins at %d, and began at %d", first, p.first)
	case first < p.emptied:
		return fmt.Errorf("begins at %d, and was emptied up to %d", first, p.emptied)
	case end < p.end:
		return fmt.Errorf("ends at %d, and offsets below %d were acknowledged", end, p.end)
	}
	p.first, p.end = first, end
	now := map[core.Offset]bool{}
	last := uint64(0)
	for at := first; at < end; {
		es, err := part.Read(context.Background(), at, 1000, 1<<20)
		if err != nil {
			return err
		}
		if len(es) == 0 {
			break
		}
		for i := range es {
			x, err := w.read(p, &es[i])
			if err != nil {
				return fmt.Errorf("offset %d: %w", es[i].Base, err)
			}
			if x.due == 0 && x.token < last {
				return fmt.Errorf("publish %d comes after %d", x.token, last)
			}
			if x.due == 0 {
				last = x.token
			}
			now[x.base], x.gone, at = true, false, x.end()
		}
	}
	return p.compare(w, t, now)
}

// read finds what an entry is.
func (w *logWorld) read(p *logPart, e *core.Entry) (*logSent, error) {
	x := w.sent[uint64(e.SeqLow)]
	switch {
	case x == nil || x.part != p:
		return nil, fmt.Errorf("publish %d was never made here, or was lost", e.SeqLow)
	case x.base >= 0 && x.base != e.Base:
		return nil, fmt.Errorf("publish %d is at %d, too", x.token, x.base)
	case e.Count != x.count || string(e.Data) != string(message("k", x.body()).Data):
		return nil, fmt.Errorf("other bytes than publish %d had", x.token)
	case !x.half && min(e.Commit, time.Now().UnixMilli()) < x.due:
		return nil, fmt.Errorf("publish %d came early: due %d, stored %d", x.token, x.due, e.Commit)
	case x.half && x.wish != wantedIn:
		return nil, fmt.Errorf("publish %d was not committed", x.token)
	case x.wish == wantedOut:
		return nil, fmt.Errorf("publish %d was taken back", x.token)
	}
	if x.base, x.commit = e.Base, e.Commit; !slices.Contains(p.there, x) {
		p.there = append(p.there, x)
	}
	return x, nil
}

// compare judges what was there before, or should be.
func (p *logPart) compare(w *logWorld, t *logTopic, now map[core.Offset]bool) error {
	slices.SortFunc(p.there, func(a, b *logSent) int { return cmp.Compare(a.base, b.base) })
	next := core.Offset(0)
	for i, x := range p.there {
		if x.base != next && !(i == 0 && next < p.first) {
			return fmt.Errorf("offset %d follows, want %d", x.base, next)
		}
		if next = x.end(); !now[x.base] && !x.gone {
			if err := p.mayGo(t, x); err != nil {
				return fmt.Errorf("publish %d at offset %d is gone: %w", x.token, x.base, err)
			}
			x.gone = true
		}
	}
	if next < p.end {
		return fmt.Errorf("nothing at offset %d, end %d", next, p.end)
	}
	for token, x := range w.sent {
		switch {
		case x.part != p:
		case x.told == heardOf && x.due == 0 && x.base < 0 && !x.resent:
			return fmt.Errorf("publish %d was acknowledged and is not there", token)
		case x.told != heardOf && x.base < 0:
			delete(w.sent, token) // it never became durable, and must never come up
		}
	}
	return nil
}

// mayGo tells why a message may not be gone.
func (p *logPart) mayGo(t *logTopic, x *logSent) error {
	if x.end() <= p.emptied || x.loose {
		return nil
	}
	low := p.end
	for _, g := range t.groups {
		place := g.places[p.index]
		if low = min(low, place.reached()); !place.passed(x) && !g.lostTo(place, x) {
			return fmt.Errorf("group %v has not acknowledged it", g.mode)
		}
	}
	keep := t.spec.Policy.Retention
	if keep.Size == 0 && x.age() < max(keep.Age, modelFloor) {
		return fmt.Errorf("it is %v old", x.age())
	}
	if left := p.weight(x.end()) - p.weight(low); keep.Size > 0 && left+2*modelMarks+512 < int(keep.Size)/len(t.parts) {
		return fmt.Errorf("only %d bytes of what was consumed are left", left)
	}
	return nil
}

// parkedInTime tells what is due, or was wantedIn, and did not come.
func (w *logWorld) parkedInTime() error {
	if w.disk.full.Load() || time.Since(w.disk.since) < diskSlow {
		return nil // it has to wait for room
	}
	for _, x := range w.sent {
		late := time.Since(w.up) > parkedSlow && (x.half || time.Since(time.UnixMilli(x.due)) > parkedSlow)
		if x.due == 0 || x.base >= 0 || x.told != heardOf || !late {
			continue
		}
		if x.half && x.decided == wantedIn || !x.half && x.wish == unsaid {
			return fmt.Errorf("publish %d was due %v ago and did not come", x.token, time.Since(time.UnixMilli(x.due)))
		}
	}
	return nil
}

// logGroup is a durable group of a topic, with one consumer that takes all there is.
type logGroup struct {
	mode     core.Mode
	topic    *logTopic
	places   []*logPlace // by partition
	consumer *engine.Consumer
	resetAt  time.Time

	news []logGot // to be looked at

	mu  sync.Mutex
	got []logGot // since then
}

type logGot struct {
	d  engine.Delivery
	at time.Time
}

// logPlace is what a group has done with a partition. Keys are bases of entries.
type logPlace struct {
	acked   map[core.Offset]time.Time // when
	held    map[core.Offset]*logSent  // by the consumer
	mark    core.Offset
	skipped core.Offset // an operator passed over what lies below
}

func newLogPlace() *logPlace {
	return &logPlace{acked: map[core.Offset]time.Time{}, held: map[core.Offset]*logSent{}}
}

func (l *logPlace) ack(x *logSent) {
	l.acked[x.base] = time.Now()
	delete(l.held, x.base)
}

// reached is beyond what was acknowledged last: what lies between may be thinned.
func (l *logPlace) reached() core.Offset {
	at := l.mark
	for base := range l.acked {
		at = max(at, base+1)
	}
	return at
}

func (l *logPlace) passed(x *logSent) bool {
	_, acked := l.acked[x.base]
	return acked || x.end() <= l.mark
}

func (g *logGroup) join(topic *engine.Topic) error {
	eg, err := topic.Group(g.mode.String())
	if err != nil {
		return err
	}
	for _, place := range g.places {
		clear(place.held)
	}
	g.got = nil
	g.consumer, err = eg.Join(context.Background(), engine.Member{Protocol: "pulsar", Name: "c", Mode: g.mode, Sink: g})
	if err == nil {
		g.consumer.Permit(1 << 30)
	}
	return err
}

// Deliver is called by runners.
func (g *logGroup) Deliver(ds []engine.Delivery) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range ds {
		g.got = append(g.got, logGot{d, time.Now()})
	}
}

func (g *logGroup) Active(int32, bool) {}
func (g *logGroup) Detached(error)     {}

// receive holds what was delivered against what was sent.
func (g *logGroup) receive(w *logWorld) error {
	g.mu.Lock()
	g.news, g.got = g.got, nil
	g.mu.Unlock()
	for i := range g.news {
		d := &g.news[i].d
		if _, err := w.read(g.topic.parts[d.Partition.Index()], &d.Entry); err != nil {
			return fmt.Errorf("partition %d, offset %d: %w", d.Partition.Index(), d.Entry.Base, err)
		}
	}
	return nil
}

// check looks at what the group got, and at its marks. I6, I7: nothing that it has acknowledged comes again, and all else is
// in the hands of its consumer, unless a policy took it.
func (g *logGroup) check(w *logWorld) error {
	for _, x := range g.news {
		if err := g.delivered(w, x); err != nil {
			return fmt.Errorf("partition %d, offset %d: %w", x.d.Partition.Index(), x.d.Entry.Base, err)
		}
	}
	eg := w.groupOf(g)
	for i, p := range g.topic.parts {
		place, mark := g.places[i], eg.Mark(int32(i))
		if mark < place.mark && !w.crash {
			return fmt.Errorf("partition %d: the mark goes back from %d to %d", i, place.mark, mark)
		}
		if mark > p.end {
			return fmt.Errorf("partition %d: the mark is %d, the log ends at %d", i, mark, p.end)
		}
		place.mark = mark
		for _, x := range p.there {
			if err := g.judge(w, place, x); err != nil {
				return fmt.Errorf("partition %d, offset %d: %w", i, x.base, err)
			}
		}
	}
	return g.overdue(w)
}

func (g *logGroup) delivered(w *logWorld, got logGot) error {
	e, place := &got.d.Entry, g.places[got.d.Partition.Index()]
	x := w.sent[uint64(e.SeqLow)]
	if at, acked := place.acked[x.base]; acked {
		if !w.crash || at.Before(w.down.Add(-ackLag)) {
			return fmt.Errorf("acknowledged %v ago, and it comes again", time.Since(at))
		}
		delete(place.acked, x.base)
	}
	if place.held[x.base] != nil {
		return errors.New("the consumer has it, and it comes again")
	}
	if ttl := g.topic.spec.Policy.TTL; ttl > 0 && got.at.Sub(time.UnixMilli(x.commit)) > ttl+time.Millisecond {
		return fmt.Errorf("delivered when it was %v old", got.at.Sub(time.UnixMilli(x.commit)))
	}
	place.held[x.base] = x
	return nil
}

// judge holds one message against what the group did with it.
func (g *logGroup) judge(w *logWorld, place *logPlace, x *logSent) error {
	_, acked := place.acked[x.base]
	switch {
	case acked:
		return nil
	case w.crash && w.down.Sub(g.resetAt) < ackLag && place.held[x.base] == nil: // the reset was lost
		place.acked[x.base] = g.resetAt
		return nil
	case x.end() > place.mark && (place.held[x.base] != nil || x.gone):
		return nil
	case x.gone: // a reset went back to where nothing is left
	case !g.lostTo(place, x):
		return fmt.Errorf("publish %d, %v old, is lost for the group, whose mark is %d", x.token, x.age(), place.mark)
	}
	if x.end() <= place.mark {
		place.ack(x)
	}
	return nil
}

// lostTo tells whether a policy or an operator may have taken a message from the group.
func (g *logGroup) lostTo(place *logPlace, x *logSent) bool {
	pol := g.topic.spec.Policy
	drop := pol.Backlog.WhenFull == engine.DropOldest
	return pol.TTL > 0 && x.age() >= pol.TTL || x.end() <= x.part.emptied || x.end() <= place.skipped ||
		drop && pol.Backlog.Age > 0 && x.age() >= pol.Backlog.Age ||
		drop && pol.Backlog.Size > 0 && g.weight()+g.topic.vague() > int(pol.Backlog.Size)*9/10
}

func (g *logGroup) weight() (sum int) {
	for i, p := range g.topic.parts {
		sum += p.weight(g.places[i].mark)
	}
	return sum
}

// bases are the offsets of entries in order.
func bases(m map[core.Offset]*logSent) []core.Offset { return slices.Sorted(maps.Keys(m)) }
