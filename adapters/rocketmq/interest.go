package rocketmq

import (
	"maps"
	"slices"
)

// What the other files ask the registry.

// interest is what a group wants of a topic.
type interest struct {
	filter             filter
	known              bool
	broadcasting, asks bool
	awaited            bool // it subscribed before the topic existed
	fromWhere          string
}

// interest looks a subscription up. Members with different topics are a mistake of the application; each still gets its
// own, while real brokers let them starve in turns.
func (r *registry) interest(groupName, topic string) interest {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.mu.groups[groupName]
	if g == nil {
		return interest{}
	}
	sub, known := g.subs[topic]
	if !known {
		if m := g.newest(topic); m != nil {
			sub, known = m.subs[topic], true
		}
	}
	return interest{filter: sub.filter, known: known, broadcasting: g.broadcasting, asks: g.asks, awaited: g.awaited[topic], fromWhere: g.fromWhere}
}

// members returns the client ids and topics of a group.
func (r *registry) members(groupName string) (clients, topics []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.mu.groups[groupName]; g != nil {
		for key := range g.members {
			clients = append(clients, key.client)
		}
		topics = slices.Collect(maps.Keys(g.subs))
	}
	return clients, topics
}

// others returns the connections of a group's members but for this one.
func (r *registry) others(s *session, groupName string) []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.mu.groups[groupName]
	if g == nil {
		return nil
	}
	return slices.DeleteFunc(g.sessions(), func(x *session) bool { return x == s })
}

// clientOf returns the client of a group on this connection, "" when there is none.
func (r *registry) clientOf(s *session, groupName string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.mu.groups[groupName]; g != nil {
		for key, m := range g.members {
			if m.session == s {
				return key.client
			}
		}
	}
	return ""
}
