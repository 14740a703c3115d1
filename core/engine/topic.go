package engine

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	Retention  time.Duration     // how long consumed data stays
	Groups     []string          // exist before their first consumer
}

// Topic is a named stream. Its partitions never change while it lives; its groups are a registry under a leaf mutex.
type Topic struct {
	eng        *Engine
	name       core.TopicName
	partitions int32
	record     meta.TopicRecord // guarded by Engine.meta
	shape      atomic.Pointer[shape]
	logs       []*Partition
	turn       atomic.Uint32 // round robin of unkeyed messages

	mu struct {
		sync.RWMutex
		groups map[string]*Group
	}
}

// shape is what a new declaration may change; immutable.
type shape struct {
	byKey     bool
	names     map[string]string
	retention time.Duration
}

// Partition is one ordered log of a topic. next and the active extent are guarded by its log's buffer mutex; what is
// committed is guarded by the log's tail mutex; first and committed may be read by anyone.
type Partition struct {
	topic     *Topic
	index     int32
	number    uint32
	log       *log
	next      core.Offset // given to the next entry
	extent    int         // index of its extent in the active buffer, -1 = none
	first     atomic.Int64
	committed atomic.Int64 // offset after the last visible message
	tail      []tailExtent // recent extents, oldest first
	watch     watchers
}

// Name returns the topic's name.
func (t *Topic) Name() core.TopicName { return t.name }

// Alias returns the declared name of the topic in a protocol, or "".
func (t *Topic) Alias(protocol string) string { return t.shape.Load().names[protocol] }

// ByKey tells whether the topic places keyed messages itself, whatever partition the client chose.
func (t *Topic) ByKey() bool { return t.shape.Load().byKey && len(t.logs) > 1 }

// Partitions is the declared count; 0 = unpartitioned.
func (t *Topic) Partitions() int32 { return t.partitions }

// Logs is the number of partition logs, at least 1.
func (t *Topic) Logs() int32 { return int32(len(t.logs)) }

// Partition returns a partition by index, nil when there is none.
func (t *Topic) Partition(i int32) *Partition {
	if i < 0 || int(i) >= len(t.logs) {
		return nil
	}
	return t.logs[i]
}

// Place picks the partition of a message. chosen is the client's choice, negative when it left the choice to us.
func (t *Topic) Place(key []byte, hasKey bool, chosen int32) int32 {
	n := uint32(len(t.logs))
	switch {
	case n == 1:
		return 0
	case hasKey && (chosen < 0 || t.shape.Load().byKey):
		return int32((core.Murmur3_32(key) & 0x7fffffff) % n)
	case chosen < 0:
		return int32(t.turn.Add(1) % n)
	}
	return chosen
}

// Topic returns its topic.
func (p *Partition) Topic() *Topic { return p.topic }

// Index is its place in the topic.
func (p *Partition) Index() int32 { return p.index }

// Number is its number on the node, never reused.
func (p *Partition) Number() uint32 { return p.number }

// Bounds returns the first retained offset and the offset after the last durable message.
func (p *Partition) Bounds() (first, next core.Offset) { return p.first.Load(), p.committed.Load() }

// Topic returns a topic; the error wraps ErrTopicNotFound.
func (e *Engine) Topic(n core.TopicName) (*Topic, error) {
	e.mu.RLock()
	t, damaged := e.mu.topics[n], e.mu.damaged[n]
	e.mu.RUnlock()
	if damaged != nil {
		return nil, fmt.Errorf("%s is out of service: %w", n, errors.Join(core.ErrUnavailable, damaged))
	}
	if t == nil {
		return nil, fmt.Errorf("%s: %w", n, core.ErrTopicNotFound)
	}
	return t, nil
}

// Topics returns all topics, in order of name.
func (e *Engine) Topics() []*Topic {
	e.mu.RLock()
	ts := slices.Collect(maps.Values(e.mu.topics))
	e.mu.RUnlock()
	slices.SortFunc(ts, func(a, b *Topic) int { return strings.Compare(a.name.String(), b.name.String()) })
	return ts
}

// PartitionByNumber returns a partition by its node-wide number, or nil.
func (e *Engine) PartitionByNumber(n uint32) *Partition {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.mu.numbers[n]
}

// ResolveName turns a name as a protocol's client says it into a topic name: a declared alias, else a full or short name.
func (e *Engine) ResolveName(protocol, name string) (core.TopicName, error) {
	e.mu.RLock()
	n, ok := e.mu.aliases[alias{protocol, name}]
	e.mu.RUnlock()
	if ok {
		return n, nil
	}
	return core.ParseTopicName(name, e.cfg.Defaults.Tenant, e.cfg.Defaults.Namespace)
}

// EnsureTopic returns the topic, or creates it with this many partitions where auto-creation is on.
func (e *Engine) EnsureTopic(n core.TopicName, partitions int32) (*Topic, error) {
	if t, err := e.Topic(n); err == nil || !errors.Is(err, core.ErrTopicNotFound) {
		return t, err
	}
	if !e.cfg.Defaults.AutoCreate {
		return nil, fmt.Errorf("%s: %w", n, core.ErrTopicNotFound)
	}
	return e.createTopic(n, TopicSpec{Partitions: partitions}, false)
}

// DeclareTopic creates a topic with a set of journals of its own, or completes an existing one with the groups and names
// of its declaration. A different number of partitions is an error: keys would move.
func (e *Engine) DeclareTopic(n core.TopicName, spec TopicSpec) (*Topic, error) {
	t, err := e.createTopic(n, spec, true)
	if err != nil {
		return nil, err
	}
	if t.partitions != spec.Partitions {
		return nil, fmt.Errorf("%s has %d partitions, the declaration says %d: %w", n, t.partitions, spec.Partitions, core.ErrInvalid)
	}
	for _, g := range spec.Groups {
		if _, err := t.BeginGroup(g, Start{At: Latest}); err != nil {
			return nil, fmt.Errorf("group %s: %w", g, err)
		}
	}
	return t, nil
}

func (e *Engine) createTopic(n core.TopicName, spec TopicSpec, declared bool) (*Topic, error) {
	if n.NonPersistent {
		return nil, fmt.Errorf("%s: non-persistent topics: %w", n, core.ErrUnsupported)
	}
	if spec.Partitions < 0 || spec.Partitions > maxPartitions {
		return nil, fmt.Errorf("%s: %d partitions: %w", n, spec.Partitions, core.ErrInvalid)
	}
	e.meta.Lock()
	defer e.meta.Unlock()
	if t, err := e.Topic(n); err == nil || !errors.Is(err, core.ErrTopicNotFound) {
		if err == nil && declared {
			err = e.redeclare(t, spec)
		}
		return t, err
	}
	rec := meta.TopicRecord{
		Partitions: spec.Partitions, Hash: placementHash, Names: spec.Names, Declared: declared, Set: "small", Slots: e.cfg.Slots,
		Placement: placementOf(spec), Retention: spec.Retention,
	}
	next := e.nextNumber()
	for range max(1, spec.Partitions) {
		if next >= maxNumber {
			return nil, fmt.Errorf("%s: partition numbers are used up: %w", n, core.ErrUnavailable)
		}
		rec.Numbers = append(rec.Numbers, next)
		next++
	}
	if declared {
		rec.Set = fmt.Sprintf("topic-%d", rec.Numbers[0])
	}
	// The journals are opened first: a journal without a topic harms nobody, a topic without its journals would.
	for i := range rec.Numbers {
		if _, err := e.newLogOf(e.tasks.ctx, journalName(n, rec, i)); err != nil {
			return nil, fmt.Errorf("create %s: %w", n, err)
		}
	}
	err := e.cfg.Meta.Apply([]meta.Write{
		{Bucket: meta.Topics, Key: n.String(), Value: meta.EncodeJSON(rec)},
		{Bucket: meta.Counters, Key: numberCounter, Value: encodeCounter(uint64(next))},
	})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", n, err)
	}
	e.mu.Lock()
	e.mu.next = next
	e.mu.Unlock()
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
	rec.Placement, rec.Names, rec.Retention, rec.Declared = placementOf(spec), spec.Names, spec.Retention, true
	if reflect.DeepEqual(rec, t.record) {
		return nil
	}
	err := e.cfg.Meta.Apply([]meta.Write{{Bucket: meta.Topics, Key: t.name.String(), Value: meta.EncodeJSON(rec)}})
	if err != nil {
		return fmt.Errorf("declare %s: %w", t.name, err)
	}
	t.record = rec
	e.mu.Lock()
	defer e.mu.Unlock()
	for p, name := range t.shape.Load().names {
		delete(e.mu.aliases, alias{p, name})
	}
	t.shape.Store(&shape{spec.ByKey, spec.Names, spec.Retention})
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
