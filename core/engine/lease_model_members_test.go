package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
)

// mixedConsumer is a consumer of a mixed group. Its Sink runs on runners and only notes what it was told.
type mixedConsumer struct {
	*engine.Consumer
	w       *mixed
	name    string
	reads   []int32
	permits int
	leaving bool // what it held is anybody's
}

// mixedEvent is something that a consumer was told.
type mixedEvent struct {
	c      *mixedConsumer
	part   int32
	base   core.Offset // -1: a notice
	active bool
	lease  string // who had the partition then
	at     time.Time
}

func (c *mixedConsumer) Deliver(ds []engine.Delivery) {
	for _, d := range ds {
		i := d.Partition.Index()
		c.w.note(mixedEvent{c: c, part: i, base: d.Entry.Base, lease: c.w.g.Lease(i)})
	}
}

func (c *mixedConsumer) Active(part int32, active bool) {
	c.w.note(mixedEvent{c: c, part: part, base: -1, active: active})
}

func (c *mixedConsumer) Detached(error) {}

func (w *mixed) note(ev mixedEvent) {
	ev.at = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, ev)
}

func (c *mixedConsumer) readsOf(i int32) bool { return c.reads == nil || slices.Contains(c.reads, i) }

func (c *mixedConsumer) overlaps(d *mixedConsumer) bool {
	return c.reads == nil || d.reads == nil || c.reads[0] == d.reads[0]
}

func (c *mixedConsumer) permit(n int) {
	c.permits += n
	c.Permit(n)
}

// held lists what the consumer holds, in order.
func (c *mixedConsumer) held() (hs []mixedPlace) {
	for _, p := range c.w.parts {
		for o := range p.messages {
			if p.messages[o].con.consumer == c {
				hs = append(hs, mixedPlace{p, core.Offset(o)})
			}
		}
	}
	return hs
}

type mixedPlace struct {
	p *mixedPart
	o core.Offset
}

func (h mixedPlace) message() *mixedMessage { return &h.p.messages[h.o] }

// consumerStep does something with a consumer and, mostly, one of the messages that it holds; false if it is not for one.
func (w *mixed) consumerStep(c *mixedConsumer, s step) (done bool, err error) {
	switch s.op {
	case "leave":
		w.leave(c)
		return true, nil
	case "permit":
		c.permit(s.n)
		return true, nil
	case "ack all": // and who takes over pulls at once
		c.ackAll()
		synctest.Wait()
		if err := w.observe(); err != nil {
			return true, err
		}
		for _, u := range w.pullers {
			for _, p := range w.parts {
				if err := u.pull(p, s.n); err != nil {
					return true, err
				}
			}
		}
		return true, nil
	case "nack all":
		c.NackAll()
		for _, h := range c.held() {
			h.message().con = mixedHolder{}
		}
		return true, nil
	case "late ack": // of what it does not hold
		p := w.parts[s.b%len(w.parts)]
		o := min(core.Offset(s.n*2), core.Offset(len(p.messages))-1)
		if o >= 0 && c.readsOf(p.index) && p.messages[o].con.consumer != c {
			c.Ack(p.index, core.Range{From: o, To: o + 1})
			p.messages[o].unsure = true
		}
		return true, nil
	case "ack", "through", "nack", "nack later":
		if hs := c.held(); len(hs) > 0 {
			c.with(hs[s.b%len(hs)], s)
		}
		return true, nil
	}
	return false, nil
}

func (c *mixedConsumer) with(h mixedPlace, s step) {
	i := h.p.index
	switch s.op {
	case "ack":
		c.Ack(i, core.Range{From: h.o, To: h.o + 1})
		h.message().ack()
	case "through":
		c.AckThrough(i, h.o+1)
		for o := range h.o + 1 {
			if m := &h.p.messages[o]; c.w.single() && m.con.consumer == c {
				m.ack()
			} else if c.w.single() {
				m.unsure = true
			}
		}
	case "nack":
		c.Nack(i, h.o)
		h.rewound()
	case "nack later":
		c.NackAfter(i, h.o, time.Duration(s.n)*time.Second)
		h.rewound()
	}
}

// rewound: what was asked for again is anybody's, and in an ordered group all that follows it.
func (h mixedPlace) rewound() {
	c := h.message().con.consumer
	h.message().con = mixedHolder{}
	for o := range h.p.messages {
		if m := &h.p.messages[o]; h.p.w.single() && m.con.consumer == c {
			m.con = mixedHolder{}
		}
	}
}

// ackAll acknowledges one, and the rest while the copy of the cursor that the first one made is young.
func (c *mixedConsumer) ackAll() {
	for i, h := range c.held() {
		if i == 1 {
			synctest.Wait()
		}
		late := c.w.g.Lease(h.p.index) != "" || h.message().con.free(h.p, mixedHolder{at: time.Now()})
		c.Ack(h.p.index, core.Range{From: h.o, To: h.o + 1})
		h.message().ack()
		h.message().late = late
	}
}

func (w *mixed) leave(c *mixedConsumer) {
	c.leaving = true
	c.Leave()
	w.consumers = slices.DeleteFunc(w.consumers, func(x *mixedConsumer) bool { return x == c })
	w.touched()
}

// mixedPuller is a queue-based client. It goes on from its own idea of its place.
type mixedPuller struct {
	w      *mixed
	name   string
	idle   bool          // it never pulls
	gone   bool          // it is not a member any more, and may not know
	until  time.Time     // it is presumed alive until then, unless it is heard of; zero: it was
	at     []core.Offset // by partition: where it goes on
	got    []core.Offset // by partition: end of what it was given since it last took over
	pulled []time.Time   // by partition: when it was last let
}

// beat makes it a member; one that was none meanwhile comes with empty hands.
func (u *mixedPuller) beat() error {
	for _, p := range u.w.parts {
		if u.gone || u.lapsed() {
			p.giveUp(u)
		}
	}
	listed := slices.Contains(u.w.g.Members(), u.name)
	if changed := u.w.g.Heartbeat(u.name); changed == listed {
		return fmt.Errorf("%s comes, a member already: %v, a change: %v", u.name, listed, changed)
	}
	for _, p := range u.w.parts {
		if !listed { // targets change, and with them who has to wait for whom
			p.stalled = time.Time{}
		}
	}
	u.gone, u.until = false, time.Time{}
	return nil
}

// lapsed tells whether it was presumed alive for too long.
func (u *mixedPuller) lapsed() bool { return !u.until.IsZero() && !time.Now().Before(u.until) }

func (u *mixedPuller) step(p *mixedPart, s step) error {
	w, i := u.w, p.index
	switch s.op {
	case "beat":
		return u.beat()
	case "go":
		w.g.Forget(u.name)
		if u.gone = true; s.n > 2 { // else it goes on as if it were a member
			w.pullers = slices.DeleteFunc(w.pullers, func(x *mixedPuller) bool { return x == u })
		}
		for _, p := range w.parts {
			p.giveUp(u)
			p.stalled = time.Time{}
		}
	case "pull":
		return u.pull(p, s.n)
	case "pull all":
		for _, p := range w.parts {
			if err := u.pull(p, s.n); err != nil {
				return err
			}
		}
	case "commit":
		return u.commit(p, max(0, u.at[i]-core.Offset(s.n%3)))
	case "commit all":
		for _, p := range w.parts {
			if err := u.commit(p, u.at[p.index]); err != nil {
				return err
			}
		}
	case "commit beyond":
		return u.commit(p, core.Offset(len(p.messages)))
	case "lock":
		if w.g.Lock(i, u.name, time.Minute) {
			u.takes(p)
		}
	case "unlock":
		w.g.Unlock(i, u.name)
		p.giveUp(u)
	}
	return nil
}

// takes notes that the group lets it have a partition: without consumers from whoever had it.
func (u *mixedPuller) takes(p *mixedPart) {
	u.pulled[p.index] = time.Now()
	for o := range p.messages {
		if h := &p.messages[o].pul; len(u.w.consumers) == 0 && h.puller != nil && h.puller != u {
			h.loose = time.Now()
		}
	}
}

// pull takes up to n messages, if the group lets it.
func (u *mixedPuller) pull(p *mixedPart, n int) error {
	w, i := u.w, p.index
	pooled := len(w.consumers) > 0
	owner, sought := w.g.LockedBy(i), p.sought
	if !w.g.Pull(i, u.name) {
		if !pooled && owner == "" {
			return fmt.Errorf("%s may not pull from partition %d, which no consumer reads", u.name, i)
		}
		if w.g.Lease(i) == u.name { // it is to give it up, and still there
			u.pulled[i] = time.Now()
		}
		return nil
	}
	if owner != "" && owner != u.name {
		return fmt.Errorf("%s pulls from partition %d, which %s has locked", u.name, i, owner)
	}
	if pooled && w.g.Lease(i) != u.name {
		return fmt.Errorf("%s pulls from partition %d, which is leased to %q", u.name, i, w.g.Lease(i))
	}
	if !pooled && p.last != u { // who takes a partition over from another one asks where the group stands
		u.at[i] = w.g.Mark(i)
	}
	u.takes(p)
	p.last, p.sought, p.pooled = u, false, false
	from, until := w.g.From(i, u.name, u.at[i])
	if sought && from < w.g.Mark(i) {
		return fmt.Errorf("%s goes on at %d of partition %d, whose mark was moved to %d", u.name, from, i, w.g.Mark(i))
	}
	for o := w.g.Mark(i); sought && !p.skipped && o < from; o++ {
		if m := &p.messages[o]; !m.acked && m.pul.puller != u {
			return fmt.Errorf("%s goes on at %d of partition %d, which was reset to before %d", u.name, from, i, o)
		}
	}
	es, err := w.g.Topic().Partition(i).Read(context.Background(), from, n, 1<<20)
	if err != nil && !errors.Is(err, core.ErrOffsetOutOfRange) {
		return err
	}
	for k := range es {
		if es[k].Base >= until || k == n {
			break
		}
		from = es[k].End()
		if err := p.given(es[k].Base, mixedHolder{puller: u, at: time.Now()}); err != nil {
			return fmt.Errorf("partition %d offset %d pulled by %s: %w", i, es[k].Base, u.name, err)
		}
	}
	u.at[i], u.got[i] = from, max(u.got[i], from)
	w.g.Pulled(i, u.name, from)
	return nil
}

// commit acknowledges everything below next. What the member was never given it may not acknowledge beside consumers.
func (u *mixedPuller) commit(p *mixedPart, next core.Offset) error {
	w, i := u.w, p.index
	enforced := len(w.consumers) > 0
	synctest.Wait() // the mark is at rest
	mark, owner := w.g.Mark(i), w.g.Lease(i) == u.name
	err := w.g.CommitAs(i, u.name, next)
	switch {
	case err != nil && (!enforced && !p.sought && !p.pooled || next <= mark || owner && next <= u.given(p)):
		return fmt.Errorf("partition %d: commit of %d by %s: %w", i, next, u.name, err)
	case err != nil:
		return nil
	case enforced && next > mark && (!owner || next > u.got[i]):
		return fmt.Errorf("partition %d: %s acknowledges %d, and got no more than %d, leased to %q", i, u.name, next, u.got[i], w.g.Lease(i))
	}
	for o := range min(next, core.Offset(len(p.messages))) {
		switch m := &p.messages[o]; {
		case !enforced: // it may skip what it likes
			m.seen = true
			m.ack()
		case !m.acked:
			m.ack()
		}
	}
	if next > mark && owner { // consumers had their minute, or nothing
		p.released(func(h mixedHolder) bool { return h.consumer != nil })
	}
	return nil
}

// given is up to where the member has everything for sure: no further than what it holds and nobody may have taken back.
func (u *mixedPuller) given(p *mixedPart) (next core.Offset) {
	for o := range p.messages {
		if h := p.messages[o].pul; h.puller == u && !h.free(p, mixedHolder{at: time.Now()}) {
			next = core.Offset(o) + 1
		}
	}
	return next
}
