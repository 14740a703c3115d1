package engine

import (
	"fmt"

	"isthmus/core"
	"isthmus/core/meta"
)

// GrowTopic gives a topic more partitions. Groups begin them at offset 0, live consumers of the whole topic get them at
// once. A key may belong to another partition afterwards: while anything is retained that has to be accepted.
// An unpartitioned topic stays one, as in Pulsar: its clients know no partitions.
func (e *Engine) GrowTopic(n core.TopicName, partitions int32, acceptRekey bool) error {
	t, err := e.Topic(n)
	if err != nil {
		return err
	}
	if err := t.grow(partitions, acceptRekey); err != nil {
		return fmt.Errorf("grow %s to %d partitions: %w", n, partitions, err)
	}
	for _, g := range t.Groups() {
		if err := g.grow(); err != nil {
			return fmt.Errorf("grow %s: group %s: %w", n, g.name, err)
		}
	}
	return nil
}

// grow changes metadata first, in one transaction; the groups have their places before anybody can publish there.
func (t *Topic) grow(partitions int32, acceptRekey bool) error {
	e := t.eng
	e.meta.Lock()
	defer e.meta.Unlock()
	if err := t.mayGrow(partitions, acceptRekey); err != nil {
		return err
	}
	rec := t.record
	rec.Partitions = partitions
	var err error
	if rec.Numbers, err = e.moreNumbers(t.record.Numbers, int(partitions)); err != nil {
		return err
	}
	for i := len(t.record.Numbers); i < len(rec.Numbers); i++ {
		if _, err := e.newLogOf(e.tasks.ctx, journalName(t.name, rec, i)); err != nil {
			return err
		}
	}
	if err := e.applyTopic(t.name, rec); err != nil {
		return err
	}
	more, err := t.open(e.tasks.ctx, rec, len(t.record.Numbers))
	if err != nil {
		return err
	}
	t.record = rec
	ps := append(t.parts()[:len(t.parts()):len(t.parts())], more...)
	for _, g := range t.Groups() {
		g.extend(ps)
	}
	t.list.Store(&ps)
	e.cfg.Log.Info("topic grown", "topic", t.name.String(), "partitions", partitions)
	return nil
}

func (t *Topic) mayGrow(partitions int32, acceptRekey bool) error {
	switch have := t.Partitions(); {
	case t.removed:
		return core.ErrTopicNotFound
	case !t.partitioned:
		return fmt.Errorf("it is unpartitioned: %w", core.ErrInvalid)
	case partitions <= have || partitions > maxPartitions:
		return fmt.Errorf("it has %d, %d are allowed: %w", have, maxPartitions, core.ErrInvalid)
	}
	for _, p := range t.parts() {
		if first, end := p.Bounds(); end > first && !acceptRekey {
			return fmt.Errorf("keys of its messages would belong to other partitions, which has to be accepted (accept-rekey): %w", core.ErrInvalid)
		}
	}
	return nil
}

// grow lets the group's consumers of the whole topic have its new partitions.
func (g *Group) grow() error {
	g.changes.Lock()
	defer g.changes.Unlock()
	if g.gone {
		return nil
	}
	mode := g.Mode()
	for _, r := range g.runners {
		if err := r.ask(func() error { return r.grow(mode) }); err != nil {
			return err
		}
	}
	for _, c := range g.Consumers() {
		if err := g.seat(c); err != nil {
			return err
		}
	}
	return nil
}

// moreNumbers returns the list with as many partition numbers as there are partitions. The caller holds e.meta, and
// stores the record with applyTopic.
func (e *Engine) moreNumbers(have []uint32, partitions int) ([]uint32, error) {
	numbers, next := append([]uint32(nil), have...), e.nextNumber()
	for len(numbers) < partitions {
		if next >= maxNumber {
			return nil, fmt.Errorf("partition numbers are used up: %w", core.ErrUnavailable)
		}
		numbers = append(numbers, next)
		next++
	}
	return numbers, nil
}

// applyTopic stores a topic's record, and that its numbers are taken, in one transaction. The caller holds e.meta.
func (e *Engine) applyTopic(n core.TopicName, rec meta.TopicRecord) error {
	next := e.nextNumber()
	for _, number := range rec.Numbers {
		next = max(next, number+1)
	}
	err := e.cfg.Meta.Apply([]meta.Write{
		{Bucket: meta.Topics, Key: n.String(), Value: meta.EncodeJSON(rec)},
		{Bucket: meta.Counters, Key: numberCounter, Value: encodeCounter(uint64(next))},
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.mu.next = next
	e.mu.Unlock()
	return nil
}
