package routing

import (
	"fmt"
	"slices"
	"strings"

	"isthmus/core"
)

// Source is what an MQTT publish brings along. Target's strings may be views of its strings.
type Source struct {
	Topic, ClientID, Username string
	Properties                []core.Property
	Body                      []byte
}

// Target is where a publish goes. Up overwrites it and reuses its slices.
type Target struct {
	Mapping    string // the mapping's id, or UnmatchedID
	Topic      core.TopicName
	Key        []byte
	HasKey     bool
	Tag        string
	Properties []core.Property
	Volatile   bool // the mapping looks at properties or the body: another publish to the same topic may differ
}

// upRule takes MQTT topics of a pattern to a topic.
type upRule struct {
	id, path   string
	direction  Direction
	pattern    pattern // nil: the catch-all
	topic      core.TopicName
	key, tag   template
	properties []propertyTemplate
	qos        byte
	volatile   bool
}

type propertyTemplate struct {
	name  string
	value template
}

// Up says where a publish goes. A key, tag or property whose template names something that is missing is left out.
//
// Errors: core.ErrInvalid when a capture is empty or has control characters, core.ErrForbidden for a topic that
// begins with $ and has no mapping of its own, core.ErrTopicNotFound when unmatched publishes are refused.
func (t *Table) Up(s *Source, dst *Target) error {
	r := t.root.match(s.Topic)
	if r == nil {
		// Spec: MQTT5 4.7.2: servers should keep clients from using topics that begin with $ among themselves.
		if strings.HasPrefix(s.Topic, "$") {
			return fmt.Errorf("publish to %q: %w", s.Topic, core.ErrForbidden)
		}
		if r = t.catchAll; r == nil {
			return fmt.Errorf("publish to %q: no mapping takes it: %w", s.Topic, core.ErrTopicNotFound)
		}
	}
	e := env{source: s}
	r.pattern.captures(s.Topic, &e.captures)
	if !r.pattern.validCaptures(&e.captures) {
		return fmt.Errorf("publish to %q: mapping %s: a capture is empty or has characters that are not allowed: %w", s.Topic, r.id, core.ErrInvalid)
	}
	dst.Mapping, dst.Topic, dst.Volatile = r.id, r.topic, r.volatile
	dst.Key, dst.HasKey = r.key.append(dst.Key[:0], &e)
	dst.HasKey = dst.HasKey && len(r.key) > 0
	if !dst.HasKey {
		dst.Key = dst.Key[:0]
	}
	e.key = dst.Key
	dst.Tag = ""
	if tag, ok := r.tag.text(&e); ok {
		dst.Tag = tag
	}
	dst.Properties = dst.Properties[:0]
	for i := range r.properties {
		if v, ok := r.properties[i].value.text(&e); ok {
			dst.Properties = append(dst.Properties, core.Property{Key: r.properties[i].name, Value: v})
		}
	}
	return nil
}

func (p pattern) validCaptures(values *[maxCaptures]string) bool {
	n := 0
	for _, l := range p {
		if l.kind == literal {
			continue
		}
		if !validCapture(values[n], l.kind) {
			return false
		}
		n++
	}
	return true
}

// isVolatile tells whether the mapping looks at more than the MQTT topic and who publishes.
func (r *upRule) isVolatile() bool {
	looks := func(t template) bool {
		return slices.ContainsFunc(t, func(p part) bool { return p.kind == nameProperty || p.kind == nameJSON })
	}
	return looks(r.key) || looks(r.tag) ||
		slices.ContainsFunc(r.properties, func(p propertyTemplate) bool { return looks(p.value) })
}

// followsTopic tells whether t has a value and it depends on nothing but the MQTT topic.
func (t template) followsTopic() bool {
	for i := range t {
		switch t[i].kind {
		case partLiteral, nameCapture, nameTopic:
		case nameKey, nameClientID, nameUsername, nameProperty, nameJSON:
			return false
		}
	}
	return len(t) > 0
}
