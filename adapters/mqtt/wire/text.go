package wire

import (
	"bytes"
	"unicode/utf8"
)

// validText: well-formed UTF-8 without U+0000. Surrogates are ill-formed already; U+FEFF is a character like
// any other.
// Spec: MQTT5 1.5.4 [MQTT-1.5.4-3]
func validText(b []byte) bool {
	for i, c := range b {
		if c == 0 || c >= utf8.RuneSelf {
			return utf8.Valid(b[i:]) && bytes.IndexByte(b[i:], 0) < 0
		}
	}
	return true
}

// What a byte can be in a topic name. One lookup per byte, and no branch, because every publish pays for it.
const (
	classWildcard = 1 << iota
	classControl
	classHigh  // part of a character beyond ASCII
	classLevel = 1 << 7
)

var topicClass = func() (t [256]byte) {
	for c := range t {
		switch {
		case c == '+' || c == '#':
			t[c] = classWildcard
		case c < 0x20 || c == 0x7f:
			t[c] = classControl
		case c >= utf8.RuneSelf:
			t[c] = classHigh
		case c == '/':
			t[c] = classLevel
		}
	}
	return t
}()

// checkTopic tells why b cannot be a topic name, nil if it can. Control characters are refused, which the
// standard leaves to the receiver: they end up in logs, configurations and other protocols' names.
// Spec: MQTT5 3.3.2.1 [MQTT-3.3.2-2]; MQTT5 4.7.3 [MQTT-4.7.3-1] [MQTT-4.7.3-2]
func checkTopic(b []byte, l *Limits) *Error {
	levels, seen := 1, byte(0)
	for _, c := range b {
		class := topicClass[c]
		seen |= class
		levels += int(class >> 7)
	}
	switch {
	case len(b) == 0:
		return malformed("empty topic")
	case seen&classWildcard != 0:
		return malformed("wildcard in a topic name")
	case seen&classControl != 0:
		return malformed("control character in a topic name")
	case seen&classHigh != 0 && !utf8.Valid(b):
		return malformed("topic name is not UTF-8")
	case l.Topic > 0 && len(b) > l.Topic || l.Levels > 0 && levels > l.Levels:
		return &Error{TopicNameInvalid, "topic name is too long or has too many levels"}
	}
	return nil
}

// ValidFilter tells whether f, without its $share prefix, is a topic filter.
// Spec: MQTT5 4.7.1 [MQTT-4.7.1-1] [MQTT-4.7.1-2]
func ValidFilter(f string, l *Limits) bool {
	if f == "" || l.Topic > 0 && len(f) > l.Topic {
		return false
	}
	levels := 1
	for i := 0; i < len(f); i++ {
		switch c := f[i]; {
		case c == '/':
			levels++
		case c == '#' && (i != len(f)-1 || i > 0 && f[i-1] != '/'):
			return false
		case c == '+' && (i > 0 && f[i-1] != '/' || i < len(f)-1 && f[i+1] != '/'):
			return false
		case c < 0x20 || c == 0x7f:
			return false
		}
	}
	return l.Levels == 0 || levels <= l.Levels
}
