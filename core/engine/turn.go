package engine

import (
	"context"
	"errors"
	"time"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// A runner's turn: for each partition read what its consumers can take, let the state decide, hand over.

// Limits of one read for one partition, so that every partition and the mailbox get their turn.
const (
	readEntries = 256
	readBytes   = 1 << 20
)

// round gives every partition one turn and hands over what was assigned; true when there may be more to do.
func (r *runner) round(ctx context.Context) (more bool) {
	r.most = r.group.retry().MaxAttempts
	r.lend()
	for _, s := range r.order {
		s.account.Permits += s.c.credit.Swap(0)
	}
	r.expire()
	r.mail.give(true)
	for i := range r.parts {
		rp := r.parts[(i+r.turn)%len(r.parts)]
		if r.serve(ctx, rp) {
			more = true
		}
	}
	r.turn = (r.turn + 1) % len(r.parts)
	for _, s := range r.order {
		if len(s.out) > 0 {
			s.c.delivered.Add(float64(s.count))
			s.c.handed.Add(int64(s.count))
			s.c.member.Sink.Deliver(s.out)
			clear(s.out)
			s.out, s.count = s.out[:0], 0
		}
		s.settle(r)
	}
	r.mail.give(false)
	return more
}

// settle shares a consumer's permits among its runners: what this one has no use for goes back, and wakes those that had
// none. One that had none says so first and looks again, so that of two runners one sees the other. Who could not use
// its permits does not starve, so they are not passed to and fro.
func (s *seat) settle(r *runner) {
	ps := s.c.places()
	if len(ps) < 2 {
		return
	}
	if s.account.Permits <= 0 {
		s.starving.Store(true)
		if s.c.credit.Load() > 0 {
			r.mail.wake()
		}
		return
	}
	s.c.credit.Add(s.account.Permits)
	s.account.Permits = 0
	for _, x := range ps {
		if x.s != s && x.s.starving.Swap(false) {
			x.r.mail.wake()
		}
	}
}

// serve reads for a partition what its consumers can take, and collects what the state assigns.
func (r *runner) serve(ctx context.Context, rp *runnerPart) (more bool) {
	if rp.lent || rp.failed != nil && time.Since(rp.failedAt) < retryEvery {
		if rp.lent {
			rp.ahead.clear()
		}
		rp.wake = 0
		return false
	}
	rp.ahead.tidy(rp.state.Cursor(), rp.state.Next())
	before := rp.failedAt
	if want := rp.state.Want(); want > 0 {
		more = r.feed(ctx, rp, want)
	}
	ready := rp.state.Ready()
	rp.wake = ready.Wake
	for _, n := range ready.Notices {
		if s := r.seats[n.To]; s != nil {
			s.c.member.Sink.Active(rp.gp.p.index, n.Active)
		}
	}
	for i := range ready.Deliver {
		if !r.assign(ctx, rp, &ready.Deliver[i]) {
			r.takeBack(rp, ready.Deliver[i:])
			break
		}
	}
	if rp.failedAt == before { // all that was wanted could be read
		rp.failed = nil
	}
	if r.log.volatile {
		r.shed(rp, ready.Deliver)
	}
	if r.byKey {
		rp.ahead.keep(rp.fresh, rp.state.Cursor().Next)
	}
	clear(rp.fresh)
	rp.fresh = rp.fresh[:0]
	for _, span := range rp.lost {
		rp.state.Skip(span)
	}
	rp.lost = rp.lost[:0]
	if ready.Dirty {
		rp.changed = true
		rp.gp.mark.Store(rp.state.Cursor().Next)
	}
	return more || len(ready.Deliver) > 0
}

// assign puts an entry into its consumer's hands; false: it cannot be read. Mostly it was read this very turn or
// kept; what was not is read again. One that is too old by now, or was trimmed or thinned away meanwhile, counts as acknowledged.
func (r *runner) assign(ctx context.Context, rp *runnerPart, a *dispatch.Assignment) bool {
	s := r.seat(a.To)
	if s == nil {
		return true
	}
	var e *core.Entry
	if i, ok := search(rp.fresh, a.Entry.Base); ok {
		e = &rp.fresh[i]
	} else {
		old, err := r.again(ctx, rp, a)
		if errors.Is(err, core.ErrOffsetOutOfRange) {
			rp.lost = append(rp.lost, a.Span())
			s.account.Permits += a.Left()
			return true
		} else if err != nil {
			r.fail(ctx, rp, a.Entry.Base, err)
			return false
		}
		e = &old
	}
	if r.most > 0 && a.Attempt >= r.most {
		r.bury(rp, s, a, *e)
	} else {
		s.out = append(s.out, Delivery{Partition: rp.gp.p, Entry: *e, Attempt: a.Attempt, Acked: a.Acked})
		s.count += int(e.Count)
	}
	e.Count = 0 // assigned, and not to be kept
	return true
}

// seat is the member that was assigned something, mostly the one that got the last.
func (r *runner) seat(id dispatch.ConsumerID) *seat {
	if r.recent == nil || r.recent.c.id != id {
		r.recent = r.seats[id]
	}
	return r.recent
}

// feed reads on and adds to the state; false when there was nothing to read.
func (r *runner) feed(ctx context.Context, rp *runnerPart, want int) bool {
	p, next := rp.gp.p, rp.state.Next()
	first, end := p.Bounds()
	if next < first { // trimmed under a reader that retains nothing
		rp.state.Skip(core.Range{From: next, To: first})
		if r.log.volatile {
			r.log.eng.metrics.GroupDropped.WithLabelValues(reasonSlow).Add(float64(first - next))
		}
		return true
	}
	if next >= end {
		return false
	}
	es, err := p.appendFrom(ctx, rp.fresh[:0], next, min(want, readEntries), readBytes, &rp.spot)
	rp.fresh = es
	if errors.Is(err, core.ErrOffsetOutOfRange) {
		return true
	}
	if err != nil {
		r.fail(ctx, rp, next, err)
		return false
	}
	dead := r.group.dead(r.now)
	for i := range es {
		e := &es[i]
		if at := rp.state.Next(); e.Base > at { // offsets that were given and lost
			rp.state.Skip(core.Range{From: at, To: e.Base})
		}
		gone := r.over(e, dead)
		if gone || r.filter != nil && !r.filter(e) {
			span := core.Range{From: max(e.Base, next), To: e.End()}
			rp.state.Skip(span)
			if !gone {
				r.log.eng.metrics.filtered.Add(float64(span.Len()))
			}
			continue
		}
		if r.byKey {
			r.addByKey(rp, e)
		} else {
			rp.state.Add(dispatch.Entry{Base: e.Base, Count: e.Count})
		}
	}
	if r.byKey {
		clear(es)
		rp.fresh, rp.pieces = rp.pieces, es[:0]
	}
	return len(es) > 0
}

// over tells whether an entry is too old to be delivered. dead is the group's.
func (r *runner) over(e *core.Entry, dead int64) bool {
	return e.Expiry != 0 && e.Expiry <= r.now || e.Commit <= dead
}
