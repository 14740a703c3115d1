package mqtt

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"isthmus/adapters/mqtt/wire"
)

// Spec: MQTT5 4.7.1 [MQTT-4.7.1-1] [MQTT-4.7.1-2]; MQTT5 4.7.2 [MQTT-4.7.2-1]; MQTT5 4.7.3 [MQTT-4.7.3-4]; MQTT3 4.7.2 [MQTT-4.7.2-1]
func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		filter, topic string
		want          bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a/b", "a", false}, {"a", "a/b", false},
		{"#", "a/b/c", true}, {"#", "$SYS/x", false}, {"+/x", "$SYS/x", false}, {"$SYS/#", "$SYS/x", true}, {"$SYS/+", "$SYS/x", true},
		{"a/#", "a", true}, {"a/#", "a/b/c", true}, {"a/#", "ab", false},
		{"+", "a", true}, {"+", "a/b", false}, {"+/+", "/a", true}, {"/+", "/a", true}, {"+", "/a", false},
		{"a/+/c", "a/b/c", true}, {"a/+/c", "a//c", true}, {"a/+/c", "a/b/d/c", false},
		{"/a", "a", false}, {"a/", "a", false}, {"a/+", "a", false}, {"a/+", "a/", true},
	} {
		if got := matches(strings.Split(tt.filter, "/"), tt.topic); got != tt.want {
			t.Errorf("%q against %q: %v", tt.filter, tt.topic, got)
		}
	}
}

// The tree finds exactly what one filter after the other would, whatever was added and removed before.
func TestTreeAgreesWithOneByOne(t *testing.T) {
	level := rapid.SampledFrom([]string{"a", "b", "", "$x"})
	filterLevel := rapid.SampledFrom([]string{"a", "b", "", "$x", "+", "+"})
	sessions := []*session{{id: "1"}, {id: "2"}, {id: "3"}}
	rapid.Check(t, func(t *rapid.T) {
		var tr tree
		type key struct {
			s      *session
			filter string
		}
		model := map[key]*subscription{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			f := strings.Join(rapid.SliceOfN(filterLevel, 1, 4).Draw(t, "filter"), "/")
			if rapid.Bool().Draw(t, "tail") {
				f += "/#"
			}
			if !wire.ValidFilter(f, &wire.Limits{}) {
				continue
			}
			s := rapid.SampledFrom(sessions).Draw(t, "session")
			k := key{s, f}
			if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				tr.remove(&subscription{session: s, filter: f})
				delete(model, k)
				continue
			}
			sub := &subscription{session: s, filter: f}
			tr.add(sub)
			model[k] = sub
		}
		topic := strings.Join(rapid.SliceOfN(level, 1, 5).Draw(t, "topic"), "/")
		var got, want []*subscription
		tr.match(topic, func(s *subscription) { got = append(got, s) })
		for k, sub := range model {
			if matches(strings.Split(k.filter, "/"), topic) {
				want = append(want, sub)
			}
		}
		order := func(a, b *subscription) int { return strings.Compare(a.session.id+a.filter, b.session.id+b.filter) }
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if !slices.Equal(got, want) {
			t.Fatalf("topic %q: %d found, want %d", topic, len(got), len(want))
		}
		if int(tr.count.Load()) != len(model) {
			t.Fatalf("count %d, want %d", tr.count.Load(), len(model))
		}
		for _, sub := range model {
			tr.remove(sub)
		}
		if len(tr.root.children) > 0 {
			t.Fatal("empty nodes stay")
		}
	})
}

func TestSplitShare(t *testing.T) {
	for in, want := range map[string][2]string{
		"$share/g/t": {"g", "t"}, "$share/g//": {"g", "/"}, "$share/g/a/#": {"g", "a/#"}, "$sharex/g/t": {"", "$sharex/g/t"}, "t": {"", "t"},
	} {
		g, f, ok := splitShare(in)
		if !ok || g != want[0] || f != want[1] {
			t.Errorf("%q: %q %q %v", in, g, f, ok)
		}
	}
	for _, in := range []string{"$share", "$share/", "$share//t", "$share/g", "$share/g/", "$share/a+b/t", "$share/a#/t", "$share/+/t"} {
		if _, _, ok := splitShare(in); ok {
			t.Errorf("%q is accepted", in)
		}
	}
}
