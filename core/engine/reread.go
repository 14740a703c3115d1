package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// What becomes of messages that a state assigned and that cannot be handed over.

// retryEvery is how soon a partition that cannot be read is tried again, and a dead letter that could not be stored.
const retryEvery = time.Second

// again finds an entry that was read in an earlier turn: kept, or else it is read again. The error wraps ErrOffsetOutOfRange
// when it is too old by now, or not there any more.
func (r *runner) again(ctx context.Context, rp *runnerPart, a *dispatch.Assignment) (core.Entry, error) {
	e, ok := rp.ahead.take(a.Entry.Base, a.Entry.Count)
	if !ok {
		var err error
		if e, err = r.reread(ctx, rp, a); err != nil {
			return e, err
		}
	}
	if r.over(&e, r.group.dead(r.now)) {
		return e, core.ErrOffsetOutOfRange
	}
	return e, nil
}

func (r *runner) reread(ctx context.Context, rp *runnerPart, a *dispatch.Assignment) (core.Entry, error) {
	span := a.Span()
	es, err := rp.gp.p.Read(ctx, span.From, 1, 1)
	if err == nil && (len(es) == 0 || es[0].Base >= span.To) { // taken out of the middle: what follows is another entry
		err = core.ErrOffsetOutOfRange
	}
	if errors.Is(err, core.ErrOffsetOutOfRange) {
		r.log.eng.cfg.Log.Error("entry is gone", "topic", rp.gp.p.topic.name.String(), "partition", rp.gp.p.index,
			"group", r.group.name, "offset", span.From)
	}
	if err != nil {
		return core.Entry{}, err
	}
	e, ok := r.piece(rp, es[0], span)
	if !ok {
		return e, fmt.Errorf("offsets %d to %d are not as they were read before: %w", span.From, span.To, core.ErrInvalid)
	}
	return e, nil
}

// missed is an entry that a consumer holds for the state's books but never got: it was to become a dead letter, and could not.
type missed struct {
	to   dispatch.ConsumerID
	base core.Offset
	at   time.Time
}

// retry takes back what was missed a while ago.
func (r *runner) retry() {
	for _, rp := range r.parts {
		if len(rp.missed) == 0 || time.Since(rp.missed[0].at) < retryEvery {
			continue
		}
		for _, m := range rp.missed {
			rp.state.Return(m.to, m.base)
		}
		rp.missed = rp.missed[:0]
	}
}

// takeBack returns assignments to the state, none of which was handed over: were those behind one that cannot be read, order
// would break, and a cumulative acknowledgement would cover what its consumer never got.
func (r *runner) takeBack(rp *runnerPart, as []dispatch.Assignment) {
	for i := range as {
		if s := r.seats[as[i].To]; s != nil {
			s.account.Permits += as[i].Left()
			rp.state.Return(as[i].To, as[i].Entry.Base)
		}
	}
}

// fail leaves a partition alone for a while that cannot be read.
func (r *runner) fail(ctx context.Context, rp *runnerPart, at core.Offset, err error) {
	if rp.failed == nil && ctx.Err() == nil {
		r.log.eng.cfg.Log.Error("group cannot read", "topic", rp.gp.p.topic.name.String(), "partition", rp.gp.p.index,
			"group", r.group.name, "offset", at, "err", err)
	}
	rp.failed, rp.failedAt = err, time.Now()
}
