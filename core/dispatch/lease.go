package dispatch

import (
	"slices"

	"isthmus/core"
)

// Pool is the holder of the partitions that are dispatched to consumers; every other holder is a puller, a member that
// takes what it wants from the partitions that it thinks are its own. It sorts behind all real ids.
const Pool = "~pool"

// Leases say for each partition of a group who may take messages from it: one puller, or the pool of all consumers. A group
// without a pool has nothing to enforce: its pullers share out the partitions by themselves, and what they do is noted.
//
// Non-obvious: the target of a partition is arithmetic that pullers do as well, over the ids that they are told; the
// holder is who may take. A partition changes hands when its holder has acknowledged what it was given, when it is gone
// or gives up its lock, or after HandOver; nobody takes from it meanwhile. It is owned by whoever guards it: a plain
// struct without clock or lock.
type Leases struct {
	HandOver int64 // ms that a holder has for acknowledging what it was given
	Silence  int64 // ms after which a puller that does not pull loses its partitions to the pool, until it asks again

	parts   []lease
	pullers []string // sorted
	pool    int
	moves   []Move
}

type lease struct {
	holder, target string
	until          int64 // a hand-over ends at the latest; 0: there is none
	pulled         int64 // when the holder pulled last
	given          core.Offset
	mark           core.Offset
	silent         string // the puller that lost it for not pulling: it gets it back when it asks
	astray         bool   // what a puller knows of its place is old: the pool had the partition, or the group was reset
}

// Move is a partition that changed hands.
type Move struct {
	Partition int32
	From, To  string
	Why       string // members, acknowledged, gone, unlocked, timeout, silent
}

// Moves returns what changed hands since the last call.
func (l *Leases) Moves() []Move {
	ms := l.moves
	l.moves = nil
	return ms
}

// Enforced tells whether pullers and a pool share the group.
func (l *Leases) Enforced() bool { return l.pool > 0 && len(l.pullers) > 0 }

// Phantoms is how many members the pool counts for.
func (l *Leases) Phantoms() int { return l.pool }

// Members says who is there: pullers by id, and how many members the pool has.
func (l *Leases) Members(partitions int, pullers []string, pool int, now int64) {
	l.pullers = slices.Clone(pullers)
	slices.Sort(l.pullers)
	l.pool = pool
	l.Grow(partitions)
	for i := range l.parts {
		p := &l.parts[i]
		if !l.there(p.silent) {
			p.silent = ""
		}
		l.aim(i, now)
	}
}

// aim finds a partition's target, and begins its hand-over if that is somebody else.
func (l *Leases) aim(i int, now int64) {
	p := &l.parts[i]
	if p.target = l.average(i); p.target != "" && p.target == p.silent {
		p.target = Pool
	}
	switch {
	case !l.there(p.holder):
		l.hand(i, "gone", now)
	case l.pool == 0, p.target == p.holder:
		p.until = 0
	case p.until == 0:
		p.until = now + l.HandOver
		l.settle(i, now)
	}
}

// Grow makes room for so many partitions.
func (l *Leases) Grow(partitions int) {
	for len(l.parts) < partitions {
		l.parts = append(l.parts, lease{})
	}
}

// there tells whether a holder is a member.
func (l *Leases) there(holder string) bool {
	if holder == Pool {
		return l.pool > 0
	}
	_, found := slices.BinarySearch(l.pullers, holder)
	return found
}

// average is who a partition should go to: pullers in order of their ids, then the pool as often as it has members, each
// a block of partitions, the first ones one longer. Without a pool it is for the pullers to say.
// Spec: RocketMQ AllocateMessageQueueAveragely@5.x
func (l *Leases) average(i int) string {
	members := len(l.pullers) + l.pool
	if l.pool == 0 || members == 0 {
		return ""
	}
	each, longer := len(l.parts)/members, len(l.parts)%members
	k := 0
	if first := longer * (each + 1); i < first {
		k = i / (each + 1)
	} else {
		k = longer + (i-first)/each
	}
	if k < len(l.pullers) {
		return l.pullers[k]
	}
	return Pool
}

// hand gives a partition to its target.
func (l *Leases) hand(i int, why string, now int64) {
	p := &l.parts[i]
	if p.holder != p.target {
		l.moves = append(l.moves, Move{int32(i), p.holder, p.target, why})
	}
	p.holder, p.until, p.pulled, p.given = p.target, 0, now, p.mark
	p.astray = p.astray || p.holder == Pool
}

// settle ends a hand-over from a puller that has acknowledged all that it was given.
func (l *Leases) settle(i int, now int64) {
	if p := &l.parts[i]; p.until != 0 && p.holder != Pool && p.mark >= p.given {
		l.hand(i, "acknowledged", now)
	}
}

// Pull tells whether a puller may take from a partition now, and notes that it wants to.
func (l *Leases) Pull(i int32, puller string, now int64) bool {
	p := &l.parts[i]
	if p.silent == puller {
		p.silent = ""
		l.aim(int(i), now)
	}
	if l.pool == 0 {
		if p.holder != puller {
			p.holder, p.given = puller, p.mark
		}
		p.pulled = now
		return true
	}
	if p.holder != puller {
		return false
	}
	p.pulled = now // also while it is to give it up: it may stay its own after all
	return p.until == 0
}

// From returns where a puller may go on that wants to from o on. Its own idea of its place may be from before somebody else
// had the partition, where a pool shares the group, or from before a reset: so it goes on no further than it was given, since
// what lies between may have come back unacknowledged, and not below the mark, where all is. Without a pool that is said
// once; then pullers go wherever they want.
func (l *Leases) From(i int32, puller string, o core.Offset) core.Offset {
	p := &l.parts[i]
	if l.pool == 0 && !p.astray || p.holder != puller {
		return o
	}
	p.astray = l.pool > 0
	return max(min(o, p.given), p.mark)
}

// Given notes that a puller is about to get what lies below next. False: the partition has changed hands since its Pull, and
// it may not.
func (l *Leases) Given(i int32, puller string, next core.Offset) bool {
	p := &l.parts[i]
	if p.holder == puller {
		p.given = max(p.given, next)
		return true
	}
	return l.pool == 0
}

// Committable tells whether somebody may acknowledge everything below next: it is the holder and was given that much, or all of
// that is acknowledged. Without a pool it is for pullers to say, once they know their place.
func (l *Leases) Committable(i int32, puller string, next core.Offset) bool {
	p := &l.parts[i]
	return l.pool == 0 && !p.astray || next <= p.mark || p.holder == puller && next <= p.given
}

// Mark notes that everything below mark is acknowledged.
func (l *Leases) Mark(i int32, mark core.Offset, now int64) {
	l.parts[i].mark = max(l.parts[i].mark, mark)
	l.settle(int(i), now)
}

// Reset notes that the group goes on from mark, so nobody holds anything, and pullers go there too.
// Spec: RocketMQ useServerSideResetOffset@5.x: the next pull is moved, commits from before it do not count
func (l *Leases) Reset(i int32, mark core.Offset, now int64) {
	p := &l.parts[i]
	p.mark, p.given, p.astray = mark, mark, true
	l.settle(int(i), now)
}

// Skipped notes that the mark was moved on over what pullers have not got yet: they are to go on behind it.
func (l *Leases) Skipped(i int32, mark core.Offset, now int64) {
	l.parts[i].astray = true
	l.Mark(i, mark, now)
}

// Back notes a mark that its puller has moved back by itself.
func (l *Leases) Back(i int32, mark core.Offset, _ int64) { l.parts[i].mark = mark }

// Unlock notes that a puller has given up its lock of a partition.
func (l *Leases) Unlock(i int32, puller string, now int64) {
	if p := &l.parts[i]; p.until != 0 && p.holder == puller {
		l.hand(int(i), "unlocked", now)
	}
}

// Idle notes that the pool has nothing of a partition in flight.
func (l *Leases) Idle(i int32, now int64) {
	if p := &l.parts[i]; p.until != 0 && p.holder == Pool {
		l.hand(int(i), "acknowledged", now)
	}
}

// Expire ends hand-overs that took too long, and takes partitions from pullers that do not pull.
func (l *Leases) Expire(now int64) {
	if l.pool == 0 {
		return
	}
	for i := range l.parts {
		p := &l.parts[i]
		switch {
		case p.until != 0 && p.until <= now:
			l.hand(i, "timeout", now)
		case p.until == 0 && p.holder != Pool && p.pulled+l.Silence <= now:
			p.target, p.silent = Pool, p.holder
			l.hand(i, "silent", now)
		}
	}
}

// Holder returns who has a partition; "" when nobody does.
func (l *Leases) Holder(i int32) string { return l.parts[i].holder }

// Serves tells whether consumers may be given messages of a partition.
func (l *Leases) Serves(i int32) bool {
	p := &l.parts[i]
	return l.pool > 0 && p.holder == Pool && p.until == 0
}
