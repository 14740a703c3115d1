package rocketmq

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// registry knows the consumer groups of connected clients: who is in them, and what they subscribe to. The mutex is a
// leaf; what follows from a change (notices, engine calls) is returned and done outside.
type registry struct {
	mu struct {
		sync.Mutex
		groups map[string]*group
		counts map[*session]int     // memberships of a connection
		remind map[string]time.Time // when to call a group's members again
	}
}

// group is one consumer group. Its subscriptions are those of the member that changed its own last: real brokers take
// the highest version, which for mixed clients is always the Go client's, as it counts nanoseconds.
type group struct {
	members      map[memberKey]*member
	subs         map[string]subscription // by topic, as clients name it
	awaited      map[string]bool         // topics that did not exist when a member subscribed to them
	broadcasting bool
	fromWhere    string
	asks         bool // where to begin is for the client to say, not for the heartbeat
}

// memberKey is a client; clients of a broadcasting group may share an id, so there it is a client and its connection. In
// other groups a client that comes back takes the place of its old connection, which may be half dead.
type memberKey struct {
	client  string
	session *session // nil unless broadcasting
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
	remaining     []*session
}

func (r *registry) init() {
	r.mu.groups, r.mu.counts, r.mu.remind = make(map[string]*group), make(map[*session]int), make(map[string]time.Time)
}

// maxMemberships bounds the groups of one connection, whatever ids its heartbeats name.
const maxMemberships = 1024

// beaten is what follows from a heartbeat.
type beaten struct {
	notify  []*session // who is to be told about a change
	dropped []string   // topics that the client no longer subscribes to
	differs bool       // from the other members' subscriptions
}

// beat notes a heartbeat. absent are those of the subscribed topics that do not exist.
func (r *registry) beat(s *session, client string, d *wire.ConsumerData, subs map[string]subscription, absent []string, now time.Time) (out beaten, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := memberKey{client: client}
	if d.Model == wire.Broadcasting {
		key.session = s
	}
	g := r.mu.groups[d.Group]
	if (g == nil || g.members[key] == nil || g.members[key].session != s) && r.mu.counts[s] >= maxMemberships {
		return out, fmt.Errorf("%d groups on one connection: %w", maxMemberships, core.ErrOverloaded)
	}
	if g == nil {
		g = &group{members: make(map[memberKey]*member), awaited: make(map[string]bool)}
		r.mu.groups[d.Group] = g
	}
	g.broadcasting, g.fromWhere = d.Model == wire.Broadcasting, d.FromWhere
	// rocketmq-client-go's pull consumer writes LAST_OFFSET whatever it was told.
	g.asks = d.FromWhere == wire.FromTimestamp || d.Type == wire.Actively
	m := g.members[key]
	changed := m == nil || m.session != s
	if m == nil {
		m = new(member)
		g.members[key] = m
	}
	if changed {
		r.count(m.session, -1)
		r.count(s, 1)
	}
	m.session, m.seen = s, now
	if !sameSubs(m.subs, subs) {
		out.differs = g.subs != nil && len(g.members) > 1 && !sameSubs(g.subs, subs)
		for topic := range m.subs {
			if _, still := subs[topic]; !still {
				out.dropped = append(out.dropped, topic)
			}
		}
		m.subs, g.subs = subs, subs
		changed = true
	}
	g.await(subs, absent)
	if changed {
		r.mu.remind[d.Group] = now.Add(settle)
		out.notify = g.sessions()
	}
	return out, nil
}

func (r *registry) count(s *session, n int) {
	if s == nil {
		return
	}
	if r.mu.counts[s] += n; r.mu.counts[s] == 0 {
		delete(r.mu.counts, s)
	}
}

// await notes which topics are still to come.
func (g *group) await(subs map[string]subscription, absent []string) {
	for topic := range g.awaited {
		if _, here := subs[topic]; here || g.newest(topic) == nil {
			delete(g.awaited, topic)
		}
	}
	for _, topic := range absent {
		g.awaited[topic] = true
	}
}

// newest returns the member heard of last, of those that subscribe to a topic; "" is any.
func (g *group) newest(topic string) *member {
	var best *member
	for _, m := range g.members {
		if _, has := m.subs[topic]; (has || topic == "") && (best == nil || m.seen.After(best.seen)) {
			best = m
		}
	}
	return best
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
	return r.remove(func(_, _ string, m *member) bool { return m.session == s })
}

// leave forgets one client in one group, when it is on this connection.
func (r *registry) leave(s *session, groupName, client string) []departure {
	return r.remove(func(g, c string, m *member) bool { return g == groupName && c == client && m.session == s })
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
		for key, m := range g.members {
			if gone(name, key.client, m) {
				delete(g.members, key)
				r.count(m.session, -1)
				out = append(out, departure{group: name, client: key.client, topics: slices.Collect(maps.Keys(m.subs))})
			}
		}
		if len(out) == first {
			continue
		}
		for i := first; i < len(out); i++ {
			out[i].remaining = g.sessions()
		}
		r.mu.remind[name] = now.Add(settle)
		if len(g.members) == 0 {
			delete(r.mu.groups, name)
		}
		g.inherit()
	}
	return out
}

// inherit replaces the subscriptions of a group when nobody who is left asked for them.
func (g *group) inherit() {
	for _, m := range g.members {
		if sameSubs(m.subs, g.subs) {
			return
		}
	}
	if m := g.newest(""); m != nil {
		g.subs = m.subs
	}
}
