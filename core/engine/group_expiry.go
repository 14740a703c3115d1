package engine

import (
	"errors"
	"sync/atomic"
	"time"

	"isthmus/core"
)

// lull is since when a group has nobody and moves nowhere. Owned by the warden, but for declared.
type lull struct {
	declared atomic.Bool // by the configuration: never forgotten
	marks    core.Offset // of all partitions together
	since    time.Time
}

// expireGroups deletes durable groups that clients have begun, and that have had no consumer and moved nowhere for as long as
// the configuration says: what they hold would be held for ever. A restart begins the count again.
// Spec: Pulsar subscriptionExpirationTimeMinutes
func (e *Engine) expireGroups(now time.Time) {
	patience := e.cfg.Defaults.GroupExpiry
	if patience <= 0 {
		return
	}
	for _, t := range e.Topics() {
		for _, g := range t.Groups() {
			if !g.durable || g.lull.declared.Load() || !g.lull.over(now, g, patience) {
				continue
			}
			if err := g.expire(); err != nil && !errors.Is(err, core.ErrGroupNotFound) && !errors.Is(err, core.ErrBusy) {
				e.cfg.Log.Error("idle group not deleted", "topic", t.name.String(), "group", g.name, "err", err)
			}
		}
	}
}

// over tells whether the group has had nobody, and stood still, for that long.
func (l *lull) over(now time.Time, g *Group, patience time.Duration) bool {
	marks := core.Offset(0)
	for _, gp := range g.parts() {
		marks += gp.mark.Load()
	}
	if l.since.IsZero() || l.marks != marks || g.used() {
		l.marks, l.since = marks, now
	}
	return now.Sub(l.since) >= patience
}

func (g *Group) used() bool { return len(g.Consumers()) > 0 || len(g.Members()) > 0 }

// expire deletes the group unless somebody has come.
func (g *Group) expire() error {
	g.changes.Lock()
	defer g.changes.Unlock()
	if g.gone || g.used() {
		return core.ErrBusy
	}
	backlog, _ := g.Backlog()
	g.end(core.ErrGroupNotFound)
	if err := g.forget(); err != nil {
		return err
	}
	g.topic.eng.cfg.Log.Info("idle group deleted", "topic", g.topic.name.String(), "group", g.name, "backlog", backlog)
	return nil
}
