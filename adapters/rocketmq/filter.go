package rocketmq

import (
	"slices"
	"strings"

	"isthmus/adapters/rocketmq/wire"
)

// filter is what a group wants of a topic: everything, or messages with one of these tags, compared as text.
type filter struct {
	tags []string // nil: all
	sql  bool     // registered, but answered with an error at the pull
}

// parseFilter reads a subscription text.
//
// Spec: RocketMQ FilterAPI.buildSubscriptionData@5.x
func parseFilter(expressionType, text string) (filter, error) {
	if expressionType == wire.ExpressionSQL {
		return filter{sql: true}, nil
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

func (f *filter) wants(tag string) bool { return f.tags == nil || slices.Contains(f.tags, tag) }

func (f *filter) wantsNative(n *native) bool {
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
