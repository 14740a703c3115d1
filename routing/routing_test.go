package routing

import (
	"errors"
	"strings"
	"testing"

	"isthmus/core"

	"pgregory.net/rapid"
)

func sample(t testing.TB) *Table {
	t.Helper()
	table, err := Compile([]Mapping{
		{ID: "telemetry-up", From: End{MQTT: "devices/{deviceId}/telemetry"}, To: End{Topic: "persistent://acme/out/event"},
			Key: "{deviceId}", Tag: "telemetry", Properties: []core.Property{{Key: "deviceId", Value: "{deviceId}"}}},
		{ID: "commands-down", From: End{Topic: "persistent://acme/in/device-cmd"}, To: End{MQTT: "devices/{key}/commands"}},
	}, Options{Tenant: "public", Namespace: "default", DefaultQoS: 1})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestUpDoesNotAllocate(t *testing.T) {
	table := sample(t)
	var to Target
	for _, topic := range []string{"devices/42/telemetry", "devices/42/commands", "somewhere/else"} {
		s := Source{Topic: topic, ClientID: "c", Body: []byte("{}")}
		if n := testing.AllocsPerRun(100, func() {
			if err := table.Up(&s, &to); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", topic, n)
		}
	}
}

func TestErrorsAreCoreErrors(t *testing.T) {
	reject, err := Compile(nil, Options{Tenant: "a", Namespace: "b", Unmatched: Unmatched{Reject: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		table *Table
		topic string
		want  error
	}{
		{sample(t), "devices//telemetry", core.ErrInvalid},
		{sample(t), "devices/a\x01b/telemetry", core.ErrInvalid},
		{sample(t), "$SYS/x", core.ErrForbidden},
		{reject, "a", core.ErrTopicNotFound},
	} {
		if err := c.table.Up(&Source{Topic: c.topic}, &Target{}); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.topic, err, c.want)
		}
	}
	_, err = Compile([]Mapping{{ID: "x"}}, Options{})
	var f *Fault
	if !errors.As(err, &f) || !errors.Is(err, core.ErrInvalid) {
		t.Errorf("compile: %v", err)
	}
}

// TestCoversIsExact compares Covers with a count over all short topics. Depth 5 is enough for patterns of 3 levels, and
// the letter z, which no pattern or filter has, stands for every other level.
func TestCoversIsExact(t *testing.T) {
	var topics []string
	var grow func(prefix string, depth int)
	grow = func(prefix string, depth int) {
		for _, l := range []string{"a", "b", "z"} {
			topics = append(topics, prefix+l)
			if depth > 1 {
				grow(prefix+l+"/", depth-1)
			}
		}
	}
	grow("", 5)
	property := func(t *rapid.T) {
		var ms []Mapping
		for i := range rapid.IntRange(0, 5).Draw(t, "mappings") {
			var levels []string
			for range rapid.IntRange(1, 3).Draw(t, "levels") {
				levels = append(levels, rapid.SampledFrom([]string{"a", "b", "{}"}).Draw(t, "level"))
			}
			if rapid.Bool().Draw(t, "tail") {
				levels[len(levels)-1] = "{...}"
			}
			for j := range levels {
				levels[j] = strings.Replace(levels[j], "{", "{x"+string(rune('0'+j)), 1)
			}
			ms = append(ms, Mapping{ID: string(rune('p' + i)), Direction: Up, From: End{MQTT: strings.Join(levels, "/")},
				To: End{Topic: rapid.SampledFrom([]string{"t/n/1", "t/n/2", "t/n/3"}).Draw(t, "topic")}})
		}
		table, err := Compile(ms, Options{Tenant: "t", Namespace: "n"})
		if err != nil {
			return // duplicate or unreachable
		}
		filter := rapid.SampledFrom([]string{"#", "+", "+/#", "+/+", "a", "a/#", "a/+", "+/a", "+/a/#", "a/b", "a/b/#", "a/+/b",
			"+/+/+", "+/+/+/#", "a/+/+", "a/+/#", "b/+/a/#", "+/b/+", "a/b/a/b", "a/+/+/+/#"}).Draw(t, "filter")
		some, missed := map[core.TopicName]bool{}, map[core.TopicName]bool{}
		for _, topic := range topics {
			var to Target
			if err := table.Up(&Source{Topic: topic}, &to); err != nil {
				t.Fatalf("%s: %v", topic, err)
			}
			if naiveMatch(strings.Split(filter, "/"), strings.Split(topic, "/")) {
				some[to.Topic] = true
			} else {
				missed[to.Topic] = true
			}
		}
		got := map[core.TopicName]bool{}
		for _, c := range table.Covers(filter) {
			got[c.Topic] = true
			if !some[c.Topic] || c.Whole != !missed[c.Topic] {
				t.Fatalf("%s: %v, but some=%v missed=%v in %+v", filter, c, some[c.Topic], missed[c.Topic], ms)
			}
		}
		if len(got) != len(some) {
			t.Fatalf("%s: covers %v, want %v in %+v", filter, got, some, ms)
		}
	}
	for range 10 { // of a hundred each: patterns that take from each other are rare
		rapid.Check(t, property)
	}
}

func naiveMatch(f, topic []string) bool {
	switch {
	case len(f) == 0:
		return len(topic) == 0
	case f[0] == "#":
		return true
	case len(topic) == 0:
		return false
	}
	return (f[0] == "+" || f[0] == topic[0]) && naiveMatch(f[1:], topic[1:])
}

// FuzzMapping compiles what it is given; whatever compiles has to route any topic without a panic, and what goes up
// and comes down again goes up to the same place.
func FuzzMapping(f *testing.F) {
	f.Add("devices/{id}/telemetry", "{id}", "x-{id|lower}", "devices/42/telemetry", `{"a":1}`)
	f.Add("{rest...}", "{json:/a/0/b|default(x|y)}", "{prop.a|lower|default(z)}", "a/b", `{"a":[{"b":1}]}`)
	f.Add("$aws/{a}/{b...}", "{mqtt.topic}", "{mqtt.client_id}{mqtt.username}", "$aws/1/2/3", "")
	f.Add("a//{x}", "k{x}k", "{key}", "a//b", "[")
	f.Fuzz(func(t *testing.T, pattern, key, property, topic, body string) {
		o := Options{Tenant: "a", Namespace: "b"}
		if down, err := Compile([]Mapping{{ID: "m", From: End{Topic: "event"}, To: End{MQTT: pattern}}}, o); err == nil {
			down.Down(core.TopicName{Tenant: "a", Namespace: "b", Name: "event"}, &core.Message{Key: []byte(key), HasKey: true, Body: []byte(body)}, nil)
		}
		table, err := Compile([]Mapping{{ID: "m", From: End{MQTT: pattern}, To: End{Topic: "event"}, Key: key, Properties: []core.Property{{Key: "p", Value: property}}}}, o)
		if err != nil || topic == "" {
			return
		}
		s := Source{Topic: topic, ClientID: "c", Body: []byte(body)}
		var to, again Target
		if table.Up(&s, &to) != nil {
			return
		}
		table.Covers(topic)
		msg := core.Message{Key: to.Key, HasKey: to.HasKey, Tag: to.Tag, Routed: to.Properties, Body: s.Body}
		for _, a := range table.Down(to.Topic, &msg, nil) {
			if err := table.Up(&Source{Topic: a.Topic}, &again); err != nil || again.Mapping != to.Mapping {
				t.Fatalf("%q went to %s and came back as %q, which goes to %s (%v)", topic, to.Mapping, a.Topic, again.Mapping, err)
			}
		}
	})
}

func BenchmarkUp(b *testing.B) {
	table, s, to := sample(b), Source{Topic: "devices/42/telemetry"}, Target{}
	for b.Loop() {
		if err := table.Up(&s, &to); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDown(b *testing.B) {
	table, m := sample(b), core.Message{Key: []byte("42"), HasKey: true}
	topic, dst := core.TopicName{Tenant: "acme", Namespace: "out", Name: "event"}, []Address(nil)
	for b.Loop() {
		dst = table.Down(topic, &m, dst[:0])
	}
}
