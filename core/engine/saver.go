package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// save writes what changed to the metadata store, one transaction a tick. It is the saver goroutine.
func (e *Engine) save(ctx context.Context) {
	tick := time.NewTicker(e.cfg.SaveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := e.saveOnce(); err != nil {
			e.cfg.Log.Error("metadata not saved", "err", err)
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

// unsaved are the groups that have something to save, so that those that have not cost no tick anything. The mutex is a leaf.
type unsaved struct {
	mu struct {
		sync.Mutex
		groups []*Group
	}
}

// changed has the group looked at by the next tick. Whoever changes what metadata holds of it calls it after the change, or
// under the lock of what it changed.
func (g *Group) changed() {
	if !g.durable || g.listed.Swap(true) {
		return
	}
	u := &g.topic.eng.unsaved
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mu.groups = append(u.mu.groups, g)
}

func (u *unsaved) take() []*Group {
	u.mu.Lock()
	defer u.mu.Unlock()
	gs := u.mu.groups
	u.mu.groups = nil
	for _, g := range gs {
		g.listed.Store(false)
	}
	return gs
}

// saveOnce saves cursors, member lists, journal positions and marks that changed.
func (e *Engine) saveOnce() error {
	e.meta.Lock()
	defer e.meta.Unlock()
	var b batch
	groups := e.unsaved.take()
	for _, g := range groups {
		if g.topic.removed {
			continue // another topic may have its name by now
		}
		if now, err := g.topic.Group(g.name); err == nil && now == g { // not forgotten meanwhile
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
		for _, g := range groups {
			g.changed()
		}
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

// byteList is what each partition has written. The caller holds the log's tail mutex.
func byteList(parts map[uint32]*Partition) []meta.PartitionOffset {
	ps := make([]meta.PartitionOffset, 0, len(parts))
	for n, p := range parts {
		ps = append(ps, meta.PartitionOffset{Partition: n, Offset: p.bytes})
	}
	return ps
}

// collect adds the log's position and new marks, as one consistent picture, and sees to it that the journal has on the
// disk what metadata is going to say. Cursors are collected before, so they are never ahead of it. A log that has failed
// keeps its last word, and holds up nobody else's.
func (l *log) collect(b *batch) {
	var own batch
	if l.volatile || l.broken() != nil || !l.add(&own) {
		return
	}
	if l.sync() != nil {
		return
	}
	b.writes, b.after = append(b.writes, own.writes...), append(b.after, own.after...)
}

// sync has on the disk what the journal has acknowledged. The log has failed when that cannot be had.
func (l *log) sync() error {
	s, ok := l.journal.(journal.Syncer)
	if !ok {
		return nil
	}
	err := s.Sync(context.Background())
	if err != nil {
		l.eng.cfg.Log.Error("journal failed", "journal", l.name, "err", err)
		l.refuse(fmt.Errorf("journal %s: %w", l.name, errors.Join(core.ErrUnavailable, err)))
	}
	return err
}

func (l *log) add(b *batch) bool {
	l.tail.RLock()
	defer l.tail.RUnlock()
	if l.tail.seq == l.tail.savedSeq {
		return false
	}
	seq := l.tail.seq
	rec := meta.JournalRecord{Epoch: l.epoch, Durable: uint64(seq), Time: l.tail.time, Next: offsetList(l.tail.parts), Bytes: byteList(l.tail.parts)}
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
	for n, b := range m.bytes {
		rec.Bytes = append(rec.Bytes, meta.PartitionOffset{Partition: n, Offset: b})
	}
	return rec.Encode()
}
