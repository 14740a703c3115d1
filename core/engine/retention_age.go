package engine

import (
	"context"
	"fmt"
	"sort"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
)

// ager follows, as time goes on, up to where a partition's messages are older than an age. Owned by the warden.
type ager struct {
	at    core.Offset // everything before is older than it was asked last
	young int64       // unix ms: the message at at was committed then; 0: unknown
	next  time.Time   // not before then is it worth to look into the journal again
}

// agerOf returns the partition's ager for one kind of age.
func (p *Partition) agerOf(reason string) *ager {
	if reason == reasonTTL {
		return &p.ttl
	}
	return &p.stale
}

// advance returns the offset of the first message that is no older than age. What is found is remembered, and the journal
// is not searched for every single message: a result may be behind by a hundredth of the age, and by a minute at most.
func (a *ager) advance(ctx context.Context, p *Partition, now time.Time, age time.Duration) (core.Offset, error) {
	first, end := p.Bounds()
	if first > a.at {
		a.at, a.young = first, 0
	}
	cutoff := now.Add(-age).UnixMilli()
	if a.at >= end || a.young > cutoff || now.Before(a.next) {
		return a.at, nil
	}
	at, commit, found := p.afterTail(a.at, cutoff)
	if !found {
		var err error
		if at, commit, err = p.afterJournal(ctx, a.at, cutoff); err != nil {
			return a.at, fmt.Errorf("age of partition %d: %w", p.index, err)
		}
	}
	a.at, a.young = at, commit
	a.next = now.Add(min(age/100, time.Minute))
	return at, nil
}

// afterTail finds the first message from an offset on that was committed after a time, or the end; found is false when
// the tail cache does not reach back to the offset.
func (p *Partition) afterTail(from core.Offset, ms int64) (at core.Offset, commit int64, found bool) {
	p.log.tail.RLock()
	defer p.log.tail.RUnlock()
	t := p.tail
	if len(t) == 0 || t[0].first > from {
		return 0, 0, false
	}
	i := sort.Search(len(t), func(i int) bool { return t[i].end > from && t[i].commit > ms })
	if i == len(t) {
		return p.committed.Load(), 0, true
	}
	return max(from, t[i].first), t[i].commit, true
}

func (p *Partition) afterJournal(ctx context.Context, from core.Offset, ms int64) (at core.Offset, commit int64, err error) {
	l := p.log
	l.tail.RLock()
	seq := max(l.marked(p.number, from), l.markedAt(ms))
	l.tail.RUnlock()
	end := p.committed.Load()
	hint := journal.Hint{Partition: p.number, HasPartition: true, From: from, Since: ms + 1}
	for rec, err := range l.journal.Read(ctx, seq, hint) {
		if err != nil {
			return from, 0, err
		}
		b, err := journal.Header(rec.Block)
		if err != nil {
			return from, 0, err
		}
		if b.Time <= ms {
			continue
		}
		for x := range b.Extents() {
			if x.Partition == p.number && x.Next() > from {
				return min(max(x.First, from), end), b.Time, nil
			}
		}
	}
	return end, 0, nil
}
