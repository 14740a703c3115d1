package sql

import (
	"fmt"
	"strconv"
	"strings"
)

// Program is a parsed expression. Any goroutine may use it.
type Program struct{ root node }

// Parse reads an expression. The error says what is wrong and where.
func Parse(s string) (*Program, error) {
	if len(s) > maxLength {
		return nil, fmt.Errorf("an expression of %d bytes, at most %d", len(s), maxLength)
	}
	ts, err := lex(s)
	if err != nil {
		return nil, err
	}
	p := parser{ts: ts}
	root := p.or()
	if p.err == nil && p.now().kind != end {
		p.fail("%q is too much", p.now().text)
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Program{root}, nil
}

// parser goes down the grammar; the first error stays.
type parser struct {
	ts    []token
	depth int
	err   error
}

func (p *parser) now() token { return p.ts[0] }

func (p *parser) next() token {
	t := p.ts[0]
	if t.kind != end {
		p.ts = p.ts[1:]
	}
	return t
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("at %d: "+format, append([]any{p.now().at}, args...)...)
		p.ts = p.ts[len(p.ts)-1:] // nothing more is read
	}
}

// word takes a keyword if it is next.
func (p *parser) word(w string) bool {
	if p.now().kind != word || p.now().upper != w {
		return false
	}
	p.next()
	return true
}

func (p *parser) symbol(s string) bool {
	if p.now().kind != symbol || p.now().text != s {
		return false
	}
	p.next()
	return true
}

func (p *parser) or() node {
	n := p.and()
	for p.word("OR") {
		n = &logic{or: true, a: n, b: p.and()}
	}
	return n
}

func (p *parser) and() node {
	n := p.not()
	for p.word("AND") {
		n = &logic{a: n, b: p.not()}
	}
	return n
}

func (p *parser) not() node {
	if p.depth++; p.depth > maxDepth {
		p.fail("nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	if p.word("NOT") {
		return &negation{p.not()}
	}
	return p.condition()
}

// condition is an operand, alone or with what is said about it.
func (p *parser) condition() node {
	a := p.operand()
	if p.word("IS") {
		not := p.word("NOT")
		if !p.word("NULL") {
			p.fail("IS wants NULL or NOT NULL")
		}
		return negated(not, &isNull{a})
	}
	not := p.word("NOT")
	switch {
	case p.word("BETWEEN"):
		low := p.constant()
		if !p.word("AND") {
			p.fail("BETWEEN wants AND")
		}
		return negated(not, &logic{a: p.compare(">=", a, low), b: p.compare("<=", a, p.constant())})
	case p.word("IN"):
		return negated(not, &in{a, p.list(a)})
	case p.word("CONTAINS"):
		return negated(not, &part{strings.Contains, a, p.text()})
	case p.word("STARTSWITH"):
		return negated(not, &part{strings.HasPrefix, a, p.text()})
	case p.word("ENDSWITH"):
		return negated(not, &part{strings.HasSuffix, a, p.text()})
	case not:
		p.fail("NOT wants BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH here")
	}
	for _, op := range []string{"=", "<>", ">", ">=", "<", "<="} {
		if p.symbol(op) {
			return p.compare(op, a, p.operand())
		}
	}
	return a
}

func negated(not bool, n node) node {
	if not {
		return &negation{n}
	}
	return n
}

// compare refuses an order of what has none.
func (p *parser) compare(op string, a, b node) node {
	for _, n := range []node{a, b} {
		if c, ok := n.(constant); ok && op != "=" && op != "<>" && c.kind != isInt && c.kind != isFloat {
			p.fail("%s wants numbers", op)
		}
	}
	return &comparison{op, a, b}
}

func (p *parser) operand() node {
	if p.symbol("(") {
		n := p.or()
		if !p.symbol(")") {
			p.fail("a parenthesis is missing")
		}
		return n
	}
	if t := p.now(); t.kind == word {
		switch t.upper {
		case "AND", "OR", "NOT", "IS", "IN", "BETWEEN", "CONTAINS", "STARTSWITH", "ENDSWITH", "NULL":
		case "TRUE", "FALSE":
			return p.constant()
		default:
			p.next()
			return property(t.text)
		}
	}
	return p.constant()
}

func (p *parser) constant() node {
	sign := ""
	for p.now().kind == symbol && (p.now().text == "-" || p.now().text == "+") && len(sign) < 1 {
		sign = strings.TrimPrefix(p.next().text, "+")
	}
	switch t := p.now(); {
	case t.kind == number:
		p.next()
		return p.number(sign + t.text)
	case sign != "":
		p.fail("a sign wants a number")
	case t.kind == text:
		p.next()
		return constant{value{kind: isText, text: t.text}}
	case t.kind == word && (t.upper == "TRUE" || t.upper == "FALSE"):
		p.next()
		return constant{value{kind: isBool, yes: t.upper == "TRUE"}}
	default:
		p.fail("%q is no value", t.text)
	}
	return constant{}
}

func (p *parser) number(s string) node {
	if i, err := strconv.ParseInt(strings.TrimRight(s, "lL"), 10, 64); err == nil {
		return constant{value{kind: isInt, int: i}}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.fail("%s is no number", s)
	}
	return constant{value{kind: isFloat, float: f}}
}

func (p *parser) text() string {
	t := p.next()
	if t.kind != text {
		p.fail("a text in quotes is wanted")
	}
	return t.text
}

// list reads ('a', 'b').
func (p *parser) list(of node) (texts []string) {
	if _, ok := of.(property); !ok {
		p.fail("IN is about a property")
	}
	if !p.symbol("(") {
		p.fail("IN wants a list in parentheses")
	}
	for p.err == nil {
		texts = append(texts, p.text())
		if p.symbol(")") {
			break
		}
		if !p.symbol(",") {
			p.fail("a list goes on with a comma, or ends")
		}
	}
	return texts
}
