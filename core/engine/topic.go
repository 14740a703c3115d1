package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"isthmus/core"
	"isthmus/core/meta"
)

// Topic is a named stream. Its partitions only become more; its groups are a registry under a leaf mutex.
type Topic struct {
	eng         *Engine
	name        core.TopicName
	partitioned bool
	record      meta.TopicRecord // guarded by Engine.meta
	shape       atomic.Pointer[shape]
	list        atomic.Pointer[[]*Partition] // replaced under Engine.meta when the topic grows
	turn        atomic.Uint32                // round robin of unkeyed messages
	gate        atomic.Pointer[gate]         // nil: producers are not held up
	users       atomic.Int32                 // producers that said they are connected
	removed     bool                         // guarded by Engine.meta
	idle        idleness

	mu struct {
		sync.RWMutex
		groups map[string]*Group
		sorted []*Group // what Groups returns; nil after a change
	}
}

// shape is what a new declaration may change; immutable.
type shape struct {
	declared bool
	byKey    bool
	names    map[string]string
	policy   Policy
}

// Partition is one ordered log of a topic. next, dead and the active extent are guarded by its log's buffer mutex; what is
// committed is guarded by the log's tail mutex; first and committed may be read by anyone.
type Partition struct {
	topic     *Topic
	index     int32
	number    uint32
	log       *log
	internal  bool        // of the engine: no topic lists it
	next      core.Offset // given to the next entry
	dead      error       // why it takes no messages any more
	extent    int         // index of its extent in the active buffer, -1 = none
	dedup     *dedup      // nil: the topic does not de-duplicate; guarded by the log's buffer mutex
	first     atomic.Int64
	committed atomic.Int64 // offset after the last visible message
	tail      []tailExtent // recent extents, oldest first
	cold      coldPlace
	bytes     int64 // written in its life; guarded by its log's tail mutex
	watch     watchers
	ttl       ager // owned by the warden, as is stale
	stale     ager
}

// Name returns the topic's name.
func (t *Topic) Name() core.TopicName { return t.name }

// Alias returns the declared name of the topic in a protocol, or "".
func (t *Topic) Alias(protocol string) string { return t.shape.Load().names[protocol] }

// ByKey tells whether the topic places keyed messages itself, whatever partition the client chose.
func (t *Topic) ByKey() bool { return t.shape.Load().byKey && len(t.parts()) > 1 }

// parts are the partitions by index. The slice is immutable.
func (t *Topic) parts() []*Partition { return *t.list.Load() }

// Partitions is the declared count; 0 = unpartitioned.
func (t *Topic) Partitions() int32 {
	if !t.partitioned {
		return 0
	}
	return t.Logs()
}

// Logs is the number of partition logs, at least 1.
func (t *Topic) Logs() int32 { return int32(len(t.parts())) }

// Partition returns a partition by index, nil when there is none.
func (t *Topic) Partition(i int32) *Partition {
	ps := t.parts()
	if i < 0 || int(i) >= len(ps) {
		return nil
	}
	return ps[i]
}

func (t *Topic) policy() Policy { return t.shape.Load().policy }

// reshape takes over what a declaration says.
func (t *Topic) reshape(s *shape) {
	t.shape.Store(s)
	if old := t.gate.Load(); old == nil || old.backlog != s.policy.Backlog {
		t.gate.Store(newGate(s.policy.Backlog))
	}
}

// Place picks the partition of a message. chosen is the client's choice, negative when it left the choice to us.
func (t *Topic) Place(key []byte, hasKey bool, chosen int32) int32 {
	n := uint32(len(t.parts()))
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
