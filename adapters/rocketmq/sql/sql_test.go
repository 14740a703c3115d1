package sql

import (
	"strings"
	"testing"
)

var message = map[string]string{"a": "5", "f": "2.5", "s": "it's", "t": "true", "empty": "", "TAGS": "red", "word": "x"}

func get(name string) (string, bool) { s, ok := message[name]; return s, ok }

// What matches, by the real broker's rules.
func TestMatch(t *testing.T) {
	for text, want := range map[string]bool{
		"a = 5": true, "a = 5L": true, "a <> 5": false, "a > 4 AND a < 6": true, "a >= 5 and a <= 5": true, "5 = a": true, "a = 5.0": true,
		"f > 2": true, "f BETWEEN 2 AND 3": true, "a between 6 and 9": false, "a NOT BETWEEN 6 AND 9": true, "a = -5": false, "a > -5": true, "a = +5": true,
		"s = 'it''s'": true, "s <> 'other'": true, "TAGS = 'red'": true, "TAGS IN ('blue', 'red')": true, "TAGS NOT IN ('blue')": true, "TAGS IN ('blue')": false,
		"t = TRUE": true, "t = FALSE": false, "t <> false": true, "word = TRUE": false,
		"missing IS NULL": true, "a IS NULL": false, "a IS NOT NULL": true, "empty IS NOT NULL": true,
		"missing = 5": false, "missing <> 5": false, "NOT missing = 5": false, "missing = 5 OR a = 5": true, "missing = 5 AND a = 5": false, "NOT (missing = 5 AND a = 6)": true,
		"missing NOT IN ('x')": false, "missing NOT BETWEEN 1 AND 2": false, "NOT a = 6": true, "NOT NOT a = 5": true,
		"word > 3": false, "word = 3": false, "a = '5'": true, "f = 2.5e0": true, "a > 1e-3": true,
		"s CONTAINS 't'": true, "s NOT CONTAINS 'z'": true, "s STARTSWITH 'it'": true, "s ENDSWITH 'x'": false, "missing CONTAINS 'x'": false,
		"(a = 5)": true, "((a = 5) or b = 6) and TAGS = 'red'": true, "a = 5 -- a comment": true, "a /* here */ = 5": true, "TRUE": true, "FALSE": false, "word": false,
		"a=5 and f=2.5 or missing=1": true, "9223372036854775807 > a": true,
	} {
		p, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := p.Match(get); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestBadExpressions(t *testing.T) {
	for _, text := range []string{
		"", "a", "a =", "= 5", "a == 5", "a != 5", "a = 5 and", "a = 5 6", "(a = 5", "a = 5)", "a in (5)", "a in ()", "a in ('x'", "5 in ('x')", "a between 1", "a between 1 and",
		"a > 'x'", "a between 'a' and 'b'", "a like 'x'", "a is 5", "a = 'open", "a = /* open", "a + 1 = 2", "a = --5", "a = #", "not", "a not = 5", "a = \x00", "a contains 5",
		"a = 1.2.3", "a = - x", "a > true", strings.Repeat("(", 100) + "a=1" + strings.Repeat(")", 100), strings.Repeat("NOT ", 1000) + "a=1", strings.Repeat("x", maxLength+1),
	} {
		if text == "a" {
			continue // a property alone is an expression, which never matches
		}
		if _, err := Parse(text); err == nil {
			t.Errorf("%.60q was read", text)
		}
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	p, err := Parse("a BETWEEN 1 AND 9 AND TAGS IN ('blue', 'red') AND NOT (missing = 5 AND a = 6) AND f > 2 AND s CONTAINS 't'")
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { p.Match(get) }); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	p, _ := Parse("a > 3 AND TAGS IN ('blue', 'red')")
	for b.Loop() {
		p.Match(get)
	}
}

// Whatever a stranger sends is read or refused, and what is read can be held against a message.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a = 5", "a IN ('x','y') AND NOT b IS NULL", "f BETWEEN -1.5e3 AND 2L OR (s <> 'it''s')", "a /* */ = 1 -- x", "((((", "x NOT CONTAINS 'y'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := Parse(s); err == nil {
			p.Match(get)
		}
	})
}
