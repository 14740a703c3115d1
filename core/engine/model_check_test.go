package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/meta"
)

// modelGroup is what a group must have done.
type modelGroup struct {
	topic, name string
	mode        core.Mode
	parts       []*modelPart
	members     []*modelConsumer

	mu     sync.Mutex
	events []modelEvent // what sinks were told since the last look, in order
}

// modelPart is a group's place in a partition. acked and saved hold offsets.
type modelPart struct {
	log    *modelLog
	acked  map[core.Offset]bool
	saved  map[core.Offset]bool // of acked, what must survive a crash
	sent   core.Offset          // exclusive, failover: what was delivered since the last rewind
	active *modelConsumer
}

type modelConsumer struct {
	*engine.Consumer
	group   *modelGroup
	sink    *modelSink
	permits int64
	held    []modelHeld
}

type modelHeld struct {
	part  int32
	base  core.Offset
	count int32
}

type modelEvent struct {
	c      *modelConsumer
	d      engine.Delivery // Entry.Count 0: a notice
	part   int32
	active bool
}

type modelSink struct {
	g *modelGroup
	c *modelConsumer
}

func (s *modelSink) Deliver(ds []engine.Delivery) {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	for _, d := range ds {
		d.Acked = slices.Clone(d.Acked)
		s.g.events = append(s.g.events, modelEvent{c: s.c, d: d, part: d.Partition.Index()})
	}
}

func (s *modelSink) Active(part int32, active bool) {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.g.events = append(s.g.events, modelEvent{c: s.c, part: part, active: active})
}

func (s *modelSink) Detached(error) {}

// activate makes c the one who receives, from the first message that is not acknowledged.
func (g *modelGroup) activate(c *modelConsumer) {
	for _, p := range g.parts {
		p.active, p.sent = c, 0
	}
}

// observe plays what the sinks were told.
func (g *modelGroup) observe() error {
	g.mu.Lock()
	events := g.events
	g.events = nil
	g.mu.Unlock()
	for _, ev := range events {
		p := g.parts[ev.part]
		if ev.d.Entry.Count == 0 {
			if ev.active {
				p.active, p.sent = ev.c, 0
			} else if p.active == ev.c {
				p.active = nil
			}
			continue
		}
		if err := g.delivered(p, ev); err != nil {
			return fmt.Errorf("partition %d offset %d: %w", ev.part, ev.d.Entry.Base, err)
		}
	}
	return nil
}

func (g *modelGroup) delivered(p *modelPart, ev modelEvent) error {
	e := ev.d.Entry
	i := slices.IndexFunc(p.log.entries, func(x core.Entry) bool { return x.Base == e.Base })
	if i < 0 || p.log.entries[i].Count != e.Count || p.log.entries[i].SeqLow != e.SeqLow {
		return fmt.Errorf("delivered %d messages of publish %d, which nobody published so", e.Count, e.SeqLow)
	}
	left := p.left(e)
	if left == 0 {
		return errors.New("all of it is acknowledged, and it comes again") // I6
	}
	if got := int64(e.Count) - ackedIn(ev.d.Acked); got != left {
		return fmt.Errorf("acked %v, but %d of %d messages are left", ev.d.Acked, left, e.Count)
	}
	if ev.c.permits <= 0 && len(g.parts) == 1 {
		return errors.New("no permit") // I8; several runners may go beyond by one entry each
	}
	ev.c.permits -= left
	if ev.c.permits < -int64(len(g.parts))*3 {
		return fmt.Errorf("%d messages beyond what was permitted", -ev.c.permits)
	}
	if g.mode == core.Shared {
		for _, c := range g.members {
			if c.holds(ev.part, e.Base) {
				return errors.New("it is in somebody's hands") // I6
			}
		}
	} else if err := p.inOrder(ev, e); err != nil {
		return err
	}
	ev.c.held = append(ev.c.held, modelHeld{ev.part, e.Base, e.Count})
	return nil
}

// inOrder. I4: the active consumer gets everything that is not acknowledged, in order.
func (p *modelPart) inOrder(ev modelEvent, e core.Entry) error {
	if ev.c != p.active {
		return errors.New("delivered to one who is not active")
	}
	if next, ok := p.next(); !ok || next.Base != e.Base {
		return fmt.Errorf("want offset %d", next.Base)
	}
	p.sent = e.End()
	return nil
}

// next is the first entry at or after sent that is not acknowledged as a whole.
func (p *modelPart) next() (core.Entry, bool) {
	for _, e := range p.log.entries {
		if e.Base >= p.sent && p.left(e) > 0 {
			return e, true
		}
	}
	return core.Entry{}, false
}

func (p *modelPart) left(e core.Entry) (n int64) {
	for o := e.Base; o < e.End(); o++ {
		if !p.acked[o] {
			n++
		}
	}
	return n
}

func ackedIn(rs []core.Range) (n int64) {
	for _, r := range rs {
		n += r.Len()
	}
	return n
}

// quiet: nothing more will happen, so whoever has a permit must have got what there is. I7
func (g *modelGroup) quiet() error {
	for i, p := range g.parts {
		if g.mode != core.Shared {
			if next, ok := p.next(); ok && p.active != nil && p.active.permits > 0 {
				return fmt.Errorf("partition %d offset %d is not delivered for %d permits", i, next.Base, p.active.permits)
			}
			continue
		}
		for _, e := range p.log.entries {
			if p.left(e) == 0 || slices.ContainsFunc(g.members, func(c *modelConsumer) bool { return c.holds(int32(i), e.Base) }) {
				continue
			}
			for _, c := range g.members {
				if c.permits > 0 {
					return fmt.Errorf("partition %d offset %d is at nobody, and %s has %d permits", i, e.Base, c.Name(), c.permits)
				}
			}
		}
	}
	return nil
}

func (c *modelConsumer) holds(part int32, base core.Offset) bool {
	return slices.ContainsFunc(c.held, func(h modelHeld) bool { return h.part == part && h.base == base })
}

func (c *modelConsumer) drop(which func(modelHeld) bool) { c.held = slices.DeleteFunc(c.held, which) }

func (c *modelConsumer) ack(h modelHeld, r core.Range) {
	p := c.group.parts[h.part]
	for o := r.From; o < r.To; o++ {
		p.acked[o] = true
	}
	c.Ack(h.part, r)
	c.group.forget()
}

func (c *modelConsumer) through(h modelHeld) {
	if c.group.mode != core.Shared {
		p := c.group.parts[h.part]
		for o := range h.base + core.Offset(h.count) {
			p.acked[o] = true
		}
	}
	c.AckThrough(h.part, h.base+core.Offset(h.count))
	c.group.forget()
}

// forget takes out of everybody's hands what is acknowledged by now.
func (g *modelGroup) forget() {
	for _, c := range g.members {
		c.drop(func(h modelHeld) bool { return g.parts[h.part].left(core.Entry{Base: h.base, Count: h.count}) == 0 })
	}
}

func (c *modelConsumer) nack(h modelHeld) {
	p := c.group.parts[h.part]
	switch {
	case c.group.mode == core.Shared:
		c.drop(func(x modelHeld) bool { return x == h })
	case p.active == c && h.base < p.sent:
		p.sent = 0
	}
	c.Nack(h.part, h.base)
}

func (c *modelConsumer) nackAll() {
	if c.group.mode == core.Shared {
		c.held = nil
	}
	for _, p := range c.group.parts {
		if p.active == c {
			p.sent = 0
		}
	}
	c.NackAll()
}

func (w *world) leave(c *modelConsumer) {
	g := c.group
	gone := func(x *modelConsumer) bool { return x == c }
	g.members, w.live = slices.DeleteFunc(g.members, gone), slices.DeleteFunc(w.live, gone)
	for _, p := range g.parts {
		if p.active == c {
			p.active = nil
		}
	}
	c.Leave()
}

func (g *modelGroup) save() {
	for _, p := range g.parts {
		p.saved = maps.Clone(p.acked)
	}
}

// down stops the engine; nobody is connected any more.
func (w *world) down(stop func()) {
	stop()
	w.live = nil
	for _, g := range w.groups {
		g.members, g.events = nil, nil
		for _, p := range g.parts {
			p.active, p.sent = nil, 0
		}
	}
}

// up starts the engine again and compares its logs and cursors with what was promised.
func (w *world) up(inOrder bool) error {
	if err := w.receipts(); err != nil {
		return err
	}
	w.bed.Start(w.t)
	w.pub = newPublisher(w.bed.Engine)
	for _, l := range w.logs {
		if _, next := w.topic(l.topic).Partition(l.index).Bounds(); next != l.end {
			return fmt.Errorf("%s/%d ends at %d after a restart, want %d", l.topic, l.index, next, l.end)
		}
	}
	cursors := map[string]core.Cursor{}
	err := w.bed.Meta.Load(meta.Cursors, func(key string, v []byte) error {
		rec, err := meta.DecodeCursor(v)
		cursors[key[strings.LastIndex(key, "/")+1:]] = rec.Cursor
		return err
	})
	for _, g := range w.groups {
		for i, p := range g.parts {
			cur := cursors[fmt.Sprintf("%s\x00%s\x00%d", g.topic, g.name, i)]
			if err := p.recovered(cur, inOrder); err != nil {
				return fmt.Errorf("group %s of %s/%d: %w", g.name, g.topic, i, err)
			}
		}
	}
	return err
}

// recovered. I6: what was saved stays acknowledged; I7: nothing else is.
func (p *modelPart) recovered(cur core.Cursor, inOrder bool) error {
	for o := range p.log.end {
		switch got := cur.Covers(o); {
		case got && !p.acked[o]:
			return fmt.Errorf("offset %d is acknowledged after a restart, by nobody", o)
		case !got && (p.saved[o] || inOrder && p.acked[o]):
			return fmt.Errorf("offset %d was acknowledged, and is not after a restart", o)
		case !got:
			delete(p.acked, o)
		}
	}
	p.saved = maps.Clone(p.acked)
	return nil
}

// drain: every group gets everything that was ever acknowledged to a producer. I7
func (w *world) drain() error {
	for len(w.live) > 0 {
		w.leave(w.live[0])
	}
	for _, g := range w.groups {
		if err := w.join(g, 0, 1<<20); err != nil {
			return err
		}
	}
	if err := w.settle(); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	for _, g := range w.groups {
		for i, p := range g.parts {
			for _, e := range p.log.entries {
				if p.left(e) > 0 && !g.members[0].holds(int32(i), e.Base) {
					return fmt.Errorf("drain: offset %d of %s/%d never came to %s", e.Base, g.topic, i, g.name)
				}
			}
		}
	}
	return nil
}
