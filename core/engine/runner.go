package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// snapshotEvery is how often a changed cursor is copied for the saver.
const snapshotEvery = 200 * time.Millisecond

// runner owns the dispatch states of one group's partitions in one log, from one goroutine. It lives while the group has
// consumers there. Others post to its mailbox.
type runner struct {
	group  *Group
	log    *log
	mail   mailbox
	byKey  bool         // the group is key_shared, as long as the runner lives
	seated atomic.Int32 // consumers
	done   chan struct{}

	// owned by the goroutine
	parts  []*runnerPart
	seats  map[dispatch.ConsumerID]*seat
	order  []*seat
	recent *seat // of order; nil: look for it
	filter func(*core.Entry) bool
	whose  dispatch.Turn // shared mode: whose turn it is, over all partitions
	turn   int           // which partition is first in a round; -1: end
	now    int64         // unix ms, as the states were told last
	most   int32         // attempts; 0: without end
	dead   deadLetters
	lent   bool  // some partitions are with pullers
	relet  int64 // unix ms: when the members are counted again, in a group with pullers
}

type runnerPart struct {
	gp      *groupPart
	state   dispatch.State
	unwatch func()
	fresh   []core.Entry // what this turn has read, as it was added; in order
	spot    spot         // where it left the tail
	lost    []core.Range // assigned this turn and not there any more
	missed  []missed     // dead letters that could not be stored, to be assigned again
	changed bool         // the cursor, since the last snapshot
	copied  time.Time
	wake    int64 // unix ms: when the state has something due; 0: never
	lent    bool  // pullers have it, or are about to

	failed   error // of reading; logged once
	failedAt time.Time

	// key_shared
	ahead       ahead
	pieces      []core.Entry // becomes fresh
	cutting     []core.Entry // scratch of cut
	again       core.Entry   // the last entry that was taken apart again, and its messages
	againPieces []core.Entry
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
	r := &runner{group: g, log: l, byKey: mode == core.KeyShared, done: make(chan struct{}), seats: map[dispatch.ConsumerID]*seat{}}
	r.mail.init()
	for _, gp := range g.parts() {
		if gp.p.log != l {
			continue
		}
		if err := r.adopt(gp, mode); err != nil {
			r.abandon()
			return nil, err
		}
	}
	if !g.topic.eng.tasks.start(r.run) {
		r.abandon()
		return nil, core.ErrClosed
	}
	g.runners[l] = r
	return r, nil
}

// adopt takes over the cursor of a partition.
func (r *runner) adopt(gp *groupPart, mode core.Mode) error {
	gp.mu.Lock()
	defer gp.mu.Unlock()
	t := r.group.topic
	at := dispatch.Placement{
		Partition: gp.p.index, Partitioned: t.partitioned, Topic: t.name.String(), Turn: &r.whose,
		Grace: t.eng.cfg.FailoverGrace.Milliseconds(), Keys: r.group.keys(), Backoff: backoffOf(r.group.retry()),
	}
	s, err := dispatch.New(mode, at, gp.mu.cursor.Clone())
	if err != nil {
		return err
	}
	gp.mu.runner = r
	r.parts = append(r.parts, &runnerPart{gp: gp, state: s, ahead: ahead{node: &t.eng.ahead}})
	return nil
}

func (r *runner) abandon() {
	for _, rp := range r.parts {
		rp.gp.setRunner(nil)
	}
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
		rp.unwatch = rp.gp.p.watch.subscribe(r.mail.wake)
	}
	defer r.unwatch()
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
		r.expire()
		r.retry()
		r.settleDeadLetters()
		r.drain()
		for r.turn >= 0 && r.round(ctx) {
			r.drain()
		}
		if d := r.rest(r.snapshot(false)); d > 0 {
			timer.Reset(d)
		}
	}
	r.finish()
}

// expire tells the states what time it is.
func (r *runner) expire() {
	r.now = r.log.eng.now().UnixMilli()
	for _, rp := range r.parts {
		rp.state.Expire(r.now)
	}
	r.lend()
}

// rest is how long the runner may sleep if nobody wakes it; 0: for ever.
func (r *runner) rest(unsaved bool) (d time.Duration) {
	soonest := func(t time.Duration) {
		if d == 0 || t < d {
			d = t
		}
	}
	if unsaved {
		soonest(snapshotEvery)
	}
	if r.stuck() {
		soonest(retryEvery)
	}
	if r.lent || r.group.leases.mixed.Load() {
		soonest(leaseCheck)
	}
	for _, rp := range r.parts {
		if rp.wake != 0 {
			soonest(max(time.Millisecond, time.Duration(rp.wake-r.now)*time.Millisecond))
		}
	}
	return d
}

func (r *runner) unwatch() {
	for _, rp := range r.parts {
		rp.unwatch()
	}
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
	if rp.lent { // its state is not asked until it comes back
		rp.changed = true
	}
	end := rp.gp.p.committed.Load() // what does not exist cannot be acknowledged
	switch in.kind {
	case inputAck:
		rp.state.Ack(in.consumer, core.Range{From: in.a, To: min(in.b, end)})
	case inputAckThrough:
		rp.state.AckThrough(in.consumer, min(in.a, end))
	case inputNack:
		rp.state.Nack(in.consumer, in.a, in.b)
	case inputCommit:
		rp.commit(min(in.a, end))
	case inputHold:
		rp.state.Hold(in.consumer, in.a, in.b)
	case inputCall, inputNackAll: // for the whole runner
	}
}

// commit is a queue-based member's word on a partition. While it has the partition, the state only keeps the cursor.
func (rp *runnerPart) commit(next core.Offset) {
	if !rp.lent {
		rp.state.AckThrough(0, next)
		return
	}
	cur := rp.state.Cursor()
	cur = cur.Clone()
	if cur.AckThrough(next) {
		rp.state.Reset(cur)
		rp.changed = true
		rp.gp.mark.Store(cur.Next)
	}
}

// consumer is what the states know of the one who sits here.
func (s *seat) consumer() dispatch.Consumer {
	m := &s.c.member
	return dispatch.Consumer{ID: s.c.id, Name: m.Name, Priority: m.Priority, Account: &s.account, Timeout: m.AckTimeout.Milliseconds(), Slots: m.Slots}
}

func (r *runner) join(s *seat) error {
	c := s.c
	var joined []*runnerPart
	for _, rp := range r.parts {
		if !c.Reads(rp.gp.p.index) {
			continue
		}
		if err := rp.join(s); err != nil {
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
	r.sift()
	return nil
}

// sift finds what the group wants: everything as soon as one member does. Those that filter do it alike, since their group is
// named after what they want.
func (r *runner) sift() {
	for _, s := range r.order {
		if r.filter = s.c.member.Filter; r.filter == nil {
			return
		}
	}
}

func (rp *runnerPart) join(s *seat) error {
	return rp.state.Join(s.consumer())
}

// grow takes on the partitions that the topic got and the runner does not have yet.
func (r *runner) grow(mode core.Mode) error {
	for _, gp := range r.group.parts() {
		if gp.p.log != r.log || slices.ContainsFunc(r.parts, func(rp *runnerPart) bool { return rp.gp == gp }) {
			continue
		}
		if err := r.adopt(gp, mode); err != nil {
			return err
		}
		rp := r.parts[len(r.parts)-1]
		rp.unwatch = gp.p.watch.subscribe(r.mail.wake)
		for _, s := range r.order {
			if !s.c.Reads(gp.p.index) {
				continue
			}
			if err := rp.join(s); err != nil {
				return err
			}
		}
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
	r.recent = nil
	for i := range r.order {
		if r.order[i] == s {
			r.order = append(r.order[:i:i], r.order[i+1:]...)
			break
		}
	}
	r.sift()
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
		r.copy(rp, now)
	}
	return later
}

func (r *runner) copy(rp *runnerPart, now time.Time) {
	cur := rp.state.Cursor()
	gp := rp.gp
	gp.mu.Lock()
	gp.mu.cursor, gp.mu.committed = cur.Clone(), true
	gp.mu.version++
	gp.group.changed()
	gp.mu.Unlock()
	gp.mark.Store(cur.Next)
	rp.changed, rp.copied = false, now
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
		rp.ahead.clear()
	}
	r.snapshot(true)
	r.abandon()
}
