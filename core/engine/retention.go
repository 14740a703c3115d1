package engine

import (
	"context"
	"time"

	"isthmus/core"
)

// trimEvery is after how many rounds of the warden journals are trimmed.
const trimEvery = 10

// warden is the goroutine that applies policies: it ends messages that are too old, bounds backlogs, watches the disk and
// trims journals.
func (e *Engine) warden(ctx context.Context) {
	tick := time.NewTicker(e.cfg.SaveEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.watchStorage()
		for _, t := range e.Topics() {
			if err := t.sweep(ctx, e.now()); err != nil && ctx.Err() == nil {
				e.cfg.Log.Error("policy not applied", "topic", t.name.String(), "err", err)
			}
		}
		if n%trimEvery == 0 || e.full.Load() {
			e.trim(ctx)
		}
		if n%trimEvery == 0 {
			e.expireGroups(e.now())
			e.removeIdle(e.now())
		}
	}
}

// sweep applies the topic's TTL and backlog to its durable groups, with consumers or without.
func (t *Topic) sweep(ctx context.Context, now time.Time) error {
	p := t.policy()
	if p.TTL == 0 && !p.Backlog.limited() {
		return nil
	}
	if p.TTL > 0 {
		if err := t.expire(ctx, now, p.TTL, reasonTTL); err != nil {
			return err
		}
	}
	if !p.Backlog.limited() {
		return nil
	}
	if g := t.gate.Load(); g != nil {
		return g.sweep(ctx, t, now)
	}
	if p.Backlog.Age > 0 {
		if err := t.expire(ctx, now, p.Backlog.Age, reasonAge); err != nil {
			return err
		}
	}
	if p.Backlog.Size > 0 {
		t.shrink(p.Backlog.Size)
	}
	return nil
}

// Why a group lost messages; label of a metric.
const (
	reasonTTL  = "ttl"
	reasonAge  = "backlog_age"
	reasonSize = "backlog_size"
)

// expire moves every durable group past what is older than an age.
// Spec: Pulsar message TTL: per subscription, moves mark-delete; not for non-durable ones
func (t *Topic) expire(ctx context.Context, now time.Time, age time.Duration, reason string) error {
	for _, p := range t.parts() {
		at, err := p.agerOf(reason).advance(ctx, p, now, age)
		if err != nil {
			return err
		}
		for _, g := range t.Groups() {
			if g.durable {
				g.pass(p, at, reason)
			}
		}
	}
	return nil
}

// sweep notes whether a group is too far behind in time, and measures how far in bytes.
func (g *gate) sweep(ctx context.Context, t *Topic, now time.Time) error {
	g.measure(t)
	if g.backlog.Age == 0 {
		return nil
	}
	aged := false
	for _, p := range t.parts() {
		at, err := p.agerOf(reasonAge).advance(ctx, p, now, g.backlog.Age)
		if err != nil {
			return err
		}
		low, _ := p.needed()
		aged = aged || low < at
	}
	if g.aged.Swap(aged) != aged {
		t.eng.cfg.Log.Warn("backlog", "topic", t.name.String(), "too_old", aged)
	}
	return nil
}

// slack is how much of a backlog's size is left when the oldest messages were dropped, so that it is not full at once.
// Spec: Pulsar consumer_backlog_eviction: down to nine tenths of the quota
const slack = 0.9

// shrink moves groups whose backlog is larger than size forward, in all partitions alike.
func (t *Topic) shrink(size int64) {
	for _, g := range t.Groups() {
		if !g.durable {
			continue
		}
		parts, total := g.weigh()
		if total <= size {
			continue
		}
		for i, keep := range cut(parts, int64(float64(size)*slack)) {
			p := g.parts()[i].p
			g.pass(p, p.last(keep), reasonSize)
		}
	}
}

// pass moves the group past everything of a partition before an offset, whoever holds it, counts what nobody had
// acknowledged, and says so.
func (g *Group) pass(p *Partition, to core.Offset, reason string) {
	if g.parts()[p.index].mark.Load() >= to {
		return
	}
	n := g.advance(p.index, to)
	if n == 0 {
		return
	}
	e := p.log.eng
	e.metrics.GroupDropped.WithLabelValues(reason).Add(float64(n))
	log := e.cfg.Log.Warn
	if reason == reasonTTL {
		log = e.cfg.Log.Debug
	}
	log("messages dropped", "topic", p.topic.name.String(), "partition", p.index, "group", g.name, "reason", reason, "messages", n, "before", to)
}

// advance acknowledges everything of a partition below next, also what consumers hold, and returns how many messages
// that were.
func (g *Group) advance(partition int32, next core.Offset) (n int64) {
	gp := g.parts()[partition]
	next = min(next, gp.p.committed.Load())
	for {
		r, n := gp.advance(next)
		if r == nil {
			return n
		}
		err := r.ask(func() error { n = r.advance(gp, next); return nil })
		if err == nil {
			return n
		}
		<-r.done // it was ending
	}
}

// advance moves the cursor, unless a runner owns it.
func (gp *groupPart) advance(next core.Offset) (r *runner, n int64) {
	gp.mu.Lock()
	defer gp.mu.Unlock()
	if gp.mu.runner != nil {
		return gp.mu.runner, 0
	}
	n = gp.mu.cursor.Unacked(core.Range{From: gp.mu.cursor.Next, To: next})
	if gp.mu.cursor.AckThrough(next) {
		gp.mu.version++
		gp.group.changed()
		gp.mark.Store(gp.mu.cursor.Next)
	}
	return nil, n
}

// advance is called on the runner's goroutine.
func (r *runner) advance(gp *groupPart, next core.Offset) (n int64) {
	for _, rp := range r.parts {
		if rp.gp != gp {
			continue
		}
		cur := rp.state.Cursor()
		all := core.Range{From: cur.Next, To: next}
		n = cur.Unacked(all)
		rp.state.Skip(all)
		rp.changed = true
		gp.mark.Store(rp.state.Cursor().Next)
	}
	return n
}

// dead is the commit time, unix ms, up to which messages are too old to be delivered to the group.
func (g *Group) dead(now int64) int64 {
	ttl := g.topic.policy().TTL
	if ttl == 0 || !g.durable {
		return never
	}
	return now - ttl.Milliseconds()
}

// Expired tells whether an entry is past its own expiry, or its topic's TTL, at a time in unix ms.
func (p *Partition) Expired(e *core.Entry, now int64) bool {
	ttl := p.topic.policy().TTL
	return e.Expiry != 0 && e.Expiry <= now || ttl > 0 && e.Commit <= now-ttl.Milliseconds()
}
