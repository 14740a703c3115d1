package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

const (
	numberCounter = "partition-number"
	separator     = "\x00"
)

func encodeCounter(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func (e *Engine) nextNumber() uint32 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.mu.next
}

// recover loads topics, opens their journals where the last run left them, and places the groups' cursors.
func (e *Engine) recover(ctx context.Context) error {
	err := e.cfg.Meta.Load(meta.Counters, func(key string, v []byte) error {
		if key == numberCounter && len(v) == 8 {
			e.mu.next = uint32(binary.BigEndian.Uint64(v))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("load counters: %w", err)
	}
	if err := e.dormant.load(e.cfg.Meta); err != nil {
		return err
	}
	topics := map[core.TopicName]meta.TopicRecord{}
	err = e.cfg.Meta.Load(meta.Topics, func(key string, v []byte) error {
		n, err := core.ParseTopicName(key, "", "")
		if err != nil {
			return err
		}
		var rec meta.TopicRecord
		if err := meta.DecodeJSON(v, &rec); err != nil {
			return fmt.Errorf("topic %s: %w", key, err)
		}
		topics[n] = rec
		return nil
	})
	if err != nil {
		return fmt.Errorf("load topics: %w", err)
	}
	if err := e.removeLeftovers(ctx, topics); err != nil {
		return err
	}
	names := slices.SortedFunc(maps.Keys(topics), func(a, b core.TopicName) int { return strings.Compare(a.String(), b.String()) })
	var journals []string
	for _, n := range names {
		rec := topics[n]
		if rec.Hash != placementHash {
			return fmt.Errorf("%s places keys by %q, this version by %q: %w", n, rec.Hash, placementHash, core.ErrUnsupported)
		}
		for i := range rec.Numbers {
			journals = append(journals, journalName(n, rec, i))
		}
	}
	slices.Sort(journals)
	if err := e.openAll(ctx, slices.Compact(journals)); err != nil {
		return err
	}
	for _, n := range names {
		rec := topics[n]
		if _, err := e.addTopic(ctx, n, rec); err != nil && !e.setAside(n, err) {
			return err
		}
	}
	if err := e.openShared(ctx); err != nil {
		return err
	}
	if err := e.recoverParkings(); err != nil {
		return err
	}
	checkpoints, err := e.loadCheckpoints()
	if err != nil {
		return err
	}
	if err := e.loadReserves(); err != nil {
		return fmt.Errorf("load limits: %w", err)
	}
	for _, l := range e.allLogs() {
		if err := l.replay(ctx, checkpoints); err != nil && !e.setAsideLog(l, err) {
			return err
		}
		l.unpark(func(target uint32) bool { return l.part(target) == nil })
	}
	if err := errors.Join(e.loadGroups(), e.dormant.close()); err != nil {
		return err
	}
	return e.followDefaults()
}

// openShared opens the shared journals that no topic is left in: what deleted topics wrote lies before what comes next.
func (e *Engine) openShared(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(e.dormant.records)) {
		if ownSet(name) {
			continue
		}
		if _, err := e.logOf(ctx, name); errors.Is(err, journal.ErrDamaged) {
			e.cfg.Log.Error("journal is out of service", "journal", name, "err", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// setAside keeps a topic whose journal is damaged out of service, and no other: somebody has to decide about it.
func (e *Engine) setAside(n core.TopicName, err error) bool {
	if !errors.Is(err, journal.ErrDamaged) {
		return false
	}
	e.cfg.Log.Error("topic is out of service", "topic", n.String(), "err", err)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.mu.topics, n)
	e.mu.damaged[n] = err
	return true
}

func (e *Engine) setAsideLog(l *log, err error) bool {
	for _, t := range e.Topics() {
		if slices.ContainsFunc(t.parts(), func(p *Partition) bool { return p.log == l }) && !e.setAside(t.name, err) {
			return false
		}
	}
	l.refuse(err)
	return true
}

// addTopic builds a topic and opens the journals that it needs.
func (e *Engine) addTopic(ctx context.Context, n core.TopicName, rec meta.TopicRecord) (*Topic, error) {
	t := &Topic{eng: e, name: n, partitioned: rec.Partitions > 0, record: rec}
	policy, err := e.policy(&rec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	t.reshape(&shape{rec.Declared, rec.Placement == "key", rec.Names, policy})
	t.mu.groups = map[string]*Group{}
	if len(rec.Numbers) != int(max(1, rec.Partitions)) {
		return nil, fmt.Errorf("%s: %d partition numbers for %d partitions: %w", n, len(rec.Numbers), rec.Partitions, core.ErrInvalid)
	}
	ps, err := t.open(ctx, rec, 0)
	if err != nil {
		return nil, err
	}
	t.list.Store(&ps)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.topics[n] = t
	for protocol, name := range rec.Names {
		e.mu.aliases[alias{protocol, name}] = n
	}
	return t, nil
}

// open makes the partitions of the record from an index on, and makes them known to their logs and by number.
func (t *Topic) open(ctx context.Context, rec meta.TopicRecord, from int) (ps []*Partition, err error) {
	e := t.eng
	for i := from; i < len(rec.Numbers); i++ {
		number := rec.Numbers[i]
		if e.PartitionByNumber(number) != nil {
			return nil, fmt.Errorf("%s: partition number %d belongs to another topic: %w", t.name, number, core.ErrInvalid)
		}
		l, err := e.logOf(ctx, journalName(t.name, rec, i))
		if err != nil {
			return nil, fmt.Errorf("%s partition %d: %w", t.name, i, err)
		}
		p := &Partition{topic: t, index: int32(i), number: number, log: l, extent: -1}
		if i < len(rec.First) {
			p.first.Store(rec.First[i])
		}
		if rec.Deduplicate {
			p.dedup = newDedup(sinceOf(&rec, i), rec.DedupBegun)
		}
		ps = append(ps, p)
		l.tail.Lock()
		l.tail.parts[number] = p // also when another one's journal turns out damaged: its offsets are saved on
		l.tail.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range ps {
		e.mu.numbers[p.number] = p
		e.mu.next = max(e.mu.next, p.number+1)
	}
	return ps, nil
}

// logOf returns the running log of this name. The first caller opens it: with a new epoch, which metadata holds before
// the journal is fenced with it. The caller holds e.meta, or is alone.
func (e *Engine) logOf(ctx context.Context, name string) (*log, error) {
	e.mu.RLock()
	l := e.mu.logs[name]
	e.mu.RUnlock()
	if l != nil {
		return l, nil
	}
	j, err := e.open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", name, err)
	}
	rec := e.dormant.records[name]
	l = newLog(e, name, rec.Epoch, j)
	l.tail.seq, l.tail.savedSeq = journal.Seq(rec.Durable), journal.Seq(rec.Durable)
	l.saved, l.last, l.tail.time = rec, rec.Time, rec.Time
	l.tail.marks = e.dormant.marks[name]
	if !l.start(l.commit) {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", name, core.ErrClosed), j.Close())
	}
	e.mu.Lock()
	e.mu.logs[name] = l
	e.mu.Unlock()
	delete(e.dormant.records, name)
	delete(e.dormant.marks, name)
	return l, nil
}

// newLogOf is logOf for a topic that is being created. A journal that no topic of the metadata uses has to be empty:
// otherwise the two do not belong together, and its messages would be hidden under the new topic's.
func (e *Engine) newLogOf(ctx context.Context, name string) (*log, error) {
	l, err := e.logOf(ctx, name)
	if errors.Is(err, core.ErrFenced) {
		return nil, fmt.Errorf("%w: was the metadata lost or replaced?", err)
	}
	if err != nil {
		return nil, err
	}
	l.tail.RLock()
	used := len(l.tail.parts) > 0 || l.tail.savedSeq > 0 // of topics that were deleted
	l.tail.RUnlock()
	first, next, _, err := l.journal.Bounds(ctx)
	if err == nil && !used && next > first {
		err = fmt.Errorf("journal %s has blocks that no topic knows: was the metadata lost or replaced? %w", name, core.ErrInvalid)
	}
	return l, err
}

func offsetMap(ps []meta.PartitionOffset) map[uint32]core.Offset {
	m := make(map[uint32]core.Offset, len(ps))
	for _, p := range ps {
		m[p.Partition] = p.Offset
	}
	return m
}
