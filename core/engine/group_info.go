package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// GroupInfo is how a group stands, for people and the API: plain data.
type GroupInfo struct {
	Mode          core.Mode
	Durable       bool
	Backlog       int64         // messages that are not acknowledged, in flight or not
	InFlight      int64         // of them, those at a member
	OldestUnacked time.Duration // age of the oldest one; 0: there is none
	Stall         string        // why the group does not go on although there is backlog; "": it does
	Parts         []GroupPartInfo
	Members       []MemberInfo
}

// GroupPartInfo is a group's place in one partition.
type GroupPartInfo struct {
	Index             int32
	Mark, End         core.Offset // everything below Mark is acknowledged; End is the end of the log
	Backlog, InFlight int64
	Waiting           int64 // messages that wait for redelivery
	Holes             int   // acknowledged ranges beyond Mark
	Holder            string
	Attempts          int32 // the highest among what is in flight or waits for redelivery
	OldestUnacked     time.Duration
	Stall             string
}

// MemberInfo is a member of a group: a consumer, or a queue-based client, which takes what it wants by itself.
type MemberInfo struct {
	Name, Protocol string
	Priority       int
	Permits        int64 // messages it may still be sent
	InFlight       int64
	Delivered      int64
	Holds          []int32 // partitions it is the one to receive from, or has locked or leased
	Slots          string  // key_shared: what it owns
}

// Info tells how the group stands. It asks the runners and reads the oldest unacknowledged entry of each partition.
func (g *Group) Info() GroupInfo {
	ctx := g.topic.eng.tasks.ctx
	info := GroupInfo{Mode: g.Mode(), Durable: g.durable}
	members := map[dispatch.ConsumerID]*MemberInfo{}
	order := g.Consumers()
	for _, c := range order {
		members[c.id] = &MemberInfo{
			Name: c.member.Name, Protocol: c.member.Protocol, Priority: c.member.Priority,
			Permits: c.credit.Load(), Delivered: c.handed.Load(),
		}
	}
	asked := map[*runner]bool{}
	looks := map[int32]partLook{}
	for _, gp := range g.parts() {
		gp.mu.Lock()
		r := gp.mu.runner
		gp.mu.Unlock()
		if r == nil || asked[r] {
			continue
		}
		asked[r] = true
		_ = r.ask(func() error { r.look(looks, members); return nil }) // one that has ended has nothing to say
	}
	now := g.topic.eng.now()
	pullers := g.pullers()
	for _, gp := range g.parts() {
		p := gp.info(ctx, looks[gp.p.index], now)
		if !looks[gp.p.index].known && g.Lease(gp.p.index) != "" {
			p.Stall = "" // a queue-based member pulls here
		}
		if p.Holder != "" {
			holds(members, order, p)
		}
		p.pulledBy(pullers)
		info.add(p)
	}
	for _, c := range order {
		info.Members = append(info.Members, *members[c.id])
	}
	info.Members = append(info.Members, pullers...)
	return info
}

// partLook is what a runner says of one partition.
type partLook struct {
	dispatch.Look
	cursor core.Cursor
	active string
	known  bool
}

// look collects how the runner's states stand. The runner calls it.
func (r *runner) look(looks map[int32]partLook, members map[dispatch.ConsumerID]*MemberInfo) {
	for _, rp := range r.parts {
		l := partLook{cursor: ref(rp.state.Cursor()).Clone(), known: true}
		if s, ok := rp.state.(dispatch.Looker); ok {
			l.Look = s.Look()
		} else {
			l.InFlight = int64(rp.state.InFlight())
		}
		if rp.failed != nil {
			l.Stall = fmt.Sprintf("cannot read the log: %v", rp.failed)
		}
		if s := r.seats[l.Active]; s != nil {
			l.active = s.c.member.Name
		}
		for id, n := range l.Holds {
			if m := members[id]; m != nil {
				m.InFlight += n
			}
		}
		looks[rp.gp.p.index] = l
	}
	for id, s := range r.seats {
		if m := members[id]; m != nil {
			m.Permits += s.account.Permits
		}
	}
	if s, ok := r.parts[0].state.(dispatch.Slotter); ok { // all partitions share them out alike
		for id, own := range s.Slots() {
			if m := members[id]; m != nil {
				m.Slots = slotsOf(own)
			}
		}
	}
}

// slotsOf writes ranges of key slots for people: the first of many, and how many slots they are.
func slotsOf(own []dispatch.SlotRange) string {
	const shown = 3
	var b strings.Builder
	total := uint32(0)
	for i, r := range own {
		if total += r.To - r.From + 1; i >= shown {
			continue
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d-%d", r.From, r.To)
	}
	if len(own) > shown {
		b.WriteString(",…")
	}
	fmt.Fprintf(&b, " (%d of %d)", total, core.KeySlots-1)
	return b.String()
}

func ref[T any](v T) *T { return &v }

func (gp *groupPart) info(ctx context.Context, l partLook, now time.Time) GroupPartInfo {
	cur := l.cursor
	if !l.known {
		gp.mu.Lock()
		cur = gp.mu.cursor.Clone()
		gp.mu.Unlock()
		l.Stall = noConsumer
	}
	first, end := gp.p.Bounds()
	i := GroupPartInfo{
		Index: gp.p.index, Mark: cur.Next, End: end, InFlight: l.InFlight, Waiting: l.Waiting, Holes: cur.Holes(),
		Attempts: l.Attempts, Holder: l.active,
	}
	i.Backlog = cur.Unacked(core.Range{From: max(cur.Next, first), To: end})
	if i.Backlog > i.InFlight {
		i.Stall = l.Stall
	}
	if i.Backlog > 0 {
		if es, err := gp.p.Read(ctx, max(cur.Next, first), 1, 1); err == nil && len(es) > 0 {
			i.OldestUnacked = max(0, now.Sub(time.UnixMilli(es[0].Commit)))
		}
	}
	return i
}

// noConsumer is what states say, too (core/dispatch), of a partition that nobody is sent messages of.
const noConsumer = "no consumer"

// pulledBy corrects what is said of a partition that queue-based members take from: they are no consumers of the engine's, and
// when they go on is theirs to say.
func (p *GroupPartInfo) pulledBy(members []MemberInfo) {
	alone := p.Stall == noConsumer
	if alone && len(members) > 0 {
		p.Stall = "no member has locked or pulled it"
	}
	for _, m := range members {
		if slices.Contains(m.Holds, p.Index) {
			p.Holder = cmp.Or(p.Holder, m.Name)
			if alone {
				p.Stall = ""
			}
		}
	}
}

// add counts a partition in. The group stalls as its first stalling partition does.
func (i *GroupInfo) add(p GroupPartInfo) {
	i.Parts = append(i.Parts, p)
	i.Backlog += p.Backlog
	i.InFlight += p.InFlight
	i.OldestUnacked = max(i.OldestUnacked, p.OldestUnacked)
	i.Stall = cmp.Or(i.Stall, p.Stall)
}

// holds notes a partition at the member that is the one to receive from it.
func holds(members map[dispatch.ConsumerID]*MemberInfo, order []*Consumer, p GroupPartInfo) {
	for _, c := range order {
		if c.member.Name == p.Holder && c.Reads(p.Index) {
			members[c.id].Holds = append(members[c.id].Holds, p.Index)
			return
		}
	}
}

// pullers are the queue-based members with the partitions that they locked or pulled last.
func (g *Group) pullers() (ms []MemberInfo) {
	for _, name := range g.Members() {
		m := MemberInfo{Name: name, Protocol: "rocketmq"}
		for _, gp := range g.parts() {
			if i := gp.p.index; g.LockedBy(i) == name || g.Lease(i) == name {
				m.Holds = append(m.Holds, i)
			}
		}
		ms = append(ms, m)
	}
	return ms
}

// Skip passes over the next messages of a partition that are not acknowledged, whether they are in flight or not.
func (g *Group) Skip(partition int32, messages int64) error {
	if g.topic.Partition(partition) == nil || messages < 0 {
		return fmt.Errorf("skip %d messages of partition %d of %s: %w", messages, partition, g.topic.name, core.ErrInvalid)
	}
	g.touch()
	gp := g.parts()[partition]
	for {
		gp.mu.Lock()
		r, cur := gp.mu.runner, gp.mu.cursor.Clone()
		gp.mu.Unlock()
		if r != nil {
			err := r.ask(func() error {
				for _, rp := range r.parts {
					if rp.gp == gp {
						cur = ref(rp.state.Cursor()).Clone()
					}
				}
				return nil
			})
			if err != nil {
				<-r.done
				continue
			}
		}
		g.advance(partition, passed(cur, messages, gp.p.committed.Load()))
		gp.mu.Lock()
		gp.mu.committed = true // no member's first commit goes back before it
		gp.mu.Unlock()
		g.withLeases(func(b *dispatch.Leases, now int64) { b.Skipped(partition, g.Mark(partition), now) })
		return nil
	}
}

// passed is the offset behind the next n messages that cur does not have.
func passed(cur core.Cursor, n int64, end core.Offset) core.Offset {
	at := cur.Next
	holes := slices.Collect(cur.Acked())
	for _, h := range append(holes, core.Range{From: end, To: end}) {
		if n <= h.From-at {
			return min(at+n, end)
		}
		n -= h.From - at
		at = h.To
	}
	return end
}
