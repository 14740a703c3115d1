package routing

import "strings"

// node is one level of the compiled patterns. Immutable once compiled.
type node struct {
	literals map[string]*node
	capture  *node
	rule     *upRule // the pattern that ends here
	tail     *upRule // the pattern that takes one more level or any number
}

// insert returns the rule that already has the same shape, or nil when r went in.
func (n *node) insert(r *upRule) *upRule {
	for _, l := range r.pattern {
		switch l.kind {
		case literal:
			next := n.literals[l.text]
			if next == nil {
				if n.literals == nil {
					n.literals = map[string]*node{}
				}
				next = &node{}
				n.literals[l.text] = next
			}
			n = next
		case capture:
			if n.capture == nil {
				n.capture = &node{}
			}
			n = n.capture
		case tail:
			if n.tail != nil {
				return n.tail
			}
			n.tail = r
			return nil
		}
	}
	if n.rule != nil {
		return n.rule
	}
	n.rule = r
	return nil
}

// match finds the most specific rule for a topic: at each level the literal, then the capture, then the tail, going
// back when a branch ends. No node is visited twice, so a topic costs no more than the trie is large.
func (n *node) match(topic string) *upRule {
	head, rest, more := strings.Cut(topic, "/")
	if next := n.literals[head]; next != nil {
		if r := next.matchRest(rest, more); r != nil {
			return r
		}
	}
	// Spec: MQTT5 4.7.2 [MQTT-4.7.2-1]: wildcards at the first level do not match topics that begin with $.
	if strings.HasPrefix(topic, "$") {
		return nil
	}
	if n.capture != nil {
		if r := n.capture.matchRest(rest, more); r != nil {
			return r
		}
	}
	return n.tail
}

func (n *node) matchRest(topic string, more bool) *upRule {
	if !more {
		return n.rule
	}
	head, rest, more := strings.Cut(topic, "/")
	if next := n.literals[head]; next != nil {
		if r := next.matchRest(rest, more); r != nil {
			return r
		}
	}
	if n.capture != nil {
		if r := n.capture.matchRest(rest, more); r != nil {
			return r
		}
	}
	return n.tail
}
