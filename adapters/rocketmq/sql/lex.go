package sql

import (
	"fmt"
	"strings"
)

// Bounds of an expression, which strangers send.
const (
	maxLength = 64 << 10
	maxDepth  = 64
)

type kind uint8

const (
	end kind = iota
	word
	text
	number
	symbol
)

// token is one word of an expression. upper is the word in capitals, for keywords.
type token struct {
	kind  kind
	text  string
	upper string
	at    int
}

// lex cuts an expression into tokens.
func lex(s string) (ts []token, err error) {
	for i := 0; ; {
		if i, err = blank(s, i); err != nil {
			return nil, err
		}
		if i == len(s) {
			return append(ts, token{kind: end, at: i}), nil
		}
		t := token{at: i}
		switch c := s[i]; {
		case c == '\'':
			t.kind = text
			if t.text, i, err = literal(s, i); err != nil {
				return nil, err
			}
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9':
			t.kind = number
			i = numeral(s, i)
			t.text = s[t.at:i]
		case letter(c):
			t.kind = word
			for i < len(s) && (letter(s[i]) || s[i] >= '0' && s[i] <= '9') {
				i++
			}
			t.text = s[t.at:i]
			t.upper = strings.ToUpper(t.text)
		default:
			t.kind = symbol
			if t.text = sign(s[i:]); t.text == "" {
				return nil, fmt.Errorf("%q at %d is no part of an expression", c, i)
			}
			i += len(t.text)
		}
		ts = append(ts, t)
	}
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
}

func sign(s string) string {
	for _, sign := range []string{"<>", "<=", ">=", "<", ">", "=", "(", ")", ",", "-", "+"} {
		if strings.HasPrefix(s, sign) {
			return sign
		}
	}
	return ""
}

// blank passes over space and comments.
func blank(s string, i int) (int, error) {
	for i < len(s) {
		switch {
		case strings.IndexByte(" \t\r\n\f", s[i]) >= 0:
			i++
		case strings.HasPrefix(s[i:], "--"):
			n := strings.IndexByte(s[i:], '\n')
			if n < 0 {
				return len(s), nil
			}
			i += n
		case strings.HasPrefix(s[i:], "/*"):
			n := strings.Index(s[i+2:], "*/")
			if n < 0 {
				return 0, fmt.Errorf("comment at %d has no end", i)
			}
			i += n + 4
		default:
			return i, nil
		}
	}
	return i, nil
}

// literal reads 'text', where ” stands for one quote.
func literal(s string, i int) (string, int, error) {
	var b strings.Builder
	for j := i + 1; j < len(s); j++ {
		if s[j] != '\'' {
			b.WriteByte(s[j])
			continue
		}
		if j+1 == len(s) || s[j+1] != '\'' {
			return b.String(), j + 1, nil
		}
		b.WriteByte('\'')
		j++
	}
	return "", 0, fmt.Errorf("text at %d has no end", i)
}

// numeral finds the end of a number: digits, a fraction, an exponent, or L behind an integer.
func numeral(s string, i int) int {
	digits := func() {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
	}
	digits()
	if i < len(s) && s[i] == '.' {
		i++
		digits()
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && s[j] >= '0' && s[j] <= '9' {
			i = j
			digits()
		}
	}
	if i < len(s) && (s[i] == 'l' || s[i] == 'L') {
		i++
	}
	return i
}
