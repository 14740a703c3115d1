package mqtt

import (
	"strings"
	"sync"
	"sync/atomic"
)

// tree finds the plain subscriptions that match a topic: a node per level of the filters. Sessions change it, the
// fan-out reads it; its lock is a leaf.
type tree struct {
	mu    sync.RWMutex
	root  node
	count atomic.Int64
}

type node struct {
	children map[string]*node
	subs     map[*session]*subscription
}

// add puts a subscription in, in place of the session's former one of the same filter.
func (t *tree) add(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.root
	for level := range strings.SplitSeq(sub.filter, "/") {
		next := n.children[level]
		if next == nil {
			next = &node{}
			if n.children == nil {
				n.children = map[string]*node{}
			}
			n.children[level] = next
		}
		n = next
	}
	if n.subs == nil {
		n.subs = map[*session]*subscription{}
	}
	if n.subs[sub.session] == nil {
		t.count.Add(1)
	}
	n.subs[sub.session] = sub
}

func (t *tree) remove(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.root.remove(sub, strings.Split(sub.filter, "/")) {
		t.count.Add(-1)
	}
}

func (n *node) remove(sub *subscription, levels []string) (removed bool) {
	if len(levels) == 0 {
		_, removed = n.subs[sub.session]
		delete(n.subs, sub.session)
		return removed
	}
	next := n.children[levels[0]]
	if next == nil {
		return false
	}
	removed = next.remove(sub, levels[1:])
	if len(next.subs) == 0 && len(next.children) == 0 {
		delete(n.children, levels[0])
	}
	return removed
}

// match calls visit for every subscription whose filter matches the topic.
func (t *tree) match(topic string, visit func(*subscription)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	// Spec: MQTT5 4.7.2 [MQTT-4.7.2-1]; MQTT3 4.7.2 [MQTT-4.7.2-1]
	t.root.match(topic, true, !strings.HasPrefix(topic, "$"), visit)
}

func (n *node) match(topic string, more, wildcards bool, visit func(*subscription)) {
	if wildcards {
		if all := n.children["#"]; all != nil {
			all.each(visit)
		}
	}
	if !more {
		n.each(visit)
		return
	}
	level, rest, more := strings.Cut(topic, "/")
	if next := n.children[level]; next != nil {
		next.match(rest, more, true, visit)
	}
	if wildcards {
		if next := n.children["+"]; next != nil {
			next.match(rest, more, true, visit)
		}
	}
}

func (n *node) each(visit func(*subscription)) {
	for _, sub := range n.subs {
		visit(sub)
	}
}
