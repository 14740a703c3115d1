package engine

import (
	"context"
	"slices"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
)

// Trimming stops at the first message that somebody needs: a hole in a group's acknowledgements, a far delay. Behind it
// lies what is held by nobody, and thinning gives that back.

// A round of thinning reads all that it looks at, so it comes seldom: when there is this much to look at, and after a round
// that found little only after twice the time.
const (
	thinEvery  = time.Minute
	thinAtMost = 24 * time.Hour
	thinMarks  = 4 // places to read from (MarkBytes) between what is trimmed and what is wholly held
)

// thinning paces the rounds of a log. The warden owns it.
type thinning struct {
	next time.Time
	wait time.Duration
}

// thin gives back what nobody holds of the blocks that cannot be trimmed yet.
func (l *log) thin(ctx context.Context) error {
	t, ok := l.journal.(journal.Thinner)
	now := l.eng.now()
	if !ok || now.Before(l.thinning.next) {
		return nil
	}
	from, before := l.thinnable()
	if before == 0 {
		return nil
	}
	begin := time.Now()
	freed, err := t.Thin(ctx, from, before, keepEntries(l.held()))
	if err != nil {
		return err
	}
	if l.thinning.wait = min(2*l.thinning.wait, thinAtMost); freed > 0 || l.thinning.wait == 0 {
		l.thinning.wait = thinEvery
	}
	l.thinning.next = now.Add(l.thinning.wait)
	if freed > 0 {
		l.eng.cfg.Log.Info("journal thinned", "journal", l.name, "from", uint64(from), "before", uint64(before),
			"freed", freed, "took", time.Since(begin))
	}
	return nil
}

// thinnable is where to look: the blocks behind what is trimmed in which every durable group has acknowledged something, that
// are beyond retention and behind the saved position, and that no view would read again. before is 0 when that is too little.
func (l *log) thinnable() (from, before journal.Seq) {
	hold := l.holdings()
	for n, h := range hold {
		p := l.part(n)
		if p == nil {
			continue
		}
		h.needed = p.reached()
		h.weight = p.written(h.needed)
	}
	views := l.checkpointed()
	l.tail.RLock()
	defer l.tail.RUnlock()
	saved := l.tail.marks[:len(l.tail.marks)-l.tail.unsaved]
	floor := trimmable(saved, l.tail.savedSeq, hold)
	if floor >= thinMarks && saved[thinMarks].seq > views {
		l.askCheckpoint() // the last one is what holds all this
	}
	for floor > 0 && saved[floor].seq > views {
		floor--
	}
	if floor < thinMarks {
		return 0, 0
	}
	return saved[0].seq, saved[floor].seq
}

// checkpointed is the first block that a view would read to be made again.
func (l *log) checkpointed() journal.Seq {
	l.views.mu.Lock()
	defer l.views.mu.Unlock()
	at := ^journal.Seq(0)
	for _, s := range l.views.all {
		at = min(at, s.at+1)
	}
	return at
}

// reached is the lowest offset beyond which some durable group has acknowledged nothing; the end when there is none.
func (p *Partition) reached() core.Offset {
	low := p.committed.Load()
	for _, g := range p.topic.Groups() {
		if g.durable {
			c := g.parts()[p.index].acknowledged()
			low = min(low, c.End())
		}
	}
	return low
}

// acknowledged is a copy of the cursor.
func (gp *groupPart) acknowledged() core.Cursor {
	gp.mu.Lock()
	defer gp.mu.Unlock()
	return gp.mu.cursor.Clone()
}

// holder is what holds the entries of one partition.
type holder struct {
	first   core.Offset
	cursors []core.Cursor
	parked  *parking
}

// held tells which entries somebody needs as of now. What is acknowledged meanwhile is held once more.
func (l *log) held() func(partition uint32, e *core.Entry) bool {
	l.tail.RLock()
	parts := make(map[uint32]*holder, len(l.tail.parts))
	ps := make([]*Partition, 0, len(l.tail.parts))
	for n, p := range l.tail.parts {
		parts[n] = &holder{first: p.first.Load()}
		ps = append(ps, p)
	}
	l.tail.RUnlock()
	for _, p := range ps {
		h := parts[p.number]
		for _, g := range p.topic.Groups() {
			if g.durable {
				h.cursors = append(h.cursors, g.parts()[p.index].acknowledged())
			}
		}
		if k := l.parking.Load(); k != nil && k.part.number == p.number {
			h.parked = k
		}
	}
	return func(partition uint32, e *core.Entry) bool {
		h := parts[partition]
		switch {
		case h == nil || e.End() <= h.first: // its topic was deleted, or it was trimmed
			return false
		case h.parked != nil:
			return h.parked.holds(e)
		}
		return slices.ContainsFunc(h.cursors, func(c core.Cursor) bool { return c.NextUnacked(e.Base) < e.End() })
	}
}
