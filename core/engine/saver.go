package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// save writes what changed to the metadata store, one transaction a tick, and lets journals be trimmed now and then. It
// is the saver goroutine.
func (e *Engine) save(ctx context.Context) {
	tick := time.NewTicker(e.cfg.SaveEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := e.saveOnce(); err != nil {
			e.cfg.Log.Error("metadata not saved", "err", err)
			continue
		}
		if n%10 == 0 {
			e.trim(ctx)
		}
	}
}

// batch is one metadata transaction and what to note once it is durable.
type batch struct {
	writes []meta.Write
	after  []func()
}

func (b *batch) add(w meta.Write, after func()) {
	b.writes = append(b.writes, w)
	b.after = append(b.after, after)
}

// saveOnce saves cursors, member lists, journal positions and marks that changed.
func (e *Engine) saveOnce() error {
	e.meta.Lock()
	defer e.meta.Unlock()
	var b batch
	for _, t := range e.Topics() {
		for _, g := range t.Groups() {
			g.collect(&b)
		}
	}
	for _, l := range e.allLogs() {
		l.collect(&b)
	}
	if len(b.writes) == 0 {
		return nil
	}
	if err := e.cfg.Meta.Apply(b.writes); err != nil {
		return err
	}
	for _, f := range b.after {
		f()
	}
	return nil
}

func offsetList(parts map[uint32]*Partition) []meta.PartitionOffset {
	ps := make([]meta.PartitionOffset, 0, len(parts))
	for n, p := range parts {
		ps = append(ps, meta.PartitionOffset{Partition: n, Offset: p.committed.Load()})
	}
	return ps
}

// collect adds the log's position and new marks, as one consistent picture, and sees to it that the journal has on the
// disk what metadata is going to say. Cursors are collected before, so they are never ahead of it. A log that has failed
// keeps its last word, and holds up nobody else's.
func (l *log) collect(b *batch) {
	var own batch
	if l.broken() != nil || !l.add(&own) {
		return
	}
	if s, ok := l.journal.(journal.Syncer); ok {
		if err := s.Sync(context.Background()); err != nil {
			l.eng.cfg.Log.Error("journal failed", "journal", l.name, "err", err)
			l.refuse(fmt.Errorf("journal %s: %w", l.name, errors.Join(core.ErrUnavailable, err)))
			return
		}
	}
	b.writes, b.after = append(b.writes, own.writes...), append(b.after, own.after...)
}

func (l *log) add(b *batch) bool {
	l.tail.RLock()
	defer l.tail.RUnlock()
	if l.tail.seq == l.tail.savedSeq {
		return false
	}
	seq := l.tail.seq
	rec := meta.JournalRecord{Epoch: l.epoch, Durable: uint64(seq), Time: l.tail.time, Next: offsetList(l.tail.parts)}
	unsaved := l.tail.unsaved
	b.add(meta.Write{Bucket: meta.Journals, Key: l.name, Value: rec.Encode()}, func() {
		l.tail.Lock()
		defer l.tail.Unlock()
		l.tail.savedSeq = seq
		l.tail.unsaved -= unsaved
	})
	for _, m := range l.tail.marks[len(l.tail.marks)-unsaved:] {
		b.add(meta.Write{Bucket: meta.Marks, Key: l.markKey(m), Value: m.record()}, func() {})
	}
	return true
}

func (l *log) markKey(m mark) string { return l.name + separator + fmt.Sprintf("%016x", uint64(m.seq)) }

func (m mark) record() []byte {
	rec := meta.MarkRecord{Time: m.time}
	for n, o := range m.next {
		rec.Next = append(rec.Next, meta.PartitionOffset{Partition: n, Offset: o})
	}
	return rec.Encode()
}

// trim lets every journal forget what no group needs any more. The floor is the newest mark such that everything before
// it is acknowledged by all durable groups, older than the retention, and behind the saved position. Metadata forgets
// first: a crash in between leaves bytes that the next round trims.
func (e *Engine) trim(ctx context.Context) {
	for _, l := range e.allLogs() {
		if err := l.trim(ctx); err != nil {
			e.cfg.Log.Error("journal not trimmed", "journal", l.name, "err", err)
		}
	}
}

func (l *log) trim(ctx context.Context) error {
	l.eng.meta.Lock()
	defer l.eng.meta.Unlock()
	l.tail.RLock()
	parts := make([]*Partition, 0, len(l.tail.parts))
	for _, p := range l.tail.parts {
		parts = append(parts, p)
	}
	l.tail.RUnlock()
	keep := l.eng.cfg.TrimFloor
	need := make(map[uint32]core.Offset, len(parts))
	for _, p := range parts {
		need[p.number] = p.needed()
		keep = max(keep, p.topic.shape.Load().retention)
	}
	old := l.eng.now().Add(-keep).UnixMilli()
	views, stale := l.viewFloor()

	l.tail.RLock()
	floor := 0
	for i, m := range l.tail.marks[:len(l.tail.marks)-l.tail.unsaved] {
		if m.time > old || m.seq > l.tail.savedSeq || !m.before(need) {
			break
		}
		if m.seq > views {
			if stale {
				l.askCheckpoint()
			}
			break
		}
		floor = i
	}
	marks := l.tail.marks[:floor+min(1, len(l.tail.marks)-floor)]
	l.tail.RUnlock()
	if floor == 0 {
		return nil
	}
	ws := make([]meta.Write, 0, floor)
	for _, m := range marks[:floor] {
		ws = append(ws, meta.Write{Bucket: meta.Marks, Key: l.markKey(m)})
	}
	if err := l.eng.cfg.Meta.Apply(ws); err != nil {
		return err
	}
	m := marks[floor]
	l.tail.Lock()
	l.tail.marks = append([]mark(nil), l.tail.marks[floor:]...)
	for _, p := range parts {
		p.first.Store(m.next[p.number])
	}
	l.tail.Unlock()
	l.eng.cfg.Log.Info("journal trimmed", "journal", l.name, "before", strconv.FormatUint(uint64(m.seq), 10))
	return l.journal.Trim(ctx, m.seq)
}

// before tells whether everything before the mark is needed by nobody.
func (m mark) before(need map[uint32]core.Offset) bool {
	for n, o := range m.next {
		if o > need[n] {
			if _, lives := need[n]; lives {
				return false
			}
		}
	}
	return true
}

// needed is the lowest offset that a durable group has not acknowledged; all is needed by nobody when there is none.
func (p *Partition) needed() core.Offset {
	low := p.committed.Load()
	for _, g := range p.topic.Groups() {
		if g.durable {
			low = min(low, g.parts()[p.index].mark.Load())
		}
	}
	return low
}
