package engine

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// How long a holder has for acknowledging what it was given, as long as a queue lock lives without being renewed; and
// three times the interval at which queue-based clients share out their queues.
const (
	handOver     = 60 * time.Second
	leaseSilence = 60 * time.Second
	leaseCheck   = time.Second // how often a runner of a mixed group looks at them
)

// leases is a group's book of who may take from which partition. The mutex is a leaf; mixed spares runners of plain
// groups from taking it.
type leases struct {
	mixed atomic.Bool // pullers and consumers share the group, or did at the last look
	known atomic.Bool // the book knows who is there
	turn  sync.Mutex  // no leaf: held from the look at the members until the book has it, or it might learn the older news last
	mu    struct {
		sync.Mutex
		book dispatch.Leases
	}
}

func (l *leases) init() {
	l.mu.book.HandOver, l.mu.book.Silence = handOver.Milliseconds(), leaseSilence.Milliseconds()
}

// relet brings the leases in line with the members. Whoever changed them calls it, without holding a leaf lock. A group
// that never had a queue-based member has nothing to bring in line.
func (g *Group) relet() {
	if g.leases.known.Load() || len(g.Members()) > 0 {
		g.share()
	}
}

// acquaint makes the book know of the consumers before it is asked by one that is presumed alive, or no member at all.
func (g *Group) acquaint() {
	if !g.leases.known.Load() {
		g.share()
	}
}

// share tells the book who is there, and pullers if that changed the pool.
func (g *Group) share() {
	if g.enlist() {
		g.topic.eng.poolChanged(g)
	}
}

// enlist tells whether pullers have to know.
func (g *Group) enlist() bool {
	l := &g.leases
	l.turn.Lock()
	defer l.turn.Unlock()
	pullers, pool, now := g.Members(), g.poolSize(), g.topic.eng.now().UnixMilli()
	l.mu.Lock()
	was, parts := l.mu.book.Phantoms(), g.parts()
	if !l.known.Swap(true) { // until now everything was the consumers'
		l.mu.book.Members(len(parts), nil, pool, now)
	}
	l.mu.book.Members(len(parts), pullers, pool, now)
	for _, gp := range parts {
		l.mu.book.Mark(gp.p.index, gp.mark.Load(), now)
	}
	l.mixed.Store(l.mu.book.Enforced())
	moves := l.mu.book.Moves()
	l.mu.Unlock()
	g.moved(moves)
	g.wakeRunners()
	return was != pool && len(pullers) > 0
}

// poolSize counts the clients behind the group's consumers: a Pulsar client makes one for each partition.
func (g *Group) poolSize() int {
	names := map[[2]string]bool{}
	for _, c := range g.Consumers() {
		names[[2]string{c.member.Protocol, c.member.Name}] = true
	}
	return len(names)
}

// PoolSize returns how many members of the group consume without choosing partitions by themselves. Queue-based clients
// must count them in when they share out the queues.
func (g *Group) PoolSize() int {
	g.leases.mu.Lock()
	defer g.leases.mu.Unlock()
	return g.leases.mu.book.Phantoms()
}

// OnPool has f called whenever the number of consumers beside a group's queue-based members changed. f must not block.
func (e *Engine) OnPool(f func(*Group)) {
	e.pools.mu.Lock()
	defer e.pools.mu.Unlock()
	e.pools.mu.f = append(e.pools.mu.f, f)
}

// pools are who wants to know of changed pools. The mutex is a leaf.
type pools struct {
	mu struct {
		sync.Mutex
		f []func(*Group)
	}
}

func (e *Engine) poolChanged(g *Group) {
	e.pools.mu.Lock()
	fs := e.pools.mu.f
	e.pools.mu.Unlock()
	for _, f := range fs {
		f(g)
	}
}

// moved counts and logs what changed hands in a group that pullers share with consumers.
func (g *Group) moved(moves []dispatch.Move) {
	for _, m := range moves {
		if m.From != dispatch.Pool && m.To != dispatch.Pool {
			continue
		}
		g.topic.eng.metrics.rebalances.WithLabelValues(m.Why).Inc()
		g.topic.eng.cfg.Log.Info("partition changed hands", "topic", g.topic.name.String(), "group", g.name,
			"partition", m.Partition, "from", m.From, "to", m.To, "reason", m.Why)
	}
}

func (g *Group) wakeRunners() {
	for _, gp := range g.parts() {
		gp.mu.Lock()
		r := gp.mu.runner
		gp.mu.Unlock()
		if r != nil {
			r.mail.wake()
		}
	}
}

// withLeases changes the book and tells what moved.
func (g *Group) withLeases(f func(b *dispatch.Leases, now int64)) {
	l := &g.leases
	l.mu.Lock()
	l.mu.book.Grow(len(g.parts()))
	f(&l.mu.book, g.topic.eng.now().UnixMilli())
	moves := l.mu.book.Moves()
	l.mu.Unlock()
	if len(moves) > 0 {
		g.moved(moves)
		g.wakeRunners()
	}
}

// Pull tells whether a queue-based member may take from a partition now, and notes that it wants to. When not, the partition
// is to look empty: it is locked by or leased to somebody else, or about to change hands.
// Spec: appendix B 4: exclusivity does not depend on the client's arithmetic
func (g *Group) Pull(partition int32, member string) bool {
	if owner := g.LockedBy(partition); owner != "" && owner != member {
		return false
	}
	return g.mayPull(partition, member)
}

func (g *Group) mayPull(partition int32, member string) (may bool) {
	g.acquaint()
	g.withLeases(func(b *dispatch.Leases, now int64) {
		b.Expire(now)
		may = b.Pull(partition, member, now)
	})
	return may
}

// Pulled notes that the member is about to get what lies below next. False: consumers have taken the partition over since its
// Pull, so it must get nothing.
func (g *Group) Pulled(partition int32, member string, next core.Offset) (may bool) {
	g.withLeases(func(b *dispatch.Leases, _ int64) { may = b.Given(partition, member, next) })
	return may
}

// Filtered counts messages of the group that a queue-based member passed over because it does not want them.
func (g *Group) Filtered(n int) {
	if n > 0 {
		g.topic.eng.metrics.filtered.Add(float64(n))
	}
}

// CommitAs is Commit by a queue-based member. Where consumers share the group it may not acknowledge what it was never given, and
// after a reset nothing from before it: the error wraps ErrInvalid. The first commit of all may be below the place where the
// group was begun, when the member chose its own: it counts, or its successor would skip what lies between.
func (g *Group) CommitAs(partition int32, member string, next core.Offset) error {
	may := true
	g.acquaint()
	if mark, committed := g.Committed(partition); !committed && next < mark && (g.PoolSize() == 0 || g.Lease(partition) == member) {
		return g.reset(partition, next, (*dispatch.Leases).Back)
	}
	g.withLeases(func(b *dispatch.Leases, now int64) {
		b.Mark(partition, g.Mark(partition), now)
		may = b.Committable(partition, member, next)
	})
	if !may {
		g.topic.eng.metrics.refusedCommits.Inc()
		return fmt.Errorf("commit of %d in partition %d of %s by %s, which was not given so much: %w", next, partition, g.topic.name, member, core.ErrInvalid)
	}
	g.Commit(partition, next)
	return nil
}

// From returns where a queue-based member goes on that wants to pull from o on, and where the next range begins that the
// group has acknowledged. What lies below the mark is given as it is, since somebody wants it again; but not where consumers
// have had the partition meanwhile, of which the member knows nothing.
func (g *Group) From(partition int32, member string, o core.Offset) (from, until core.Offset) {
	if g.leases.known.Load() {
		g.withLeases(func(b *dispatch.Leases, now int64) {
			b.Mark(partition, g.Mark(partition), now)
			o = b.From(partition, member, o)
		})
	}
	gp := g.parts()[partition]
	gp.mu.Lock()
	defer gp.mu.Unlock()
	c := &gp.mu.cursor
	if o < c.Next || c.Holes() == 0 {
		return o, math.MaxInt64
	}
	from = c.NextUnacked(o)
	if until, some := c.NextAcked(from); some {
		return from, until
	}
	return from, math.MaxInt64
}

// lend brings a runner's partitions in line with the leases: what the pool does not have is not dispatched, and what it is
// to give up goes when nothing of it is in flight, its cursor copied before.
func (r *runner) lend() {
	g := r.group
	mixed := g.leases.mixed.Load()
	if !mixed && !r.lent {
		return
	}
	if mixed && r.now >= r.relet {
		r.relet = r.now + 5*leaseCheck.Milliseconds()
		g.relet() // members that are presumed alive may be none by now
	}
	g.withLeases(func(b *dispatch.Leases, now int64) {
		b.Expire(now)
		r.lent = false
		for _, rp := range r.parts {
			i := rp.gp.p.index
			b.Mark(i, rp.gp.mark.Load(), now)
			if !b.Serves(i) && b.Holder(i) == dispatch.Pool && rp.state.InFlight() == 0 {
				r.copy(rp, time.Now())
				b.Idle(i, now)
			}
			rp.lent = b.Enforced() && !b.Serves(i)
			r.lent = r.lent || rp.lent
		}
	})
}
