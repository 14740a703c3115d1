package engine

import (
	"errors"
	"sync/atomic"
	"time"

	"isthmus/core"
)

// lull is for how long a group has had nobody. Only time in which the gateway ran counts: clients cannot come to one that is
// off, and a wall clock that is set does not age anything. What policies do to the group's marks is nobody's use of it.
type lull struct {
	declared atomic.Bool  // by the configuration: never forgotten
	touched  atomic.Bool  // by a client, since the warden's last look
	idle     atomic.Int64 // as of that look, in ns; restored by start-up, then written by the warden alone
	seen     time.Time    // when that look was; owned by the warden
	saved    int64        // what metadata was last asked to hold of idle; owned by the warden
}

// touch notes that a client uses the group, even if none is left when the warden looks.
func (g *Group) touch() {
	l := &g.lull
	if l.touched.Load() || l.touched.Swap(true) || l.idle.Load() == 0 {
		return
	}
	g.roster.touch()
	g.changed()
}

// record is what metadata is to hold.
func (l *lull) record() time.Duration {
	if l.touched.Load() {
		return 0
	}
	return time.Duration(l.idle.Load())
}

func (l *lull) restore(idle time.Duration) {
	l.idle.Store(int64(idle))
	l.saved = int64(idle)
}

// look brings idle up to date. The first look only begins to count.
func (l *lull) look(now time.Time, used bool) (idle time.Duration) {
	switch {
	case l.touched.Swap(false) || used:
		l.idle.Store(0)
	case !l.seen.IsZero():
		l.idle.Add(int64(max(0, now.Sub(l.seen))))
	}
	l.seen = now
	return time.Duration(l.idle.Load())
}

// remember has metadata hold how long the group has had nobody when that is shorter than what it holds, or longer by least.
func (g *Group) remember(least time.Duration) {
	l := &g.lull
	idle := l.idle.Load()
	if idle == l.saved || idle > l.saved && idle-l.saved < int64(least) {
		return
	}
	l.saved = idle
	g.roster.touch()
	g.changed()
}

// expireGroups deletes durable groups that clients have begun, and that have had nobody for as long as their topic says: what
// they hold would be held for ever.
// Spec: Pulsar subscriptionExpirationTimeMinutes
func (e *Engine) expireGroups(now time.Time) {
	for _, t := range e.Topics() {
		patience := t.policy().GroupExpiry
		if patience <= 0 {
			continue
		}
		for _, g := range t.Groups() {
			if !g.durable || g.lull.declared.Load() {
				continue
			}
			first := g.lull.seen.IsZero()
			if idle := g.lull.look(now, g.used()); idle < patience || first {
				g.remember(min(patience/16, 10*time.Minute)) // that much is counted again after a crash
			} else if err := g.expire(); err != nil && !errors.Is(err, core.ErrGroupNotFound) && !errors.Is(err, core.ErrBusy) {
				e.cfg.Log.Error("idle group not deleted", "topic", t.name.String(), "group", g.name, "err", err)
			}
		}
	}
}

// rememberIdle does so for all groups, at shutdown, when the warden has ended.
func (e *Engine) rememberIdle() {
	now := e.now()
	for _, t := range e.Topics() {
		if t.policy().GroupExpiry <= 0 {
			continue
		}
		for _, g := range t.Groups() {
			if g.durable && !g.lull.declared.Load() {
				g.lull.look(now, g.used())
				g.remember(0)
			}
		}
	}
}

func (g *Group) used() bool { return len(g.Consumers()) > 0 || len(g.Members()) > 0 }

// expire deletes the group unless somebody has come.
func (g *Group) expire() error {
	g.changes.Lock()
	defer g.changes.Unlock()
	if g.gone || g.used() || g.lull.touched.Load() {
		return core.ErrBusy
	}
	backlog, _ := g.Backlog()
	g.end(core.ErrGroupNotFound)
	if err := g.forget(); err != nil {
		return err
	}
	g.topic.eng.metrics.expiredGroups.Inc()
	g.topic.eng.cfg.Log.Info("idle group deleted", "topic", g.topic.name.String(), "group", g.name, "backlog", backlog)
	return nil
}
