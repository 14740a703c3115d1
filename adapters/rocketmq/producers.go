package rocketmq

import (
	"sync"
	"time"

	"isthmus/adapters/rocketmq/wire"
)

// producers knows which connections speak for a producer group: those whose heartbeats name it, and those that have sent a
// half message in its name. The mutex is a leaf.
type producers struct {
	mu     sync.Mutex
	groups map[string]map[*session]time.Time // when it was heard of
	counts map[*session]int
}

// add notes a connection. What is beyond maxMemberships is not noted.
func (p *producers) add(s *session, group string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[group]
	if _, there := g[s]; !there && p.counts[s] >= maxMemberships {
		return
	} else if !there {
		if p.groups == nil {
			p.groups, p.counts = make(map[string]map[*session]time.Time), make(map[*session]int)
		}
		if g == nil {
			g = make(map[*session]time.Time)
			p.groups[group] = g
		}
		p.counts[s]++
	}
	g[s] = now
}

// pick returns any connection of a group, or nil.
//
// Spec: RocketMQ ProducerManager.getAvailableChannel@5.x
func (p *producers) pick(group string) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.groups[group] {
		return s
	}
	return nil
}

// drop forgets a connection, in one group or, with "", in all.
func (p *producers) drop(s *session, group string) {
	p.remove(func(g string, x *session, _ time.Time) bool { return x == s && (group == "" || g == group) })
}

// expire forgets those that were last heard of before a time.
func (p *producers) expire(before time.Time) {
	p.remove(func(_ string, _ *session, seen time.Time) bool { return seen.Before(before) })
}

func (p *producers) remove(gone func(string, *session, time.Time) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, g := range p.groups {
		for s, seen := range g {
			if !gone(name, s, seen) {
				continue
			}
			delete(g, s)
			if p.counts[s]--; p.counts[s] == 0 {
				delete(p.counts, s)
			}
		}
		if len(g) == 0 {
			delete(p.groups, name)
		}
	}
}

// beatProducers notes the producer groups of a heartbeat.
//
// Spec: RocketMQ ProducerManager.registerProducer@5.x
func (s *session) beatProducers(ds []wire.ProducerData, now time.Time) {
	for _, d := range ds {
		if checkName("group", d.Group, maxGroup) == nil {
			s.srv.producers.add(s, d.Group, now)
		}
	}
}
