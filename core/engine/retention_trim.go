package engine

import (
	"context"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// trim lets every journal forget what nobody needs any more: from the front, and then out of the middle.
func (e *Engine) trim(ctx context.Context) {
	for _, l := range e.allLogs() {
		if l.volatile {
			continue
		}
		if err := l.trim(ctx); err != nil {
			e.cfg.Log.Error("journal not trimmed", "journal", l.name, "err", err)
			continue
		}
		if err := l.thin(ctx); err != nil && ctx.Err() == nil {
			e.cfg.Log.Error("journal not thinned", "journal", l.name, "err", err)
		}
	}
}

// trim goes to the newest mark such that everything before it is acknowledged by all durable groups, beyond retention,
// and behind the saved position. Metadata forgets first: a crash in between leaves bytes that the next round trims.
func (l *log) trim(ctx context.Context) error {
	before, err := l.forgetMarks()
	if err != nil || before == 0 {
		return err
	}
	l.eng.cfg.Log.Info("journal trimmed", "journal", l.name, "before", uint64(before))
	return l.journal.Trim(ctx, before)
}

// forgetMarks drops the marks that lie before the floor, and with them what can be read. It returns the floor's Seq, 0
// when nothing changed.
func (l *log) forgetMarks() (journal.Seq, error) {
	l.eng.meta.Lock()
	defer l.eng.meta.Unlock()
	hold := l.holdings()
	views, stale := l.viewFloor()
	l.tail.RLock()
	saved := l.tail.marks[:len(l.tail.marks)-l.tail.unsaved]
	floor := trimmable(saved, l.tail.savedSeq, hold)
	l.tail.RUnlock()
	if floor > 0 && saved[floor].seq > views {
		if stale {
			l.askCheckpoint()
		}
		for floor > 0 && saved[floor].seq > views {
			floor--
		}
	}
	if floor == 0 {
		return 0, nil
	}
	if err := l.sync(); err != nil { // what says that nobody needs it, such as the release of a body, may be in no file yet
		return 0, err
	}
	ws := make([]meta.Write, 0, floor)
	for _, m := range saved[:floor] {
		ws = append(ws, meta.Write{Bucket: meta.Marks, Key: l.markKey(m)})
	}
	if err := l.eng.cfg.Meta.Apply(ws); err != nil {
		return 0, err
	}
	m := saved[floor]
	l.tail.Lock()
	defer l.tail.Unlock()
	l.tail.marks = append([]mark(nil), l.tail.marks[floor:]...)
	for n, p := range l.tail.parts {
		p.first.Store(max(p.first.Load(), m.next[n]))
	}
	return m.seq, nil
}

// holdings asks every partition of the log what it holds.
func (l *log) holdings() map[uint32]*holding {
	l.tail.RLock()
	parts := make([]*Partition, 0, len(l.tail.parts))
	for _, p := range l.tail.parts {
		parts = append(parts, p)
	}
	l.tail.RUnlock()
	hold := make(map[uint32]*holding, len(parts))
	for _, p := range parts {
		r := p.topic.policy().Retention
		needed, grouped := p.needed()
		h := r.hold(l.eng.now(), l.eng.cfg.TrimFloor, grouped, r.Size/int64(len(p.topic.parts())))
		h.first, h.needed, h.weight = p.first.Load(), needed, p.written(needed)
		hold[p.number] = &h
	}
	return hold
}

// needed is the lowest offset that a durable group has not acknowledged; the end when there is none.
func (p *Partition) needed() (low core.Offset, grouped bool) {
	low = p.committed.Load()
	for _, g := range p.topic.Groups() {
		if g.durable {
			grouped = true
			low = min(low, g.parts()[p.index].mark.Load())
		}
	}
	return low, grouped
}
