package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// Limits of one read for one partition, so that every partition and the mailbox get their turn.
const (
	readEntries = 256
	readBytes   = 1 << 20
)

// snapshotEvery is how often a changed cursor is copied for the saver.
const snapshotEvery = 200 * time.Millisecond

// retryEvery is how soon a failed read is tried again.
const retryEvery = time.Second

// runner owns the dispatch states of one group's partitions in one log, from one goroutine. It lives while the group has
// consumers there. Others post to its mailbox.
type runner struct {
	group  *Group
	log    *log
	mail   mailbox
	seated atomic.Int32 // consumers
	done   chan struct{}

	// owned by the goroutine
	parts  []*runnerPart
	seats  map[dispatch.ConsumerID]*seat
	order  []*seat
	filter func(*core.Entry) bool
	whose  dispatch.Turn // shared mode: whose turn it is, over all partitions
	turn   int           // which partition is first in a round; -1: end
}

type runnerPart struct {
	gp      *groupPart
	state   dispatch.State
	fresh   []core.Entry // what this turn has read; in order
	lost    []core.Range // assigned this turn and not there any more
	missed  []missed     // assigned and not readable, to be assigned again
	changed bool         // the cursor, since the last snapshot
	copied  time.Time
	failed  error // of reading; logged once
}

// seat is a consumer in a runner.
type seat struct {
	c        *Consumer
	account  dispatch.Account
	out      []Delivery
	count    int
	starving atomic.Bool // had no permit left in the last round; read by the consumer's other runners
}

// runner returns the group's runner on a log, started if need be. The caller holds g.changes.
func (g *Group) runner(l *log, mode core.Mode) (*runner, error) {
	if r := g.runners[l]; r != nil {
		return r, nil
	}
	r := &runner{group: g, log: l, done: make(chan struct{}), seats: map[dispatch.ConsumerID]*seat{}}
	r.mail.init()
	for _, gp := range g.parts {
		if gp.p.log != l {
			continue
		}
		gp.mu.Lock()
		cur := gp.mu.cursor.Clone()
		gp.mu.Unlock()
		at := dispatch.Placement{Partition: gp.p.index, Partitioned: g.topic.partitions > 0, Topic: g.topic.name.String(), Turn: &r.whose}
		s, err := dispatch.New(mode, at, cur)
		if err != nil {
			return nil, err
		}
		r.parts = append(r.parts, &runnerPart{gp: gp, state: s})
	}
	for _, rp := range r.parts {
		rp.gp.setRunner(r)
	}
	if !g.topic.eng.tasks.start(r.run) {
		for _, rp := range r.parts {
			rp.gp.setRunner(nil)
		}
		return nil, core.ErrClosed
	}
	g.runners[l] = r
	return r, nil
}

// ask has f called on the runner's goroutine and returns what it says; ErrClosed when the runner has ended.
func (r *runner) ask(f func() error) error {
	reply := make(chan error, 1)
	if !r.mail.post(input{kind: inputCall, call: func() { reply <- f() }}) {
		return core.ErrClosed
	}
	// An ending runner still applies what was posted, so there is always a reply.
	return <-reply
}

// stop ends the runner and waits for it.
func (r *runner) stop() {
	r.mail.post(input{kind: inputCall, call: func() { r.turn = -1 }})
	<-r.done
}

func (r *runner) run(ctx context.Context) {
	defer close(r.done)
	for _, rp := range r.parts {
		defer rp.gp.p.watch.subscribe(r.mail.wake)()
	}
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for r.turn >= 0 {
		select {
		case <-r.mail.bell:
		case <-timer.C:
		case <-ctx.Done():
			r.turn = -1
		}
		r.retry()
		r.drain()
		for r.turn >= 0 && r.round(ctx) {
			r.drain()
		}
		switch {
		case r.snapshot(false):
			timer.Reset(snapshotEvery)
		case r.stuck():
			timer.Reset(retryEvery)
		}
	}
	r.finish()
}

// stuck tells whether a read failed, which nobody else will ask for again.
func (r *runner) stuck() bool {
	for _, rp := range r.parts {
		if rp.failed != nil || len(rp.missed) > 0 {
			return true
		}
	}
	return false
}

// drain applies what was posted.
func (r *runner) drain() {
	for _, in := range r.mail.take() {
		r.apply(in)
	}
}

func (r *runner) apply(in input) {
	switch in.kind {
	case inputCall:
		in.call()
	case inputNackAll:
		for _, rp := range r.parts {
			rp.state.NackAll(in.consumer)
		}
	default:
		for _, rp := range r.parts {
			if rp.gp.p.index == in.partition {
				rp.apply(in)
			}
		}
	}
}

func (rp *runnerPart) apply(in input) {
	end := rp.gp.p.committed.Load() // what does not exist cannot be acknowledged
	switch in.kind {
	case inputAck:
		rp.state.Ack(in.consumer, core.Range{From: in.a, To: min(in.b, end)})
	case inputAckThrough:
		rp.state.AckThrough(in.consumer, min(in.a, end))
	case inputNack:
		rp.state.Nack(in.consumer, in.a)
	case inputCall, inputNackAll: // for the whole runner
	}
}

func (r *runner) join(s *seat) error {
	c := s.c
	var joined []*runnerPart
	for _, rp := range r.parts {
		if !c.Reads(rp.gp.p.index) {
			continue
		}
		err := rp.state.Join(dispatch.Consumer{ID: c.id, Name: c.member.Name, Priority: c.member.Priority, Account: &s.account})
		if err != nil {
			for _, rp := range joined {
				rp.state.Leave(c.id)
			}
			return err
		}
		joined = append(joined, rp)
	}
	r.seats[c.id] = s
	r.order = append(r.order, s)
	r.seated.Add(1)
	if c.member.Filter != nil {
		r.filter = c.member.Filter
	}
	return nil
}

func (r *runner) leave(c *Consumer) {
	s := r.seats[c.id]
	if s == nil {
		return
	}
	for _, rp := range r.parts {
		if c.Reads(rp.gp.p.index) {
			rp.state.Leave(c.id)
		}
	}
	delete(r.seats, c.id)
	r.filter = nil
	for i := range r.order {
		if r.order[i] == s {
			r.order = append(r.order[:i:i], r.order[i+1:]...)
			break
		}
	}
	for _, s := range r.order {
		r.filter = s.c.member.Filter
	}
	r.seated.Add(-1)
}

func (r *runner) reset(partition int32, cur core.Cursor) error {
	for _, rp := range r.parts {
		if rp.gp.p.index == partition {
			rp.state.Reset(cur)
			rp.changed = true
			rp.gp.mark.Store(cur.Next)
		}
	}
	return nil
}

// round gives every partition one turn and hands over what was assigned; true when there may be more to do.
func (r *runner) round(ctx context.Context) (more bool) {
	for _, s := range r.order {
		s.account.Permits += s.c.credit.Swap(0)
	}
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
	if len(s.c.runners) < 2 {
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
	for i, other := range s.c.seats {
		if other != s && other.starving.Swap(false) {
			s.c.runners[i].mail.wake()
		}
	}
}

// serve reads for a partition what its consumers can take, and collects what the state assigns.
func (r *runner) serve(ctx context.Context, rp *runnerPart) (more bool) {
	if want := rp.state.Want(); want > 0 {
		more = r.feed(ctx, rp, want)
	}
	ready := rp.state.Ready()
	for _, n := range ready.Notices {
		if s := r.seats[n.To]; s != nil {
			s.c.member.Sink.Active(rp.gp.p.index, n.Active)
		}
	}
	for i := range ready.Deliver {
		r.assign(ctx, rp, &ready.Deliver[i])
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

// assign puts an entry into its consumer's hands. Mostly it was read this very turn; what was not is read again.
func (r *runner) assign(ctx context.Context, rp *runnerPart, a *dispatch.Assignment) {
	s := r.seats[a.To]
	if s == nil {
		return
	}
	var e core.Entry
	if i, ok := slices.BinarySearchFunc(rp.fresh, a.Entry.Base, func(e core.Entry, o core.Offset) int { return cmp.Compare(e.Base, o) }); ok {
		e = rp.fresh[i]
	} else if e, ok = r.again(ctx, rp, s, a); !ok {
		return
	}
	s.out = append(s.out, Delivery{Partition: rp.gp.p, Entry: e, Attempt: a.Attempt, Acked: a.Acked})
	s.count += int(e.Count)
}

// feed reads on and adds to the state; false when there was nothing to read.
func (r *runner) feed(ctx context.Context, rp *runnerPart, want int) bool {
	p, next := rp.gp.p, rp.state.Next()
	first, end := p.Bounds()
	if next < first { // trimmed under a reader that retains nothing
		rp.state.Skip(core.Range{From: next, To: first})
		return true
	}
	if next >= end {
		return false
	}
	es, err := p.AppendEntries(ctx, rp.fresh[:0], next, min(want, readEntries), readBytes)
	rp.fresh = es
	if errors.Is(err, core.ErrOffsetOutOfRange) {
		return true
	}
	if err != nil {
		if rp.failed == nil && ctx.Err() == nil {
			r.log.eng.cfg.Log.Error("group cannot read", "topic", p.topic.name.String(), "partition", p.index,
				"group", r.group.name, "offset", next, "err", err)
		}
		rp.failed = err
		return false
	}
	rp.failed = nil
	now := r.log.eng.now().UnixMilli()
	for i := range es {
		e := &es[i]
		if at := rp.state.Next(); e.Base > at { // offsets that were given and lost
			rp.state.Skip(core.Range{From: at, To: e.Base})
		}
		if e.Expiry != 0 && e.Expiry <= now || r.filter != nil && !r.filter(e) {
			rp.state.Skip(core.Range{From: max(e.Base, next), To: e.End()})
			continue
		}
		rp.state.Add(dispatch.Entry{Base: e.Base, Count: e.Count})
	}
	return len(es) > 0
}

// again reads an entry that was read in an earlier turn. One that was trimmed meanwhile counts as acknowledged, and its
// permits go back. After any other error it is assigned anew at the next try.
func (r *runner) again(ctx context.Context, rp *runnerPart, s *seat, a *dispatch.Assignment) (core.Entry, bool) {
	span := core.Range{From: a.Entry.Base, To: a.Entry.Base + core.Offset(a.Entry.Count)}
	es, err := rp.gp.p.Read(ctx, span.From, 1, 1)
	if err == nil && len(es) > 0 {
		return es[0], true
	}
	r.log.eng.cfg.Log.Error("entry not readable again", "topic", rp.gp.p.topic.name.String(),
		"partition", rp.gp.p.index, "group", r.group.name, "offset", span.From, "err", err)
	s.account.Permits += span.Len()
	for _, r := range a.Acked {
		s.account.Permits -= r.Len()
	}
	if errors.Is(err, core.ErrOffsetOutOfRange) {
		rp.lost = append(rp.lost, span)
	} else {
		rp.missed = append(rp.missed, missed{a.To, span.From, time.Now()})
	}
	return core.Entry{}, false
}

// missed is an entry that a consumer holds for the state's books but never got.
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
			rp.state.Nack(m.to, m.base)
		}
		rp.missed = rp.missed[:0]
	}
}

// snapshot copies changed cursors for the saver; true when some have to wait for their next turn.
func (r *runner) snapshot(last bool) (later bool) {
	now := time.Now()
	for _, rp := range r.parts {
		if !rp.changed {
			continue
		}
		if !last && now.Sub(rp.copied) < snapshotEvery {
			later = true
			continue
		}
		cur := rp.state.Cursor()
		gp := rp.gp
		gp.mu.Lock()
		gp.mu.cursor, gp.mu.committed = cur.Clone(), true
		gp.mu.version++
		gp.mu.Unlock()
		gp.mark.Store(cur.Next)
		rp.changed, rp.copied = false, now
	}
	return later
}

// finish applies what is still in the mailbox and leaves the cursors to the group.
func (r *runner) finish() {
	for _, in := range r.mail.close() {
		r.apply(in)
	}
	for _, rp := range r.parts {
		if rp.state.Ready().Dirty {
			rp.changed = true
		}
	}
	r.snapshot(true)
	for _, rp := range r.parts {
		rp.gp.setRunner(nil)
	}
}
