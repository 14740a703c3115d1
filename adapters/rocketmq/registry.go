package rocketmq

import (
	"maps"
	"slices"
	"sync"
	"time"

	"isthmus/adapters/rocketmq/wire"
)

// registry knows the consumer groups of connected clients: who is in them, and what they subscribe to. The mutex is a
// leaf; what follows from a change (notices, engine calls) is returned and done outside.
type registry struct {
	mu struct {
		sync.Mutex
		groups map[string]*group
		remind map[string]time.Time // when to call a group's members again
	}
}

// group is one consumer group. Its subscriptions are those of the member that changed its own last: real brokers take
// the highest version, which for mixed clients is always the Go client's, as it counts nanoseconds.
type group struct {
	members      map[string]*member
	subs         map[string]subscription // by topic, as clients name it
	broadcasting bool
	fromWhere    string
	asks         bool // where to begin is for the client to say, not for the heartbeat
}

type member struct {
	session *session
	seen    time.Time
	subs    map[string]subscription
}

type subscription struct {
	text, kind string // as the client wrote it
	filter     filter
}

// departure is one client that left one group.
type departure struct {
	group, client string
	topics        []string
	broadcasting  bool
	remaining     []*session
}

func (r *registry) init() {
	r.mu.groups, r.mu.remind = make(map[string]*group), make(map[string]time.Time)
}

// settle is when members are called a second time after a change: rocketmq-client-go balances on every call in a
// goroutine of its own, and the one that saw the older list may finish last.
const settle = time.Second

// again has a group's members called at a time, unless they are called before.
func (r *registry) again(groupName string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.mu.remind[groupName]; r.mu.groups[groupName] != nil && (!ok || at.Before(was)) {
		r.mu.remind[groupName] = at
	}
}

// reminders returns the members of the groups that are to be called now.
func (r *registry) reminders(now time.Time) map[string][]*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string][]*session)
	for name, at := range r.mu.remind {
		if at.After(now) {
			continue
		}
		delete(r.mu.remind, name)
		if g := r.mu.groups[name]; g != nil {
			out[name] = g.sessions()
		}
	}
	return out
}

// beat notes a heartbeat and tells who is to be told about a change, nil when there is none.
func (r *registry) beat(s *session, client string, d *wire.ConsumerData, subs map[string]subscription, now time.Time) (notify []*session, differs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.mu.groups[d.Group]
	if g == nil {
		g = &group{members: make(map[string]*member)}
		r.mu.groups[d.Group] = g
	}
	g.broadcasting, g.fromWhere = d.Model == wire.Broadcasting, d.FromWhere
	// rocketmq-client-go's pull consumer writes LAST_OFFSET whatever it was told.
	g.asks = d.FromWhere == wire.FromTimestamp || d.Type == wire.Actively
	m := g.members[client]
	changed := m == nil || m.session != s
	if m == nil {
		m = new(member)
		g.members[client] = m
	}
	m.session, m.seen = s, now
	if !sameSubs(m.subs, subs) {
		differs = g.subs != nil && len(g.members) > 1 && !sameSubs(g.subs, subs)
		m.subs, g.subs = subs, subs
		changed = true
	}
	if !changed {
		return nil, false
	}
	r.mu.remind[d.Group] = now.Add(settle)
	return g.sessions(), differs
}

func sameSubs(a, b map[string]subscription) bool {
	return maps.EqualFunc(a, b, func(x, y subscription) bool { return x.text == y.text && x.kind == y.kind })
}

// sessions returns each member's connection once.
func (g *group) sessions() []*session {
	var out []*session
	for _, m := range g.members {
		if !slices.Contains(out, m.session) {
			out = append(out, m.session)
		}
	}
	return out
}

// drop forgets everybody on a connection.
func (r *registry) drop(s *session) []departure {
	return r.remove(func(_ string, _ string, m *member) bool { return m.session == s })
}

// leave forgets one client in one group.
func (r *registry) leave(groupName, client string) []departure {
	return r.remove(func(g, c string, _ *member) bool { return g == groupName && c == client })
}

// expire forgets those whose last heartbeat is older than before.
func (r *registry) expire(before time.Time) []departure {
	return r.remove(func(_, _ string, m *member) bool { return m.seen.Before(before) })
}

func (r *registry) remove(gone func(group, client string, m *member) bool) []departure {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []departure
	now := time.Now()
	for name, g := range r.mu.groups {
		first := len(out)
		for id, m := range g.members {
			if gone(name, id, m) {
				delete(g.members, id)
				out = append(out, departure{group: name, client: id, topics: slices.Collect(maps.Keys(m.subs)), broadcasting: g.broadcasting})
			}
		}
		for i := first; i < len(out); i++ {
			out[i].remaining = g.sessions()
		}
		if len(out) > first {
			r.mu.remind[name] = now.Add(settle)
		}
		if len(g.members) == 0 {
			delete(r.mu.groups, name)
		}
	}
	return out
}

// interest is what a group wants of a topic.
type interest struct {
	filter             filter
	known              bool
	broadcasting, asks bool
	fromWhere          string
}

func (r *registry) interest(groupName, topic string) interest {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.mu.groups[groupName]
	if g == nil {
		return interest{}
	}
	sub, known := g.subs[topic]
	return interest{filter: sub.filter, known: known, broadcasting: g.broadcasting, asks: g.asks, fromWhere: g.fromWhere}
}

// members returns the client ids and topics of a group.
func (r *registry) members(groupName string) (clients, topics []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.mu.groups[groupName]; g != nil {
		clients, topics = slices.Collect(maps.Keys(g.members)), slices.Collect(maps.Keys(g.subs))
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

// on tells whether a client of a group is on this connection.
func (r *registry) on(s *session, groupName, client string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.mu.groups[groupName]
	return g != nil && g.members[client] != nil && g.members[client].session == s
}

// clientOf returns the client of a group on this connection, "" when there is none.
func (r *registry) clientOf(s *session, groupName string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.mu.groups[groupName]; g != nil {
		for id, m := range g.members {
			if m.session == s {
				return id
			}
		}
	}
	return ""
}
