package sql

import (
	"slices"
	"strconv"
	"strings"
)

// Match tells whether a message is wanted. get returns one of its properties; false when it has none of that name.
func (p *Program) Match(get func(name string) (string, bool)) bool {
	v := p.root.eval(get)
	return v.kind == isBool && v.yes
}

type valueKind uint8

const (
	isNothing valueKind = iota // a property that is missing, or what is said about one
	isBool
	isInt
	isFloat
	isText
)

type value struct {
	kind  valueKind
	yes   bool
	int   int64
	float float64
	text  string
}

func truth(b bool) value { return value{kind: isBool, yes: b} }

// node is a part of an expression.
type node interface {
	eval(get func(string) (string, bool)) value
}

type constant struct{ value }

func (c constant) eval(func(string) (string, bool)) value { return c.value }

type property string

func (p property) eval(get func(string) (string, bool)) value {
	if s, ok := get(string(p)); ok {
		return value{kind: isText, text: s}
	}
	return value{}
}

// logic is AND or OR of three values.
type logic struct {
	or   bool
	a, b node
}

func (l *logic) eval(get func(string) (string, bool)) value {
	a := l.a.eval(get)
	if a.kind == isBool && a.yes == l.or {
		return a
	}
	b := l.b.eval(get)
	if b.kind == isBool && b.yes == l.or {
		return b
	}
	if a.kind != isBool || b.kind != isBool {
		return value{}
	}
	return truth(!l.or)
}

type negation struct{ of node }

func (n *negation) eval(get func(string) (string, bool)) value {
	v := n.of.eval(get)
	if v.kind != isBool {
		return value{}
	}
	return truth(!v.yes)
}

type isNull struct{ of node }

func (n *isNull) eval(get func(string) (string, bool)) value {
	return truth(n.of.eval(get).kind == isNothing)
}

type in struct {
	of    node
	texts []string
}

func (n *in) eval(get func(string) (string, bool)) value {
	v := n.of.eval(get)
	if v.kind != isText {
		return value{}
	}
	return truth(slices.Contains(n.texts, v.text))
}

// part is CONTAINS and its kin.
type part struct {
	has  func(s, part string) bool
	of   node
	text string
}

func (n *part) eval(get func(string) (string, bool)) value {
	v := n.of.eval(get)
	if v.kind == isNothing {
		return value{}
	}
	return truth(v.kind == isText && n.has(v.text, n.text))
}

type comparison struct {
	op   string
	a, b node
}

func (c *comparison) eval(get func(string) (string, bool)) value {
	a, b := c.a.eval(get), c.b.eval(get)
	if a.kind == isNothing || b.kind == isNothing {
		return value{}
	}
	order, ok := compare(a, b)
	if !ok {
		return truth(false)
	}
	switch c.op {
	case "=":
		return truth(order == 0)
	case "<>":
		return truth(order != 0)
	case ">":
		return truth(order > 0)
	case ">=":
		return truth(order >= 0)
	case "<":
		return truth(order < 0)
	default:
		return truth(order <= 0)
	}
}

// compare brings two values to one kind. ok is false where that cannot be done.
func compare(a, b value) (order int, ok bool) {
	switch {
	case a.kind == isText && b.kind == isText:
		return strings.Compare(a.text, b.text), true
	case a.kind == isText:
		a, ok = a.like(b.kind)
	case b.kind == isText:
		b, ok = b.like(a.kind)
	default:
		ok = (a.kind == isBool) == (b.kind == isBool)
	}
	switch {
	case !ok:
		return 0, false
	case a.kind == isBool:
		return boolToInt(a.yes) - boolToInt(b.yes), true
	case a.kind == isInt && b.kind == isInt:
		return sign64(a.int, b.int), true
	}
	return sign64(a.number(), b.number()), true
}

func sign64[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (v value) number() float64 {
	if v.kind == isInt {
		return float64(v.int)
	}
	return v.float
}

// like reads a text as what stands beside it.
func (v value) like(kind valueKind) (value, bool) {
	switch kind {
	case isBool:
		return truth(strings.EqualFold(v.text, "true")), true
	case isInt:
		if strings.Trim(v.text, "+-0123456789") == "" { // or the error would be an allocation
			i, err := strconv.ParseInt(v.text, 10, 64)
			return value{kind: isInt, int: i}, err == nil
		}
		fallthrough
	default:
		f, err := strconv.ParseFloat(v.text, 64)
		return value{kind: isFloat, float: f}, err == nil && f == f
	}
}
