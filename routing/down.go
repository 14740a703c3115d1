package routing

import (
	"errors"
	"slices"
	"strings"

	"isthmus/core"
)

// Address is an MQTT topic under which a message appears.
type Address struct {
	Topic   string
	QoS     byte
	Mapping string // the mapping's id, or UnmatchedID
}

// downRule is a mapping written from a topic to MQTT.
type downRule struct {
	id, path string
	address  template
	shape    pattern // the topics it can deliver to
	qos      byte
}

// Down appends the MQTT topics under which a message of a topic appears besides its own Address: those of all
// mappings written downwards and, for a message that has no Address, the up mapping read backwards if exactly one
// fits. A mapping that lacks a value, or has one that no MQTT topic can hold, gives nothing.
func (t *Table) Down(topic core.TopicName, m *core.Message, dst []Address) []Address {
	rules := t.byTopic[topic]
	if rules == nil {
		return dst
	}
	from := len(dst)
	add := func(a Address) {
		if a.Topic != m.Address && !slices.ContainsFunc(dst[from:], func(b Address) bool { return a.Topic == b.Topic }) {
			dst = append(dst, a)
		}
	}
	if len(rules.down) > 0 {
		e := env{message: m, key: m.Key}
		for _, r := range rules.down {
			if address, ok := r.render(&e); ok {
				add(Address{address, r.qos, r.id})
			}
		}
	}
	if m.Address == "" && len(rules.backward) > 0 {
		if b, address := t.backward(rules.backward, m); b != nil {
			add(Address{address, b.up.qos, b.up.id})
		}
	}
	return dst
}

func (r *downRule) render(e *env) (string, bool) {
	var out strings.Builder
	for i := range r.address {
		p := &r.address[i]
		v, ok := p.value(e)
		if !ok || p.kind != partLiteral && !validCapture(v, capture) {
			return "", false
		}
		out.WriteString(v)
	}
	// A value may not put a $ where only literals may.
	s := out.String()
	ok := len(s) <= maxTopic && (s[0] != '$' || r.address[0].kind == partLiteral)
	return s, ok
}

// levels is the pattern of what an address template can give, and whether each level is one plain name or literal, so
// that it can be read upwards.
func (t template) levels() (p pattern, back bool, err error) {
	back = true
	current, names := level{}, 0
	for i := range t {
		if t[i].kind != partLiteral {
			names++
			back = back && current.kind == literal && current.text == "" && len(t[i].filters) == 0 && t[i].kind != nameJSON
			current = level{capture, t[i].name()}
			continue
		}
		if err := checkText(t[i].text); err != nil {
			return nil, false, err
		}
		for j, text := range strings.Split(t[i].text, "/") {
			if j > 0 {
				p, current = append(p, current), level{}
			}
			back = back && (current.kind == literal || text == "")
			if current.kind == literal {
				current.text += text
			}
		}
	}
	p = append(p, current)
	switch {
	case len(t) == 0:
		return nil, false, errors.New("empty")
	case len(p) > maxLevels || names > maxCaptures:
		return nil, false, errors.New("too many levels or names")
	case p[0].kind == literal && p[0].text == "$share":
		return nil, false, errors.New("nobody can subscribe to $share")
	}
	for i := range p {
		if p[i].kind == capture && slices.Contains(p[:i], p[i]) {
			back = false // the same name twice
		}
	}
	return p, back, nil
}

// name is unique for what a part stands for.
func (p *part) name() string {
	switch p.kind {
	case nameKey:
		return "key"
	case nameProperty:
		return "prop." + p.text
	case nameJSON:
		return "json:" + p.text
	case partLiteral, nameCapture, nameTopic, nameClientID, nameUsername:
	}
	return p.text
}

func (p part) equal(q part) bool {
	return p.kind == q.kind && p.text == q.text && slices.Equal(p.filters, q.filters)
}

// upwards is a down mapping read backwards: each level that was rendered from the key or a property sets it.
func (r *downRule) upwards(topic core.TopicName) *upRule {
	up := &upRule{id: r.id, path: r.path, pattern: r.shape, topic: topic, qos: r.qos}
	for i := range r.address {
		p := &r.address[i]
		t := template{{kind: nameCapture, text: p.name(), capture: r.shape.index(p.name())}}
		switch p.kind {
		case nameKey:
			up.key = t
		case nameProperty:
			up.properties = append(up.properties, propertyTemplate{p.text, t})
		case partLiteral, nameJSON, nameCapture, nameTopic, nameClientID, nameUsername:
		}
	}
	return up
}
