package routing

import (
	"iter"
	"strings"

	"isthmus/core"
)

// Coverage is a topic some of whose MQTT topics match a filter.
type Coverage struct {
	Topic core.TopicName
	Whole bool // all of them do
}

// anyLevel stands for a level that nobody wrote anywhere: NUL is in no pattern, filter or topic. Among all values of a
// capture it is the one that the fewest other patterns and filters match, so one example decides for all.
const anyLevel = "\x00"

// Covers says which topics' MQTT messages a topic filter can match, in the order of Topics. The reasoning is exact: what
// a more specific mapping takes away from a pattern does not count.
func (t *Table) Covers(filter string) []Coverage {
	f := strings.Split(filter, "/")
	depth := max(t.levels, len(f)) + 1
	var out []Coverage
	for _, name := range t.topics {
		rules := t.byTopic[name]
		some, whole := false, true
		for _, r := range rules.up {
			isMine := func(topic string) bool { return t.root.match(topic) == r }
			some = some || overlaps(r.pattern, f, depth, isMine)
			whole = whole && contains(r.pattern, f, depth, isMine)
		}
		for _, d := range rules.down {
			some = some || overlaps(d.shape, f, depth, everything)
			whole = whole && contains(d.shape, f, depth, everything)
		}
		if t.catchAll != nil && t.catchAll.topic == name {
			isMine := func(topic string) bool { return t.isRule(topic, t.catchAll) }
			all := pattern{{tail, ""}}
			some = some || overlaps(all, f, depth, isMine)
			whole = whole && contains(all, f, depth, isMine)
		}
		if some {
			out = append(out, Coverage{name, whole})
		}
	}
	return out
}

func everything(string) bool { return true }

// overlaps tells whether a topic exists that p and the filter match and mine accepts.
func overlaps(p pattern, f []string, depth int, mine func(string) bool) bool {
	for topic := range p.examples(depth) {
		if t, ok := narrow(topic, p, f); ok && mine(t) {
			return true
		}
	}
	return false
}

// contains tells whether the filter matches every topic that p matches and mine accepts.
func contains(p pattern, f []string, depth int, mine func(string) bool) bool {
	for topic := range p.examples(depth) {
		if mine(topic) && !matches(f, topic) {
			return false
		}
	}
	return true
}

// examples yields one topic for each number of levels up to depth that p can match, its captures set to anyLevel.
func (p pattern) examples(depth int) iter.Seq[string] {
	return func(yield func(string) bool) {
		levels := make([]string, len(p), max(depth, len(p)))
		for i, l := range p {
			levels[i] = anyLevel
			if l.kind == literal {
				levels[i] = l.text
			}
		}
		for {
			if !yield(strings.Join(levels, "/")) || !p.hasTail() || len(levels) >= depth {
				return
			}
			levels = append(levels, anyLevel)
		}
	}
}

// narrow sets the free levels of an example to what the filter asks for, if a publish may have that there.
func narrow(topic string, p pattern, f []string) (string, bool) {
	levels := strings.Split(topic, "/")
	for i, want := range f {
		if want == "#" {
			break
		}
		if i >= len(levels) {
			return "", false
		}
		if want == "+" || want == levels[i] {
			continue
		}
		if levels[i] != anyLevel || i == 0 && strings.HasPrefix(want, "$") {
			return "", false
		}
		if i < len(p) && p[i].kind == capture && !validCapture(want, capture) {
			return "", false
		}
		levels[i] = want
	}
	if p.hasTail() && strings.Join(levels[len(p)-1:], "/") == "" {
		return "", false // an empty tail is refused
	}
	topic = strings.Join(levels, "/")
	return topic, matches(f, topic)
}

// matches tells whether a filter matches a topic.
// Spec: MQTT5 4.7.1.2, 4.7.1.3; 4.7.2 [MQTT-4.7.2-1]
func matches(f []string, topic string) bool {
	if strings.HasPrefix(topic, "$") && (f[0] == "+" || f[0] == "#") {
		return false
	}
	for i, want := range f {
		if want == "#" {
			return true
		}
		head, rest, more := strings.Cut(topic, "/")
		if want != "+" && want != head {
			return false
		}
		if !more {
			// The level before # is matched too.
			return i == len(f)-1 || i == len(f)-2 && f[i+1] == "#"
		}
		topic = rest
	}
	return false
}
