package wire

import (
	"bytes"
	"unicode/utf8"
)

// validText: well-formed UTF-8 without U+0000. Surrogates are ill-formed already; U+FEFF is a character like
// any other.
func validText(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}

// checkTopic tells why b cannot be a topic name, nil if it can. Control characters are refused, which the
// standard leaves to the receiver: they end up in logs, configurations and other protocols' names.
// Spec: MQTT5 3.3.2.1 [MQTT-3.3.2-2]; MQTT5 4.7.3 [MQTT-4.7.3-1] [MQTT-4.7.3-2]
func checkTopic(b []byte, l *Limits) *Error {
	if len(b) == 0 {
		return malformed("empty topic")
	}
	levels, ascii := 1, true
	for _, c := range b {
		switch {
		case c == '/':
			levels++
		case c == '+' || c == '#':
			return malformed("wildcard in a topic name")
		case c < 0x20 || c == 0x7f:
			return malformed("control character in a topic name")
		case c >= 0x80:
			ascii = false
		}
	}
	if !ascii && !utf8.Valid(b) {
		return malformed("topic name is not UTF-8")
	}
	if l.Topic > 0 && len(b) > l.Topic || l.Levels > 0 && levels > l.Levels {
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
