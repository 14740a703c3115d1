package engine

import (
	"slices"
	"sync"
	"time"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// presumedAlive is how long a member of before a restart counts as one without having been heard of: were the list
// shorter, the first client to come back would take every queue.
const presumedAlive = 60 * time.Second

// roster is the list of a group's queue-based members: clients that share out the queues among themselves, from equal
// lists. The mutex is a leaf.
type roster struct {
	mu struct {
		sync.Mutex
		members        map[string]time.Time // until when it is presumed alive; zero: it is
		version, saved uint64
	}
}

func (r *roster) presume(members []string, now time.Time) {
	r.mu.members = map[string]time.Time{}
	for _, m := range members {
		r.mu.members[m] = now.Add(presumedAlive)
	}
}

// touch has the group's record saved at the next tick.
func (r *roster) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.version++
}

func (r *roster) collect(g *Group, b *batch) {
	r.mu.Lock()
	v, same := r.mu.version, r.mu.version == r.mu.saved
	r.mu.Unlock()
	if same {
		return
	}
	b.add(g.record(), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.mu.saved = v
	})
}

// Heartbeat notes a queue-based member as alive until Forget. It reports whether the list changed: one that was presumed
// alive for too long comes back as a new one.
func (g *Group) Heartbeat(member string) (changed bool) {
	now := g.topic.eng.now()
	g.touch()
	r := &g.roster
	r.mu.Lock()
	if r.mu.members == nil {
		r.mu.members = map[string]time.Time{}
	}
	until, known := r.mu.members[member]
	known = known && (until.IsZero() || now.Before(until))
	r.mu.members[member] = time.Time{}
	if !known {
		r.mu.version++
	}
	r.mu.Unlock()
	if !known {
		g.changed()
		g.relet()
	}
	return !known
}

// Forget takes a queue-based member off the list and frees its queue locks.
func (g *Group) Forget(member string) {
	g.touch()
	r := &g.roster
	r.mu.Lock()
	_, known := r.mu.members[member]
	if known {
		delete(r.mu.members, member)
		r.mu.version++
	}
	r.mu.Unlock()
	for i := range g.parts() {
		g.Unlock(int32(i), member)
	}
	if known {
		g.changed()
		g.relet()
	}
}

// Members returns the queue-based members in order of name, those of before a restart for a minute.
func (g *Group) Members() []string {
	now := g.topic.eng.now()
	r := &g.roster
	r.mu.Lock()
	defer r.mu.Unlock()
	ms := make([]string, 0, len(r.mu.members))
	for m, until := range r.mu.members {
		if until.IsZero() || now.Before(until) {
			ms = append(ms, m)
		}
	}
	slices.Sort(ms)
	return ms
}

// lease says who has a partition of a group. holder is guarded by the part's mutex.
type lease struct {
	holder string    // who locked it, for orderly consumption
	until  time.Time // when the lock ends unless renewed
}

// Lock gives a partition to a queue-based member for a while, or renews it; false when somebody else has it, or its lease.
func (g *Group) Lock(partition int32, member string, ttl time.Duration) bool {
	if !g.Pull(partition, member) { // whoever asks in vain takes no lease
		return false
	}
	now := g.topic.eng.now()
	gp := g.parts()[partition]
	gp.mu.Lock()
	defer gp.mu.Unlock()
	l := &gp.mu.lease
	if l.holder != "" && l.holder != member && now.Before(l.until) {
		return false
	}
	l.holder, l.until = member, now.Add(ttl)
	return true
}

// Unlock frees a partition that the member has locked.
func (g *Group) Unlock(partition int32, member string) {
	gp := g.parts()[partition]
	gp.mu.Lock()
	mine := gp.mu.lease.holder == member
	if mine {
		gp.mu.lease.holder = ""
	}
	gp.mu.Unlock()
	if mine {
		g.withLeases(func(b *dispatch.Leases, now int64) { b.Unlock(partition, member, now) })
	}
}

// LockedBy returns who has locked a partition, or "".
func (g *Group) LockedBy(partition int32) string {
	now := g.topic.eng.now()
	gp := g.parts()[partition]
	gp.mu.Lock()
	defer gp.mu.Unlock()
	if l := gp.mu.lease; now.Before(l.until) {
		return l.holder
	}
	return ""
}

// Lease returns who has a partition for itself: the queue-based member that pulls it; "" when nobody does, or the group's
// other consumers have it.
func (g *Group) Lease(partition int32) (holder string) {
	g.withLeases(func(b *dispatch.Leases, _ int64) { holder = b.Holder(partition) })
	if holder == dispatch.Pool {
		return ""
	}
	return holder
}

// Committed returns the offset that a queue-based member goes on from; false when nothing was committed or acknowledged
// in this partition yet.
func (g *Group) Committed(partition int32) (core.Offset, bool) {
	gp := g.parts()[partition]
	gp.mu.Lock()
	defer gp.mu.Unlock()
	return gp.mark.Load(), gp.mu.committed
}

// Commit acknowledges everything of a partition below next. A commit below the mark changes nothing, one beyond the log
// counts as its end. While consumers are joined it means what their mode makes of a cumulative acknowledgement, unless the
// partition is a queue-based member's.
func (g *Group) Commit(partition int32, next core.Offset) {
	g.touch()
	gp := g.parts()[partition]
	next = min(next, gp.p.committed.Load())
	for r := gp.commit(next); r != nil; r = gp.commit(next) {
		if r.mail.post(input{kind: inputCommit, partition: partition, a: next}) {
			return
		}
		<-r.done // it was ending
	}
}

// commit moves the cursor, unless a runner owns it.
func (gp *groupPart) commit(next core.Offset) *runner {
	gp.mu.Lock()
	defer gp.mu.Unlock()
	if gp.mu.runner != nil {
		return gp.mu.runner
	}
	if gp.mu.cursor.AckThrough(next) || !gp.mu.committed {
		gp.mu.committed = true
		gp.mu.version++
		gp.group.changed()
	}
	gp.mark.Store(gp.mu.cursor.Next)
	return nil
}
