package rocketmq

import (
	"fmt"
	"slices"
	"strings"

	"isthmus/adapters/rocketmq/sql"
	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// filter is what a group wants of a topic: everything, messages with one of these tags, compared as text, or those that an
// expression is true of.
type filter struct {
	tags []string // nil: all
	sql  *sql.Program
}

func (f *filter) all() bool { return f.tags == nil && f.sql == nil }

// parseFilter reads a subscription text.
//
// Spec: RocketMQ FilterAPI.buildSubscriptionData@5.x
func parseFilter(expressionType, text string) (filter, error) {
	if expressionType == wire.ExpressionSQL {
		program, err := sql.Parse(text)
		if err != nil {
			return filter{}, fmt.Errorf("%w: %w", errBadSubscription, err)
		}
		return filter{sql: program}, nil
	}
	if expressionType != "" && expressionType != wire.ExpressionTag {
		return filter{}, errBadSubscription
	}
	text = strings.TrimSpace(text)
	if text == "" || text == wire.SubscribeAll || text == "null" {
		return filter{}, nil
	}
	var f filter
	for tag := range strings.SplitSeq(text, "||") {
		if tag = strings.TrimSpace(tag); tag != "" {
			f.tags = append(f.tags, tag)
		}
	}
	if f.tags == nil {
		return filter{}, errBadSubscription
	}
	return f, nil
}

// wants holds a message of another protocol against the filter.
func (f *filter) wants(m *core.Message) bool {
	if f.sql != nil {
		return f.sql.Match(func(name string) (string, bool) { return propertyOf(m, name) })
	}
	return f.tags == nil || slices.Contains(f.tags, m.Tag)
}

// propertyOf is a property as a consumer of this protocol would see it.
func propertyOf(m *core.Message, name string) (string, bool) {
	switch name {
	case wire.PropTags:
		return m.Tag, m.Tag != ""
	case wire.PropKeys:
		return string(m.Key), m.HasKey
	}
	for _, ps := range [2][]core.Property{m.Properties, m.Routed} {
		for i := range ps {
			if ps[i].Key == name {
				return ps[i].Value, true
			}
		}
	}
	return "", false
}

func (f *filter) wantsNative(n *native) bool {
	if f.sql != nil {
		return f.sql.Match(func(name string) (string, bool) {
			v := wire.FindProperty(n.properties, name)
			return string(v), v != nil
		})
	}
	if f.tags == nil {
		return true
	}
	tag := wire.FindProperty(n.properties, wire.PropTags)
	for _, t := range f.tags {
		if t == string(tag) {
			return true
		}
	}
	return false
}
