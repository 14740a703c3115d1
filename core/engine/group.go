package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"isthmus/core"
	"isthmus/core/dispatch"
	"isthmus/core/meta"
)

// StartAt says where the cursor of a new group is placed.
type StartAt uint8

// The places to start at.
const (
	Latest StartAt = iota
	Earliest
	AtOffset
	AtTime
)

// Start is where and how a group begins.
type Start struct {
	At         StartAt
	Offset     core.Offset // AtOffset, clamped to what is retained
	Time       int64       // AtTime, unix ms
	NonDurable bool        // a reader: in memory, retains nothing, gone with its last consumer
}

// Group is a set of named readers that share a topic and one cursor per partition.
type Group struct {
	topic   *Topic
	name    string
	durable bool
	list    atomic.Pointer[[]*groupPart] // by partition; replaced under Engine.meta when the topic grows

	// changes lets one membership change happen at a time. It is held while a runner is asked, so nobody may join or
	// leave from inside a Sink. It is taken before Engine.meta.
	changes sync.Mutex
	nextID  uint64
	runners map[*log]*runner // guarded by changes
	gone    bool             // guarded by changes
	dying   atomic.Bool      // metadata is about to forget it
	listed  atomic.Bool      // it is among the unsaved
	retries atomic.Pointer[Retry]

	mu struct { // leaf
		sync.Mutex
		mode      core.Mode
		keys      Keys // of key_shared members
		consumers []*Consumer
	}
	roster roster
	leases leases
	lull   lull
}

// groupPart is a group's place in one partition. While a runner lives, its state has the true cursor, and what is here is
// a snapshot for the saver.
type groupPart struct {
	group *Group
	p     *Partition
	mark  atomic.Int64 // everything below is acknowledged

	mu struct { // leaf
		sync.Mutex
		cursor         core.Cursor
		committed      bool // somebody acknowledged or committed something
		version, saved uint64
		runner         *runner // owns the cursor while it lives
		lease          lease
	}
}

// Name returns the group's name.
func (g *Group) Name() string { return g.name }

// Topic returns the group's topic.
func (g *Group) Topic() *Topic { return g.topic }

// Durable tells whether the group outlives its consumers and holds messages for them.
func (g *Group) Durable() bool { return g.durable }

// Mode returns how its consumers share messages, as the last first one asked.
func (g *Group) Mode() core.Mode {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.mode
}

func (g *Group) keys() Keys {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.keys
}

// Consumers returns the connected consumers in order of joining.
func (g *Group) Consumers() []*Consumer {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.mu.consumers)
}

// Mark returns the offset below which everything of a partition is acknowledged.
func (g *Group) Mark(partition int32) core.Offset { return g.parts()[partition].mark.Load() }

// Group returns a group; the error wraps ErrGroupNotFound.
func (t *Topic) Group(name string) (*Group, error) {
	t.mu.RLock()
	g := t.mu.groups[name]
	t.mu.RUnlock()
	if g == nil {
		return nil, fmt.Errorf("group %.80q of %s: %w", name, t.name, core.ErrGroupNotFound)
	}
	return g, nil
}

// Groups returns the topic's groups in order of name. The slice is shared: nobody may change it.
func (t *Topic) Groups() []*Group {
	t.mu.RLock()
	gs := t.mu.sorted
	t.mu.RUnlock()
	if gs != nil {
		return gs
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	gs = slices.AppendSeq(make([]*Group, 0, len(t.mu.groups)), maps.Values(t.mu.groups))
	slices.SortFunc(gs, func(a, b *Group) int { return strings.Compare(a.name, b.name) })
	t.mu.sorted = gs
	return gs
}

const maxGroupName = 512

// BeginGroup returns the group, or begins it: its cursors are placed now, and a durable one is in the metadata store on
// return, so that what is acknowledged to a producer from here on is kept for it.
func (t *Topic) BeginGroup(name string, s Start) (*Group, error) {
	if g, err := t.Group(name); err == nil && !g.dying.Load() {
		return g, nil
	}
	if strings.TrimSpace(name) == "" || len(name) > maxGroupName || strings.Contains(name, separator) {
		return nil, fmt.Errorf("group name %.80q: %w", name, core.ErrInvalid)
	}
	if t.Volatile() {
		s = Start{At: Latest, NonDurable: true}
	}
	g := newGroup(t, name, !s.NonDurable)
	for _, gp := range g.parts() {
		at, err := gp.p.start(s)
		if err != nil {
			return nil, err
		}
		gp.place(meta.CursorRecord{Cursor: core.Cursor{Next: at}})
	}
	t.eng.meta.Lock()
	defer t.eng.meta.Unlock()
	if t.removed {
		return nil, fmt.Errorf("%s: %w", t.name, core.ErrTopicNotFound)
	}
	if g, err := t.Group(name); err == nil {
		return g, nil
	}
	g.extend(t.parts()) // it may have grown meanwhile
	var b batch
	for _, gp := range g.parts() {
		gp.mu.version++
		gp.group.changed()
		gp.collect(&b)
	}
	if g.durable {
		b.add(g.record(), func() {})
		if err := t.eng.cfg.Meta.Apply(b.writes); err != nil {
			return nil, fmt.Errorf("begin group %s of %s: %w", name, t.name, err)
		}
		for _, f := range b.after {
			f()
		}
	}
	t.mu.Lock()
	t.mu.groups[name], t.mu.sorted = g, nil
	t.mu.Unlock()
	t.eng.cfg.Log.Info("group begun", "topic", t.name.String(), "group", name, "durable", g.durable)
	return g, nil
}

func newGroup(t *Topic, name string, durable bool) *Group {
	g := &Group{topic: t, name: name, durable: durable, runners: map[*log]*runner{}}
	g.leases.init()
	g.extend(t.parts())
	return g
}

// parts are the group's places, by partition. The slice is immutable.
func (g *Group) parts() []*groupPart { return *g.list.Load() }

// extend adds places for the partitions that the group does not have yet: it begins there at offset 0. The caller holds
// Engine.meta, or knows the group alone.
func (g *Group) extend(ps []*Partition) {
	var now []*groupPart
	if old := g.list.Load(); old != nil {
		now = *old
	}
	now = now[:len(now):len(now)]
	for _, p := range ps[len(now):] {
		now = append(now, &groupPart{group: g, p: p})
	}
	g.list.Store(&now)
}

func (p *Partition) start(s Start) (core.Offset, error) {
	first, end := p.Bounds()
	switch s.At {
	case Earliest:
		return first, nil
	case AtOffset:
		return min(max(s.Offset, first), end), nil
	case AtTime:
		return p.OffsetAt(p.log.eng.tasks.ctx, s.Time)
	default: // Latest
		return end, nil
	}
}

// Reset moves a group's cursor of one partition: next (clamped to what is retained) is the next offset delivered. What was
// acknowledged beyond it and what is in flight is forgotten; consumers stay. In effect on return, saved at the next tick.
func (g *Group) Reset(partition int32, next core.Offset) error {
	return g.reset(partition, next, (*dispatch.Leases).Reset)
}

// reset tells the leases in the way of note.
func (g *Group) reset(partition int32, next core.Offset, note func(b *dispatch.Leases, i int32, mark core.Offset, now int64)) error {
	p := g.topic.Partition(partition)
	if p == nil {
		return fmt.Errorf("%s has no partition %d: %w", g.topic.name, partition, core.ErrInvalid)
	}
	first, end := p.Bounds()
	cur := core.Cursor{Next: min(max(next, first), end)}
	g.changes.Lock()
	defer g.changes.Unlock()
	if g.gone {
		return fmt.Errorf("group %s of %s: %w", g.name, g.topic.name, core.ErrGroupNotFound)
	}
	g.touch()
	defer g.withLeases(func(b *dispatch.Leases, now int64) { note(b, partition, cur.Next, now) })
	if r := g.runners[p.log]; r != nil {
		return r.ask(func() error { return r.reset(partition, cur) })
	}
	gp := g.parts()[partition]
	gp.place(meta.CursorRecord{Cursor: cur, Committed: true})
	gp.mu.Lock()
	defer gp.mu.Unlock()
	gp.mu.version++
	gp.group.changed()
	return nil
}

// DeleteGroup ends a group: its consumers are detached, its cursors are forgotten.
func (t *Topic) DeleteGroup(name string) error {
	g, err := t.Group(name)
	if err != nil {
		return err
	}
	g.changes.Lock()
	defer g.changes.Unlock()
	if g.gone {
		return fmt.Errorf("group %s of %s: %w", name, t.name, core.ErrGroupNotFound)
	}
	g.end(fmt.Errorf("group %s deleted: %w", name, core.ErrGroupNotFound))
	return g.forget()
}

// end stops the runners, then tells every consumer, once. The caller holds g.changes.
func (g *Group) end(err error) {
	for _, r := range g.runners {
		r.stop()
	}
	clear(g.runners)
	g.mu.Lock()
	left := g.mu.consumers
	g.mu.consumers = nil
	g.mu.Unlock()
	if len(left) > 0 {
		g.touch()
	}
	for _, c := range left {
		c.member.Sink.Detached(err)
	}
}

// forget removes the group from the metadata and the registry; when metadata fails it stays, and can be deleted again.
// The caller holds g.changes.
func (g *Group) forget() error {
	t := g.topic
	g.dying.Store(true)
	t.eng.meta.Lock()
	defer t.eng.meta.Unlock()
	if g.durable && !t.removed { // a topic of the same name may have a group of the same name by now
		if err := t.eng.cfg.Meta.Apply(g.forgetting()); err != nil {
			g.dying.Store(false)
			return fmt.Errorf("delete group %s of %s: %w", g.name, t.name, err)
		}
	}
	g.gone = true
	t.mu.Lock()
	delete(t.mu.groups, g.name)
	t.mu.sorted = nil
	t.mu.Unlock()
	return nil
}

// forgetting are the writes that make metadata forget the group.
func (g *Group) forgetting() []meta.Write {
	ws := []meta.Write{{Bucket: meta.Groups, Key: g.key()}}
	for _, gp := range g.parts() {
		ws = append(ws, meta.Write{Bucket: meta.Cursors, Key: gp.key()})
	}
	return ws
}

// detachAll ends every group's consumers at shutdown.
func (e *Engine) detachAll(err error) {
	for _, t := range e.Topics() {
		for _, g := range t.Groups() {
			g.changes.Lock()
			g.gone = true
			g.end(err)
			g.changes.Unlock()
		}
	}
}

func (gp *groupPart) setRunner(r *runner) {
	gp.mu.Lock()
	defer gp.mu.Unlock()
	gp.mu.runner = r
}
