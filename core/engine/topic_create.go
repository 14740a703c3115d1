package engine

import (
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"strconv"

	"isthmus/core"
	"isthmus/core/meta"
)

// placementHash names the function of key → partition. It is stored with each topic and checked at boot, because another
// function would tear every key's order.
const placementHash = "murmur3_32"

// maxPartitions bounds a topic; partition numbers end at 2^20 for the whole node.
const (
	maxPartitions = 4096
	maxNumber     = 1 << 20
)

// TopicSpec declares a topic.
type TopicSpec struct {
	Partitions int32
	ByKey      bool              // placement: key
	Names      map[string]string // alias by protocol
	Policy     Policy
	Groups     []string // exist before their first consumer

	Deduplicate bool // what a numbered producer sends again is dropped
}

// EnsureTopic returns the topic, or creates it with this many partitions where auto-creation is on.
func (e *Engine) EnsureTopic(n core.TopicName, partitions int32) (*Topic, error) {
	if t, err := e.Topic(n); err == nil || !errors.Is(err, core.ErrTopicNotFound) {
		return t, err
	}
	if !e.cfg.Defaults.AutoCreate {
		return nil, fmt.Errorf("%s: %w", n, core.ErrTopicNotFound)
	}
	return e.createTopic(n, TopicSpec{Partitions: partitions, Deduplicate: e.cfg.Defaults.Deduplicate}, false)
}

// DeclareTopic creates a topic with a set of journals of its own, or completes an existing one with the groups and names
// of its declaration. A different number of partitions is an error: keys would move.
func (e *Engine) DeclareTopic(n core.TopicName, spec TopicSpec) (*Topic, error) {
	t, err := e.createTopic(n, spec, true)
	if err != nil {
		return nil, err
	}
	if have := t.Partitions(); have != spec.Partitions {
		return nil, fmt.Errorf("%s has %d partitions, the declaration says %d: %w", n, have, spec.Partitions, core.ErrInvalid)
	}
	for _, g := range spec.Groups {
		begun, err := t.BeginGroup(g, Start{At: Latest})
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", g, err)
		}
		begun.lull.declared.Store(true)
	}
	return t, nil
}

func (e *Engine) createTopic(n core.TopicName, spec TopicSpec, declared bool) (*Topic, error) {
	if spec.Partitions < 0 || spec.Partitions > maxPartitions {
		return nil, fmt.Errorf("%s: %d partitions: %w", n, spec.Partitions, core.ErrInvalid)
	}
	if err := spec.Policy.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	e.meta.Lock()
	defer e.meta.Unlock()
	if t, err := e.Topic(n); err == nil || !errors.Is(err, core.ErrTopicNotFound) {
		if err == nil && declared && !n.NonPersistent {
			err = e.redeclare(t, spec)
		}
		return t, err
	}
	if n.NonPersistent {
		return e.createVolatile(n, spec, declared)
	}
	rec := meta.TopicRecord{
		Partitions: spec.Partitions, Hash: placementHash, Names: spec.Names, Declared: declared, Set: "small", Slots: e.cfg.Slots,
		Placement: placementOf(spec), Deduplicate: spec.Deduplicate,
	}
	if declared {
		putPolicy(&rec, spec.Policy)
	}
	var err error
	if rec.Numbers, err = e.moreNumbers(nil, int(max(1, spec.Partitions))); err != nil {
		return nil, fmt.Errorf("create %s: %w", n, err)
	}
	if declared {
		rec.Set = ownPrefix + strconv.FormatUint(uint64(rec.Numbers[0]), 10)
	}
	// The journals are opened first: a journal without a topic harms nobody, a topic without its journals would.
	for i := range rec.Numbers {
		if _, err := e.newLogOf(e.tasks.ctx, journalName(n, rec, i)); err != nil {
			return nil, fmt.Errorf("create %s: %w", n, err)
		}
	}
	if err := e.applyTopic(n, rec); err != nil {
		return nil, fmt.Errorf("create %s: %w", n, err)
	}
	t, err := e.addTopic(e.tasks.ctx, n, rec)
	if err != nil {
		return nil, err
	}
	e.cfg.Log.Info("topic created", "topic", n.String(), "partitions", spec.Partitions, "set", rec.Set)
	return t, nil
}

func placementOf(spec TopicSpec) string {
	if spec.ByKey {
		return "key"
	}
	return ""
}

// redeclare takes over what a declaration may change. The caller holds e.meta.
func (e *Engine) redeclare(t *Topic, spec TopicSpec) error {
	rec := t.record
	rec.Placement, rec.Names, rec.Declared = placementOf(spec), spec.Names, true
	putPolicy(&rec, spec.Policy)
	done, undo := t.deduplicate(spec.Deduplicate, &rec)
	if reflect.DeepEqual(rec, t.record) {
		return nil
	}
	err := e.cfg.Meta.Apply([]meta.Write{{Bucket: meta.Topics, Key: t.name.String(), Value: meta.EncodeJSON(rec)}})
	if err != nil {
		undo()
		return fmt.Errorf("declare %s: %w", t.name, err)
	}
	done()
	t.record = rec
	e.mu.Lock()
	defer e.mu.Unlock()
	for p, name := range t.shape.Load().names {
		delete(e.mu.aliases, alias{p, name})
	}
	t.reshape(&shape{true, spec.ByKey, spec.Names, spec.Policy})
	for p, name := range spec.Names {
		e.mu.aliases[alias{p, name}] = t.name
	}
	return nil
}

// journalName is the journal that holds a partition: one of its set's slots.
// Spec: DESIGN §7, one slot per partition by the hash of the topic.
func journalName(n core.TopicName, rec meta.TopicRecord, index int) string {
	h := fnv.New32a()
	h.Write([]byte(n.String()))
	slot := (uint64(h.Sum32()) + uint64(index)) % uint64(max(rec.Slots, 1))
	return rec.Set + "-" + strconv.FormatUint(slot, 10)
}
