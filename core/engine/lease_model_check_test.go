package engine_test

import (
	"errors"
	"fmt"
	"time"

	"isthmus/core"
)

// mixedPart is a partition, message by message. Its checks:
//
//   - a message is at one member at a time, whatever its kind, unless that one is gone, gave it back, or had its minute;
//   - acknowledged, it never comes back but after a reset, to consumers nor to members beside consumers;
//   - nothing is acknowledged that nobody had, and what the holder acknowledges is: the cursor is the model's, to the message;
//   - the mark never goes back but by a reset or a crash;
//   - consumers get nothing of what a queue-based member has; only the active one gets anything in an ordered group;
//   - new messages of a partition (of a key, in key_shared) come in order, whoever gets them (I4);
//   - what somebody could take does not lie for longer than two hand-overs and the look at the members (no stall).
type mixedPart struct {
	w        *mixed
	index    int32
	messages []mixedMessage
	mark     core.Offset
	active   *mixedConsumer
	last     *mixedPuller // who pulled last
	sought   bool         // it was reset since
	skipped  bool         // or, the last time, moved on
	resetAt  time.Time
	pooled   bool      // consumers came since the last pull
	stalled  time.Time // since when something lies that somebody could take; zero: nothing does
}

type mixedMessage struct {
	key    string
	seen   bool // somebody had it
	acked  bool
	since  time.Time   // it is acknowledged
	late   bool        // and was by a consumer, when a queue-based member had the partition already
	unsure bool        // it may be acknowledged by now: somebody said so that was not its holder
	con    mixedHolder // the consumer that has it, also while a queue-based member had it after a minute
	pul    mixedHolder
}

type mixedHolder struct {
	consumer *mixedConsumer
	puller   *mixedPuller
	at       time.Time
	loose    time.Time // from then on it is anybody's: another consumer may have become active; zero: never
}

func (m *mixedMessage) ack() {
	m.acked, m.since, m.con, m.pul = true, time.Now(), mixedHolder{}, mixedHolder{}
}

func (w *mixed) single() bool { return w.mode == core.Exclusive || w.mode == core.Failover }

// observe plays what consumers were told.
func (w *mixed) observe() error {
	w.mu.Lock()
	events := w.events
	w.events = nil
	w.mu.Unlock()
	for _, ev := range events {
		p := w.parts[ev.part]
		switch {
		case ev.base < 0 && ev.active:
			if err := p.activated(ev); err != nil {
				return fmt.Errorf("partition %d: %w", ev.part, err)
			}
			continue
		case ev.base < 0:
			continue
		}
		err := p.given(ev.base, mixedHolder{consumer: ev.c, at: ev.at})
		ev.c.permits--
		switch {
		case err != nil:
		case ev.lease != "":
			err = fmt.Errorf("leased to %s", ev.lease)
		case w.mode == core.Failover && ev.c != p.active:
			err = errors.New("it is not the active one")
		case ev.c.permits < -2:
			err = errors.New("no permit")
		}
		if err != nil {
			return fmt.Errorf("partition %d offset %d to %s: %w", ev.part, ev.base, ev.c.name, err)
		}
	}
	return nil
}

// activated: the tail comes again, to the new one, once the grace of who has it is over.
func (p *mixedPart) activated(ev mixedEvent) error {
	for o := range p.messages {
		m := &p.messages[o]
		if h := m.con; h.consumer != ev.c && !m.acked && !m.unsure && !h.free(p, mixedHolder{consumer: ev.c, at: ev.at}) {
			return fmt.Errorf("%s is active, and %s has %d since %v", ev.c.name, h.name(), o, ev.at.Sub(h.at))
		}
		m.con = mixedHolder{}
	}
	p.active = ev.c
	return nil
}

// released takes messages from those who hold them.
func (p *mixedPart) released(which func(mixedHolder) bool) {
	for o := range p.messages {
		m := &p.messages[o]
		for _, h := range []*mixedHolder{&m.con, &m.pul} {
			if which(*h) {
				*h = mixedHolder{}
			}
		}
	}
}

func (p *mixedPart) giveUp(u *mixedPuller) {
	p.released(func(h mixedHolder) bool { return h.puller == u })
}

// given notes that somebody gets a message.
func (p *mixedPart) given(o core.Offset, to mixedHolder) error {
	if int(o) >= len(p.messages) {
		return errors.New("nobody published it")
	}
	m, mixedUp := &p.messages[o], len(p.w.consumers) > 0
	switch {
	case m.acked && !m.unsure && to.at.Equal(m.since) && (m.late || to.consumer != nil):
		return nil // the acknowledgement was on its way
	case m.acked && !m.unsure && mixedUp:
		return errors.New("it is acknowledged")
	}
	for _, h := range []mixedHolder{m.con, m.pul} {
		if !h.free(p, to) {
			return fmt.Errorf("%s has it since %v", h.name(), to.at.Sub(h.at))
		}
	}
	if !m.seen && (mixedUp || to.puller == nil) && p.w.mode != core.Shared {
		for x := range o {
			if y := &p.messages[x]; !y.seen && !y.acked && (p.w.single() || y.key == m.key) {
				return fmt.Errorf("%d was never given to anybody and comes before it", x)
			}
		}
	}
	m.seen, m.pul, p.stalled = true, mixedHolder{}, time.Time{}
	if to.puller != nil {
		m.pul = to
	} else {
		m.con = to
	}
	if !mixedUp { // they go on from wherever they want
		m.acked = false
		m.unsure = true
	}
	return nil
}

// free tells whether what h holds may go to somebody else: it left, fell silent, had a minute for it; among queue-based
// members alone they share out partitions by themselves.
func (h mixedHolder) free(p *mixedPart, to mixedHolder) bool {
	switch {
	case h.consumer == nil && h.puller == nil:
		return true
	case to.at.Sub(h.at) >= time.Minute, !h.loose.IsZero() && !to.at.Before(h.loose):
		return true
	case h.consumer != nil:
		return h.consumer.leaving
	case to.puller == h.puller || h.puller.gone, !h.puller.until.IsZero() && !to.at.Before(h.puller.until):
		return true
	}
	return len(p.w.consumers) == 0 || to.at.Sub(h.puller.pulled[p.index]) >= time.Minute
}

func (h mixedHolder) name() string {
	if h.puller != nil {
		return h.puller.name
	}
	return h.consumer.name
}

// check compares the cursor with the model when all is at rest.
func (p *mixedPart) check() error {
	mark := p.w.g.Mark(p.index)
	if mark < p.mark {
		return fmt.Errorf("the mark went from %d back to %d", p.mark, mark)
	}
	p.mark = mark
	acked := p.cursor()
	for o := range p.messages {
		m, got := &p.messages[o], acked.Covers(core.Offset(o))
		switch {
		case got && !m.acked && !m.unsure:
			return fmt.Errorf("%d is acknowledged, and nobody said so", o)
		case got && !m.seen:
			return fmt.Errorf("%d is acknowledged, and nobody had it", o)
		case !got && m.acked && !m.unsure:
			return fmt.Errorf("%d was acknowledged, and is not: %v", o, acked)
		}
		if m.acked, m.unsure = got, false; got {
			m.con, m.pul = mixedHolder{}, mixedHolder{}
		}
	}
	return p.stall()
}

// cursor is the group's, as members that ask for their place see it.
func (p *mixedPart) cursor() core.Cursor {
	cur := core.Cursor{Next: p.w.g.Mark(p.index)}
	for o := cur.Next; ; {
		from, until := p.w.g.From(p.index, "nobody", o)
		if from > o {
			cur.Ack(core.Range{From: o, To: from})
		}
		if until > core.Offset(len(p.messages)) {
			return cur
		}
		o = until
	}
}

// stall: what is free and somebody with credit could take is not to lie for longer than two hand-overs and a look at the
// members, as long as no queue-based member takes from the partition.
func (p *mixedPart) stall() error {
	const patience = 2*time.Minute + 10*time.Second
	lies := -1
	busy := map[string]bool{} // keys that somebody holds something of
	for o := range p.messages {
		if h := p.messages[o].con; h.consumer != nil && !h.consumer.leaving {
			busy[p.messages[o].key] = true
		}
	}
	for o := range p.messages {
		m := &p.messages[o]
		if h := m.con; !m.acked && (h.consumer == nil || h.consumer.leaving) && !(p.w.mode == core.KeyShared && busy[m.key]) && p.able() {
			lies = o
			break
		}
	}
	for _, u := range p.w.pullers {
		if time.Since(u.pulled[p.index]) < time.Second {
			lies = -1
		}
	}
	if lies < 0 {
		p.stalled = time.Time{}
		return nil
	}
	if p.stalled.IsZero() {
		p.stalled = time.Now()
	}
	if d := time.Since(p.stalled); d > patience {
		return fmt.Errorf("%d lies beside credit for %v, leased to %q: %+v", lies, d, p.w.g.Lease(p.index), p.w.g.Info())
	}
	return nil
}

// able tells whether whoever should get it could take something.
func (p *mixedPart) able() bool {
	some := false
	for _, c := range p.w.consumers {
		switch can := c.permits > 0; {
		case !c.readsOf(p.index), p.w.mode == core.Failover && c != p.active:
		case !can && p.w.mode == core.KeyShared: // it may be the owner
			return false
		default:
			some = some || can
		}
	}
	return some
}

// touched: consumers came or went. In failover another one may be active now, after the grace; and the patience begins anew.
func (w *mixed) touched() {
	for _, p := range w.parts {
		p.stalled, p.pooled = time.Time{}, true
		for o := range p.messages {
			if h := &p.messages[o].con; w.mode == core.Failover && h.consumer != nil && h.loose.IsZero() {
				h.loose = time.Now().Add(max(0, w.grace))
			}
		}
	}
}

// reset goes on from next: what was before is nobody's, what comes then is new.
func (p *mixedPart) reset(next core.Offset) {
	next = min(next, core.Offset(len(p.messages)))
	for o := range p.messages {
		m := &p.messages[o]
		m.acked, m.unsure, m.con, m.pul = core.Offset(o) < next, false, mixedHolder{}, mixedHolder{}
		m.seen = m.seen && m.acked
		if m.acked {
			m.seen = true
		}
	}
	p.mark, p.stalled, p.sought, p.skipped, p.resetAt = next, time.Time{}, true, false, time.Now()
	for _, u := range p.w.pullers {
		u.got[p.index] = next // it goes on from its old place, and the group sees to it
	}
}

// skip: the next n messages that are not acknowledged count as such, and nobody gets them any more.
func (p *mixedPart) skip(n int) {
	for o := range p.messages {
		if m := &p.messages[o]; !m.acked && n > 0 {
			n--
			m.ack()
			m.seen, m.late = true, true
		}
	}
	p.sought, p.skipped = true, true
}

// restarted: nobody holds anything for sure. In order nothing is forgotten; a crash may forget, and invents nothing.
func (p *mixedPart) restarted(crash bool) error {
	p.active, p.stalled = nil, time.Time{}
	acked := p.cursor()
	for o := range p.messages {
		m, got := &p.messages[o], acked.Covers(core.Offset(o))
		switch {
		case got && crash && time.Since(p.resetAt) < 3*time.Second: // the reset is not saved yet
			m.seen = true
		case got && !m.acked && !m.unsure:
			return fmt.Errorf("%d is acknowledged after a restart, by nobody", o)
		case !got && m.acked && !m.unsure && !crash:
			return fmt.Errorf("%d was acknowledged, and is not after a restart", o)
		}
		m.acked, m.unsure, m.con, m.pul = got, false, mixedHolder{}, mixedHolder{}
	}
	p.mark = p.w.g.Mark(p.index)
	for _, u := range p.w.pullers {
		if u.got[p.index] = min(u.got[p.index], p.mark); p.sought { // which they were not told
			u.at[p.index] = p.mark
		}
	}
	return nil
}
