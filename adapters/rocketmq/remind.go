package rocketmq

import "time"

// settle is when members are called a second time after a change: rocketmq-client-go balances on every call in a
// goroutine of its own, and the one that saw the older list may finish last.
const settle = time.Second

// soon is how long a client that unlocks its queues has for saying that it leaves.
const soon = 100 * time.Millisecond

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
