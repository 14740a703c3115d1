package engine_test

import (
	"context"
	"fmt"

	"isthmus/core"
)

// What the model asks the engine that is more than what can be read: views, backlogs, offsets by time, placement.

// ask holds what the topic says of itself against what is known of it.
func (t *logTopic) ask(w *logWorld) error {
	topic := w.topic(t)
	for _, key := range []string{"k", "another"} { // also when the topic has grown, or was restarted
		n := max(1, len(t.parts))
		want := int32(core.Murmur3_32([]byte(key))&0x7fffffff) % int32(n)
		if got := topic.Place([]byte(key), true, -1); got != want {
			return fmt.Errorf("key %s belongs to partition %d of %d, not to %d", key, got, n, want)
		}
		if got := topic.Place([]byte(key), true, 0); t.spec.ByKey && got != want {
			return fmt.Errorf("key %s is placed in partition %d of %d, as the client chose, not in %d", key, got, n, want)
		}
	}
	for _, g := range t.groups {
		if err := g.askBacklog(w); err != nil {
			return fmt.Errorf("group %v: %w", g.mode, err)
		}
	}
	for i, p := range t.parts {
		if err := p.askTimes(w, t); err != nil {
			return fmt.Errorf("partition %d: %w", i, err)
		}
	}
	return nil
}

// askBacklog: the group says that what it has not acknowledged is before it, and nothing else. What is gone a reset may have
// gone back to: nobody can acknowledge it, and it counts until something behind it is read. What a TTL has ended in the middle
// nobody tells the model.
func (g *logGroup) askBacklog(w *logWorld) error {
	if g.topic.spec.Policy.TTL > 0 {
		return nil
	}
	for i, have := range w.groupOf(g).Info().Parts {
		p, place := g.topic.parts[i], g.places[i]
		from := max(place.mark, p.first)
		most, gone := p.end-from, core.Offset(0)
		for _, x := range p.there {
			_, acked := place.acked[x.base]
			switch {
			case x.base < from:
			case acked:
				most -= core.Offset(x.count)
			case x.gone:
				gone += core.Offset(x.count)
			}
		}
		if have.Backlog > most || have.Backlog < most-gone {
			return fmt.Errorf("partition %d: its backlog is said to be %d, and is %d, of which %d are gone", i, have.Backlog, most, gone)
		}
	}
	return nil
}

// askTimes: the offset of a time lies behind all that is older and before all that is not. Each step asks for the time of another
// entry.
func (p *logPart) askTimes(w *logWorld, t *logTopic) error {
	if len(p.there) == 0 {
		return nil
	}
	w.asked++
	ms := p.there[w.asked%len(p.there)].commit
	at, err := w.topic(t).Partition(p.index).OffsetAt(context.Background(), ms)
	if err != nil {
		return err
	}
	for _, x := range p.there {
		switch {
		case x.gone || x.base < p.first:
		case x.base < at && x.commit >= ms && p.mayGo(t, x) != nil: // what was thinned away may yet be in memory
			return fmt.Errorf("offset %d is said to be the first at a time, and offset %d is as young", at, x.base)
		case x.base >= at && x.commit < ms:
			return fmt.Errorf("offset %d is said to be the first at a time, and offset %d is older", at, x.base)
		}
	}
	return nil
}
