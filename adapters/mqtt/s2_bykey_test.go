package mqtt

import (
	"fmt"
	"testing"
	"time"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
)

func byKey(c *Config) {
	event := core.TopicName{Tenant: "acme", Namespace: "out", Name: "event"}
	c.ByKey = map[GroupName]bool{{event, "g"}: true, {core.TopicName{Tenant: "public", Namespace: "default", Name: "mqtt"}, "g"}: true}
}

// S2.17 with `dispatch: key`: a newcomer gets nothing of a key that moves to it before the PUBACKs of what was sent of that
// key, and other keys do not wait. Both in the topic's own group and in that of a filter.
func TestS2_17_ByKeyAKeyMovesWhenItIsAcknowledged(t *testing.T) {
	for filter, topic := range map[string]string{"devices/+/telemetry": "devices/%d/telemetry", "t/+": "t/%d"} {
		t.Run(filter[:1], func(t *testing.T) {
			b := newBed(t, byKey)
			old, p := b.members(1, "$share/g/"+filter)[0], b.connected("p", wire.V5)
			const keys = 30
			publish := func() {
				for i := range keys {
					p.send(fmt.Sprintf("PUBLISH "+topic+" qos=1 id=%d body=%d", i, i+1, i))
					p.expect(fmt.Sprintf("PUBACK %d", i+1))
				}
			}
			publish()
			var first, stayed []fields
			for range keys {
				first = append(first, parseFields(old.receive()))
			}
			newcomer := b.connected("newcomer", wire.V5)
			newcomer.send("SUBSCRIBE id=1 f=$share/g/" + filter + ",1")
			newcomer.expect("SUBACK 1 01")
			publish()
			for {
				m := old.read(300 * time.Millisecond)
				if m == "TIMEOUT" {
					break
				}
				stayed = append(stayed, parseFields(m))
			}
			if len(stayed) == 0 || len(stayed) == keys {
				t.Fatalf("%d of %d keys stayed", len(stayed), keys)
			}
			newcomer.quiet()
			for _, m := range first {
				old.send("PUBACK id=" + m.get("id"))
			}
			moved := map[string]bool{}
			for range keys - len(stayed) {
				moved[parseFields(newcomer.receive()).get("body")] = true
			}
			newcomer.quiet()
			for _, m := range stayed {
				if moved[m.get("body")] {
					t.Errorf("key %s went to both", m.get("body"))
				}
			}
		})
	}
}

// Only the group that the configuration names is by key.
func TestByKeyIsForTheNamedGroupAlone(t *testing.T) {
	b := newBed(t, byKey)
	b.members(1, "$share/g/devices/+/telemetry")
	b.members(1, "$share/h/devices/+/telemetry")
	topic := b.Topic(t, "persistent://acme/out/event", 3)
	for name, want := range map[string]core.Mode{"g": core.KeyShared, "h": core.Shared} {
		g, err := topic.Group(name)
		if err != nil {
			t.Fatal(err)
		}
		if g.Mode() != want {
			t.Errorf("group %s is %v, want %v", name, g.Mode(), want)
		}
	}
}
