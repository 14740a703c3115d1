package routing

import (
	"errors"
	"fmt"
	"strings"

	"isthmus/core"
)

// template is text with names in it. Values are cut from what a message brings along; nothing is parsed twice.
type template []part

// part is a literal, or a name with its filters.
type part struct {
	kind    nameKind
	text    string // literal text, property name, JSON pointer, or the capture's name
	capture int
	filters []filter
}

type nameKind uint8

const (
	partLiteral nameKind = iota
	nameCapture
	nameKey
	nameTopic
	nameClientID
	nameUsername
	nameProperty
	nameJSON
)

type filter struct {
	lower bool
	value string // of |default(value)
}

// scope says which names exist where a template stands.
type scope struct {
	captures pattern
	key      bool // {key}
	mqtt     bool // {mqtt.…}
}

func parseTemplate(s string, sc scope) (template, error) {
	var t template
	for s != "" {
		open := strings.IndexAny(s, "{}")
		if open < 0 {
			return append(t, part{text: s}), nil
		}
		if s[open] == '}' {
			return nil, errors.New("} without {")
		}
		if open > 0 {
			t = append(t, part{text: s[:open]})
		}
		end := strings.IndexAny(s[open+1:], "{}")
		if end < 0 || s[open+1+end] == '{' {
			return nil, errors.New("{ without }")
		}
		p, err := parseName(s[open+1:open+1+end], sc)
		if err != nil {
			return nil, err
		}
		t = append(t, p)
		s = s[open+end+2:]
	}
	return t, nil
}

func parseName(s string, sc scope) (part, error) {
	name, filters, _ := strings.Cut(s, "|")
	p, ok := sc.find(name)
	if !ok {
		return part{}, fmt.Errorf("unknown name {%s}", name)
	}
	if p.kind == nameJSON && p.text != "" && p.text[0] != '/' {
		return part{}, fmt.Errorf("{%s}: a JSON pointer begins with /", name)
	}
	for filters != "" {
		var f string
		f, filters = cutFilter(filters)
		value, isDefault := strings.CutPrefix(f, "default(")
		value, closed := strings.CutSuffix(value, ")")
		switch {
		case f == "lower":
			p.filters = append(p.filters, filter{lower: true})
		case isDefault && closed && value != "":
			p.filters = append(p.filters, filter{value: value})
		default:
			return part{}, fmt.Errorf("{%s}: unknown filter |%s", name, f)
		}
	}
	if strings.HasSuffix(s, "|") {
		return part{}, fmt.Errorf("{%s}: empty filter", name)
	}
	return p, nil
}

// cutFilter splits at the next bar that is not inside parentheses.
func cutFilter(s string) (head, rest string) {
	from := 0
	if strings.HasPrefix(s, "default(") {
		if end := strings.IndexByte(s, ')'); end >= 0 {
			from = end
		}
	}
	if bar := strings.IndexByte(s[from:], '|'); bar >= 0 {
		return s[:from+bar], s[from+bar+1:]
	}
	return s, ""
}

func (sc scope) find(name string) (part, bool) {
	if i := sc.captures.index(name); i >= 0 {
		return part{kind: nameCapture, capture: i, text: name}, true
	}
	if p, ok := strings.CutPrefix(name, "prop."); ok && p != "" {
		return part{kind: nameProperty, text: p}, true
	}
	if p, ok := strings.CutPrefix(name, "json:"); ok {
		return part{kind: nameJSON, text: p}, true
	}
	switch name {
	case "key":
		return part{kind: nameKey}, sc.key
	case "mqtt.topic":
		return part{kind: nameTopic}, sc.mqtt
	case "mqtt.client_id":
		return part{kind: nameClientID}, sc.mqtt
	case "mqtt.username":
		return part{kind: nameUsername}, sc.mqtt
	}
	return part{}, false
}

// literal tells whether t names nothing, and its text.
func (t template) literal() (string, bool) {
	switch {
	case len(t) == 0:
		return "", true
	case len(t) == 1 && t[0].kind == partLiteral:
		return t[0].text, true
	}
	return "", false
}

// env is what a template's names stand for while one message is routed. It lives on the stack.
type env struct {
	source   *Source       // the way up
	message  *core.Message // the way down
	captures [maxCaptures]string
	key      []byte
}

// text renders t; false when a name has no value. One literal or one name costs no allocation.
func (t template) text(e *env) (string, bool) {
	if len(t) == 1 {
		return t[0].value(e)
	}
	b, ok := t.append(nil, e)
	return string(b), ok
}

func (t template) append(dst []byte, e *env) ([]byte, bool) {
	for i := range t {
		s, ok := t[i].value(e)
		if !ok {
			return dst, false
		}
		dst = append(dst, s...)
	}
	return dst, true
}

// value is the text of one part; an empty value counts as missing, so that |default sees it.
func (p *part) value(e *env) (string, bool) {
	if p.kind == partLiteral {
		return p.text, true
	}
	s := p.raw(e)
	for _, f := range p.filters {
		switch {
		case f.lower:
			s = strings.ToLower(s)
		case s == "":
			s = f.value
		}
	}
	return s, s != ""
}

func (p *part) raw(e *env) string {
	switch p.kind {
	case partLiteral:
		return p.text
	case nameCapture:
		return e.captures[p.capture]
	case nameKey:
		return string(e.key)
	case nameTopic:
		return e.source.Topic
	case nameClientID:
		return e.source.ClientID
	case nameUsername:
		return e.source.Username
	case nameProperty:
		return e.property(p.text)
	case nameJSON:
		return jsonText(e.body(), p.text)
	}
	return ""
}

func (e *env) property(name string) string {
	if e.message != nil {
		v, _ := e.message.Property(name)
		return v
	}
	for i := range e.source.Properties {
		if e.source.Properties[i].Key == name {
			return e.source.Properties[i].Value
		}
	}
	return ""
}

func (e *env) body() []byte {
	if e.message != nil {
		return e.message.Body
	}
	return e.source.Body
}
