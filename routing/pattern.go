package routing

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxCaptures = 16        // in one pattern: they live in an array on the stack
	maxLevels   = 128       // of a pattern
	maxTopic    = 1<<16 - 1 // Spec: MQTT5 1.5.4: a UTF-8 string has a two-byte length
)

// level is one level of a pattern. Only the last one may be a tail.
type level struct {
	kind levelKind
	text string // the literal, or the name of the capture
}

type levelKind uint8

const (
	literal levelKind = iota
	capture
	tail
)

type pattern []level

func parsePattern(s string) (pattern, error) {
	if err := checkText(s); err != nil {
		return nil, err
	}
	parts := strings.Split(s, "/")
	if len(parts) > maxLevels {
		return nil, fmt.Errorf("more than %d levels", maxLevels)
	}
	p := make(pattern, 0, len(parts))
	names := 0
	for i, part := range parts {
		l, err := parseLevel(part)
		if err != nil {
			return nil, err
		}
		if l.kind == tail && i != len(parts)-1 {
			return nil, fmt.Errorf("{%s...} must be the last level", l.text)
		}
		if l.kind != literal {
			if p.index(l.text) >= 0 {
				return nil, fmt.Errorf("{%s} is named twice", l.text)
			}
			if names++; names > maxCaptures {
				return nil, fmt.Errorf("more than %d captures", maxCaptures)
			}
		}
		p = append(p, l)
	}
	if p[0].kind == literal && p[0].text == "$share" {
		return nil, errors.New("unreachable: nobody publishes to $share")
	}
	return p, nil
}

func parseLevel(s string) (level, error) {
	if !strings.ContainsAny(s, "{}") {
		return level{literal, s}, nil
	}
	name, ok := strings.CutPrefix(s, "{")
	if ok {
		name, ok = strings.CutSuffix(name, "}")
	}
	if !ok || strings.ContainsAny(name, "{}") {
		return level{}, fmt.Errorf("level %q: a capture fills its level", s)
	}
	kind := capture
	if cut, is := strings.CutSuffix(name, "..."); is {
		name, kind = cut, tail
	}
	if !isIdentifier(name) {
		return level{}, fmt.Errorf("level %q: a capture is named by letters, digits, _ and -", s)
	}
	if name == "key" {
		return level{}, errors.New(`{key} is the key of the message: name the capture otherwise and write key: "{...}"`)
	}
	return level{kind, name}, nil
}

// checkText refuses what no MQTT topic name can hold.
// Spec: MQTT5 4.7.3 [MQTT-4.7.3-1] [MQTT-4.7.3-2]; 4.7.1 [MQTT-4.7.1-1]
func checkText(s string) error {
	switch {
	case s == "":
		return errors.New("empty")
	case len(s) > maxTopic:
		return errors.New("longer than an MQTT topic can be")
	case !utf8.ValidString(s) || hasControl(s):
		return errors.New("control characters or broken UTF-8")
	case strings.ContainsAny(s, "+#"):
		return errors.New("+ and # are filters: write {name} and {name...}")
	}
	return nil
}

func isIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}

// index is the position of a capture among the captures of p, or -1.
func (p pattern) index(name string) int {
	n := 0
	for _, l := range p {
		if l.kind == literal {
			continue
		}
		if l.text == name {
			return n
		}
		n++
	}
	return -1
}

// shape is the same for two patterns that match the same topics.
func (p pattern) shape() string {
	var b strings.Builder
	for i, l := range p {
		if i > 0 {
			b.WriteByte('/')
		}
		switch l.kind {
		case literal:
			b.WriteString(l.text)
		case capture:
			b.WriteByte('+')
		case tail:
			b.WriteByte('#')
		}
	}
	return b.String()
}

func (p pattern) hasTail() bool { return p[len(p)-1].kind == tail }

// captures cuts the values out of a topic that p matches.
func (p pattern) captures(topic string, dst *[maxCaptures]string) (n int) {
	rest := topic
	for _, l := range p {
		if l.kind == tail {
			dst[n] = rest
			return n + 1
		}
		head, after, _ := strings.Cut(rest, "/")
		if l.kind == capture {
			dst[n] = head
			n++
		}
		rest = after
	}
	return n
}

// validCapture tells whether a value may stand for a capture. Wildcards cannot come up from a publish, but they can
// come down from a key; control characters are separators in RocketMQ's properties.
func validCapture(s string, kind levelKind) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20, c == 0x7f, c == '+', c == '#', c == '/' && kind != tail:
			return false
		}
	}
	return s != "" && utf8.ValidString(s)
}

func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return true
		}
	}
	return false
}
