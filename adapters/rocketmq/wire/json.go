package wire

import (
	"fmt"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// parseJSON decodes a JSON header in one pass, unescaping strings in place. Unknown members are skipped.
//
// Spec: RocketMQ RemotingSerializable, RemotingCommand@5.x
func (h *Header) parseJSON(b []byte) error {
	h.reset()
	s := scanner{b: b}
	s.object(func(key []byte) {
		switch string(key) {
		case "code":
			h.Code = s.int32()
		case "language":
			h.Language = parseLanguage(s.text())
		case "version":
			h.Version = s.int32()
		case "opaque":
			h.Opaque = s.int32()
		case "flag":
			h.Flag = s.int32()
		case "remark":
			h.Remark = s.text()
		case "extFields":
			s.ext(h)
		default:
			s.skip(0)
		}
	})
	s.space()
	if s.err == nil && s.i != len(s.b) {
		s.fail("bytes after the header")
	}
	return s.err
}

// scanner walks over a JSON text; the first fault sticks.
type scanner struct {
	b   []byte
	i   int
	err error
}

func (s *scanner) fail(what string) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: json header: %s at byte %d", ErrMalformed, what, s.i)
	}
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) expect(c byte) {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return
	}
	if s.peek() != c {
		s.fail("unexpected byte")
		return
	}
	s.i++
}

// object calls value for each member, positioned before its value; value must consume it.
func (s *scanner) object(value func(key []byte)) {
	s.expect('{')
	if s.err == nil && s.peek() == '}' {
		s.i++
		return
	}
	for s.err == nil {
		key := s.str()
		s.expect(':')
		if s.err != nil {
			return
		}
		value(key)
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			return
		default:
			s.fail("object is not closed")
		}
	}
}

// ext reads the ext fields. Clients write strings; numbers and booleans are taken as their text, null as absent.
func (s *scanner) ext(h *Header) {
	if s.peek() == 'n' {
		s.text()
		return
	}
	s.object(func(key []byte) {
		v := s.text()
		if s.err == nil && v != nil {
			if err := h.add(key, v); err != nil {
				s.err = err
			}
		}
	})
}

// text reads any scalar as its text; null gives nil.
func (s *scanner) text() []byte {
	switch c := s.peek(); {
	case c == '"':
		return s.str()
	case c == '{' || c == '[' || c == 0:
		s.fail("a scalar was expected")
		return nil
	}
	start := s.i
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			goto end
		case '"', '{', '[', ':':
			s.fail("bad literal")
			return nil
		}
		s.i++
	}
end:
	t := s.b[start:s.i:s.i]
	if string(t) == "null" {
		return nil
	}
	return t
}

func (s *scanner) int32() int32 {
	t := s.text()
	if t == nil || s.err != nil {
		return 0
	}
	n, ok := atoi(t)
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		s.fail("bad number")
		return 0
	}
	return int32(n)
}

// str reads a quoted string. Without escapes it is a view; with escapes it is rewritten in place, which always fits.
func (s *scanner) str() []byte {
	s.expect('"')
	if s.err != nil {
		return nil
	}
	start := s.i
	for i, c := range s.b[start:] { // the strings are short: a plain loop beats two searches
		switch c {
		case '"':
			s.i = start + i + 1
			return s.b[start : start+i : start+i]
		case '\\':
			return s.unescape(start, start+i)
		}
	}
	s.fail("string is not closed")
	return nil
}

func (s *scanner) unescape(start, at int) []byte {
	out := at
	for at < len(s.b) {
		switch c := s.b[at]; c {
		case '"':
			s.i = at + 1
			return s.b[start:out:out]
		case '\\':
			n, w := s.escape(at, out)
			if n == 0 {
				s.i = at
				s.fail("bad escape")
				return nil
			}
			at, out = at+n, out+w
		default:
			s.b[out] = c
			at, out = at+1, out+1
		}
	}
	s.i = at
	s.fail("string is not closed")
	return nil
}

// escape decodes the escape at at, writes it to out, and returns how much it read and wrote; 0 read means malformed.
func (s *scanner) escape(at, out int) (read, wrote int) {
	if at+1 >= len(s.b) {
		return 0, 0
	}
	c := s.b[at+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		r, n := s.unicode(at)
		if n == 0 {
			return 0, 0
		}
		return n, utf8.EncodeRune(s.b[out:out+3+n/12], r)
	default:
		return 0, 0
	}
	s.b[out] = c
	return 2, 1
}

// unicode decodes \uXXXX, with its second half for a surrogate pair; a lone half becomes U+FFFD.
func (s *scanner) unicode(at int) (rune, int) {
	r, ok := hex4(s.b, at+2)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if at+7 < len(s.b) && s.b[at+6] == '\\' && s.b[at+7] == 'u' {
		if low, ok := hex4(s.b, at+8); ok {
			if r := utf16.DecodeRune(r, low); r != utf8.RuneError {
				return r, 12
			}
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte, at int) (rune, bool) {
	if at+4 > len(b) {
		return 0, false
	}
	var r rune
	for _, c := range b[at : at+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// maxDepth bounds what skip follows: no known client nests anything in a header.
const maxDepth = 16

func (s *scanner) skip(depth int) {
	switch c := s.peek(); {
	case depth > maxDepth:
		s.fail("nested too deeply")
	case c == '{':
		s.object(func([]byte) { s.skip(depth + 1) })
	case c == '[':
		s.i++
		if s.peek() == ']' {
			s.i++
			return
		}
		for s.err == nil {
			s.skip(depth + 1)
			if s.peek() == ']' {
				s.i++
				return
			}
			s.expect(',')
		}
	default:
		s.text()
	}
}

const hexDigits = "0123456789abcdef"

// appendQuoted writes s as a JSON string. Bytes that are no UTF-8 become U+FFFD, as every JSON writer does.
func appendQuoted[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			var buf [utf8.UTFMax]byte
			n := copy(buf[:], s[i:])
			r, size := utf8.DecodeRune(buf[:n])
			dst = utf8.AppendRune(dst, r)
			i += size
		}
	}
	return append(dst, '"')
}
