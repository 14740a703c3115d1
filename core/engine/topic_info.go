package engine

import (
	"fmt"
	"maps"

	"isthmus/core"
)

// TopicInfo is what there is to know of a topic at a moment.
type TopicInfo struct {
	Declared     bool // it was not made by a client
	ByKey        bool
	Names        map[string]string // by protocol
	Policy       Policy
	Messages     int64 // retained
	Bytes        int64 // about, see Partition.written
	Backlog      int64 // messages before the slowest durable group
	BacklogBytes int64
	Full         error // why producers are refused or made to wait, nil: they are not
}

// Info describes the topic.
func (t *Topic) Info() TopicInfo {
	s := t.shape.Load()
	i := TopicInfo{ByKey: s.byKey, Names: maps.Clone(s.names), Policy: s.policy, BacklogBytes: t.backlog()}
	i.Declared = s.declared
	for _, p := range t.parts() {
		first, end := p.Bounds()
		i.Messages += end - first
		i.Bytes += max(0, p.total()-p.written(first))
	}
	for _, g := range t.Groups() {
		if n, _ := g.Backlog(); g.durable {
			i.Backlog = max(i.Backlog, n)
		}
	}
	_, i.Full = t.Full()
	return i
}

// Bytes is about what is retained of the partition.
func (p *Partition) Bytes() int64 { return max(0, p.total()-p.written(p.first.Load())) }

// CreateTopic makes a topic that nobody has declared, with journals of its own; ErrTopicExists when it is there.
func (e *Engine) CreateTopic(n core.TopicName, spec TopicSpec) (*Topic, error) {
	e.mu.RLock()
	_, there := e.mu.topics[n]
	damaged := e.mu.damaged[n]
	e.mu.RUnlock()
	if there || damaged != nil {
		return nil, fmt.Errorf("%s: %w", n, core.ErrTopicExists)
	}
	return e.DeclareTopic(n, spec)
}

// Damaged returns the topics that are out of service, and why.
func (e *Engine) Damaged() map[core.TopicName]error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return maps.Clone(e.mu.damaged)
}
