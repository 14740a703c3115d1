package routing

import (
	"strings"

	"isthmus/core"
)

// backRule is an up mapping read backwards. The catch-all is one too: its key is the address.
type backRule struct {
	up       *upRule
	captures [][]inverse        // where to find each capture; the first that has a value counts, the others must agree
	fixed    []propertyTemplate // literal tag ("") and properties, which tell mappings of one topic apart
}

// inverse finds a capture in a message: what stands between prefix and suffix in its key, tag or a property.
type inverse struct {
	kind           inverseKind
	name           string
	prefix, suffix string
}

type inverseKind uint8

const (
	fromKey inverseKind = iota
	fromTag
	fromProperty
)

// backward finds the one rule that fits.
func (t *Table) backward(rules []*backRule, m *core.Message) (found *backRule, address string) {
	for _, b := range rules {
		if len(rules) > 1 && !b.fits(m) {
			continue
		}
		a, ok := b.render(m)
		if !ok || !t.isRule(a, b.up) {
			continue
		}
		if found != nil {
			return nil, "" // ambiguous
		}
		found, address = b, a
	}
	return found, address
}

func (t *Table) isRule(topic string, r *upRule) bool {
	found := t.root.match(topic)
	if found == nil && !strings.HasPrefix(topic, "$") {
		found = t.catchAll
	}
	return found == r
}

func (b *backRule) fits(m *core.Message) bool {
	for _, f := range b.fixed {
		want, _ := f.value.literal()
		got := m.Tag
		if f.name != "" {
			got, _ = m.Property(f.name)
		}
		if got != want {
			return false
		}
	}
	return true
}

func (b *backRule) render(m *core.Message) (string, bool) {
	if b.up.pattern == nil {
		key := string(m.Key)
		return key, m.HasKey && len(key) <= maxTopic && validCapture(key, tail)
	}
	var out strings.Builder
	n := 0
	for i, l := range b.up.pattern {
		if i > 0 {
			out.WriteByte('/')
		}
		text := l.text
		if l.kind != literal {
			var ok bool
			if text, ok = find(b.captures[n], m); !ok || !validCapture(text, l.kind) {
				return "", false
			}
			n++
		}
		out.WriteString(text)
	}
	return out.String(), out.Len() <= maxTopic
}

func find(places []inverse, m *core.Message) (value string, ok bool) {
	for i := range places {
		v, has := places[i].find(m)
		if !has {
			continue
		}
		if ok && v != value {
			return "", false
		}
		value, ok = v, true
	}
	return value, ok
}

func (in *inverse) find(m *core.Message) (v string, ok bool) {
	switch in.kind {
	case fromKey:
		v, ok = string(m.Key), m.HasKey
	case fromTag:
		v, ok = m.Tag, m.Tag != ""
	case fromProperty:
		v, ok = m.Property(in.name)
	}
	if !ok {
		return "", false
	}
	if v, ok = strings.CutPrefix(v, in.prefix); !ok {
		return "", false
	}
	return strings.CutSuffix(v, in.suffix)
}

// backwards turns r around; missing names the first capture that no message can tell.
func (r *upRule) backwards() (b *backRule, missing string) {
	b = &backRule{up: r}
	for _, l := range r.pattern {
		if l.kind == literal {
			continue
		}
		var places []inverse
		note := func(kind inverseKind, name string, t template) {
			if in, ok := t.inverse(l.text); ok {
				in.kind, in.name = kind, name
				places = append(places, in)
			}
		}
		note(fromKey, "", r.key)
		note(fromTag, "", r.tag)
		for _, p := range r.properties {
			note(fromProperty, p.name, p.value)
		}
		if places == nil {
			return nil, l.text
		}
		b.captures = append(b.captures, places)
	}
	for _, p := range append([]propertyTemplate{{"", r.tag}}, r.properties...) {
		if text, ok := p.value.literal(); ok && text != "" {
			b.fixed = append(b.fixed, p)
		}
	}
	return b, ""
}

// inverse finds a capture's value in the text of t, when t is nothing but that capture between two literals.
func (t template) inverse(name string) (in inverse, ok bool) {
	for i := range t {
		p := &t[i]
		switch {
		case p.kind == partLiteral && !ok:
			in.prefix = p.text
		case p.kind == partLiteral:
			in.suffix = p.text
		case p.kind == nameCapture && p.text == name && len(p.filters) == 0 && !ok:
			ok = true
		default:
			return inverse{}, false
		}
	}
	return in, ok
}
