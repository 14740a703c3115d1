package mqtt

import (
	"strings"
	"testing"
	"time"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// store puts a message into the log as an MQTT client would have, with what a test wants to change.
func (b *bed) store(topic string, change func(*core.Entry)) {
	b.t.Helper()
	done := make(chan error, 1)
	p := b.Engine.NewProducer("test", func(rs []engine.Receipt) { done <- rs[0].Err })
	defer p.Close()
	m := core.Message{Address: topic, Body: []byte("stored")}
	e := core.Entry{Count: 1, Data: m.AppendNeutral(nil), AddressHash: addressHash(topic)}
	change(&e)
	if err := p.Publish(b.Topic(b.t, "mqtt", 0).Partition(0), &e, 0); err != nil {
		b.t.Fatal(err)
	}
	if err := <-done; err != nil {
		b.t.Fatal(err)
	}
}

// Spec: MQTT5 3.3.1.3 [MQTT-3.3.1-12] [MQTT-3.3.1-13]; MQTT3 3.3.1.3 [MQTT-3.3.1-9]
func TestRetainAsPublished(t *testing.T) {
	b := newBed(t, nil)
	plain, rap, old := b.connected("plain", wire.V5), b.connected("rap", wire.V5), b.connected("old", wire.V311)
	plain.send("SUBSCRIBE id=1 f=t,1")
	plain.expect("SUBACK 1 01")
	rap.send("SUBSCRIBE id=1 f=t,1,rap")
	rap.expect("SUBACK 1 01")
	old.send("SUBSCRIBE id=1 f=t,1")
	old.expect("SUBACK 1 01")
	p := b.connected("p", wire.V311)
	p.send("PUBLISH t retain qos=1 id=1 body=x")
	p.expect("PUBACK 1")
	plain.expect("PUBLISH t qos=1 id=1 body=x")
	rap.expect("PUBLISH t qos=1 id=1 retain body=x")
	old.expect("PUBLISH t qos=1 id=1 body=x")
}

// Spec: MQTT5 3.3.2.3.3 [MQTT-3.3.2-5] [MQTT-3.3.2-6]
func TestExpiredIsNotDelivered(t *testing.T) {
	b := newBed(t, nil)
	s, m := b.connected("s", wire.V5), b.members(1, "$share/g/t")[0]
	s.send("SUBSCRIBE id=1 f=t,1")
	s.expect("SUBACK 1 01")
	now := time.Now().UnixMilli()
	b.store("t", func(e *core.Entry) { e.Expiry = now - 1 })
	b.store("t", func(e *core.Entry) { e.Expiry = now + 100_500 })
	for _, c := range []*client{s, m} {
		got := c.receive()
		if !strings.HasPrefix(got, "PUBLISH t qos=0 body=stored expiry=") {
			c.fail("%s", got)
		}
		if left := parseFields(got).num("expiry"); left < 90 || left > 101 {
			c.fail("%d seconds left of 100", left)
		}
	}
}

// Spec: MQTT5 3.3.4 [MQTT-3.3.4-3] [MQTT-3.3.4-4]
func TestOverlappingIdentifiers(t *testing.T) {
	b := newBed(t, nil)
	s := b.connected("s", wire.V5)
	s.send("SUBSCRIBE id=1 subid=1 f=a/#,0")
	s.expect("SUBACK 1 00")
	s.send("SUBSCRIBE id=2 subid=2 f=a/+,1")
	s.expect("SUBACK 2 01")
	s.send("SUBSCRIBE id=3 f=a/b,0")
	s.expect("SUBACK 3 00")
	b.connected("p", wire.V5).publish(1, "a/b")
	got := s.receive()
	if !strings.HasPrefix(got, "PUBLISH a/b qos=1 ") || !strings.Contains(got, "subid=1") || !strings.Contains(got, "subid=2") {
		s.fail("%s", got)
	}
	s.quiet()
}

// Spec: MQTT5 3.3.4 [MQTT-3.3.4-6]
func TestClientMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"PUBLISH t qos=0 body=x subid=1":      "DISCONNECT 82",
		"PUBLISH t qos=0 body=x alias=0":      "DISCONNECT 94",
		"PUBLISH t/# qos=0 body=x":            "DISCONNECT 81",
		"HEX f0 00":                           "DISCONNECT 82",
		"HEX e0 01 8e":                        "CLOSED", // a farewell is taken as it comes
		"HEX 82 09 0001 02 0b00 0001 61 00":   "DISCONNECT 82",
		"HEX 30 ff ff ff ff 01":               "DISCONNECT 81",
		"SUBSCRIBE id=0 f=t,1":                "DISCONNECT 82",
		"PUBACK id=0":                         "DISCONNECT 82",
		"PUBACK id=77":                        "PINGRESP", // unknown: nothing to do
		"HEX 32 07 0001 74 0000 00 78":        "DISCONNECT 82",
		"HEX 50 02 0009":                      "PUBREL 9 92",
		"UNSUBSCRIBE id=5 f=$share/nobody/at": "UNSUBACK 5 11",
	} {
		b := newBed(t, nil)
		c := b.connected("c", wire.V5)
		c.send(line)
		c.send("PINGREQ")
		c.expect(want)
	}
}

// Spec: MQTT5 4.8.2 [MQTT-4.8.2-6]
func TestANegativePubackConsumes(t *testing.T) {
	b := newBed(t, nil)
	m := b.members(1, "$share/g/devices/+/telemetry")[0]
	b.connected("p", wire.V5).publish(1, "devices/7/telemetry")
	m.receive()
	m.send("PUBACK id=1 code=0x80")
	m.quiet()
	m.conn.Close()
	next := b.members(1, "$share/g/devices/+/telemetry")[0]
	next.quiet()
	g, err := b.Topic(t, "persistent://acme/out/event", 0).Group("g")
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := g.Backlog(); left != 0 {
		t.Fatal("backlog", left)
	}
}

// What only MQTT knows crosses the log and comes back; what a mapping added does not become a user property.
func TestPropertiesCrossTheLog(t *testing.T) {
	b := newBed(t, nil)
	s, old := b.connected("s", wire.V5), b.connected("old", wire.V311)
	for _, c := range []*client{s, old} {
		c.send("SUBSCRIBE id=1 f=devices/#,1")
		c.expect("SUBACK 1 01")
	}
	p := b.connected("p", wire.V5)
	props := "format=0 type=a/b response=x/y correlation=12345 user=k:v user=k:w"
	p.send("PUBLISH devices/7/telemetry qos=1 id=1 body=x " + props)
	p.expect("PUBACK 1")
	s.expect("PUBLISH devices/7/telemetry qos=1 id=1 body=x " + props)
	old.expect("PUBLISH devices/7/telemetry qos=1 id=1 body=x")
	event := b.Topic(t, "persistent://acme/out/event", 0)
	var m core.Message
	for i := range event.Logs() {
		es, err := event.Partition(i).Read(t.Context(), 0, 10, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for j := range es {
			msgs, err := b.Engine.Messages(&es[j], nil)
			if err != nil {
				t.Fatal(err)
			}
			m = msgs[0]
		}
	}
	if string(m.Key) != "7" || m.Tag != "telemetry" || m.Address != "devices/7/telemetry" || m.Producer != "p" {
		t.Fatalf("%+v", m)
	}
	if v, _ := m.Property("deviceId"); v != "7" {
		t.Fatal("the mapping's property is missing")
	}
	if v, _ := m.Property(core.PropCorrelationData); v != "MTIzNDU=" {
		t.Fatal(v)
	}
}

// A property of another protocol that no MQTT text can hold stays behind; the message does not.
func TestForeignProperties(t *testing.T) {
	b := newBed(t, nil)
	s := b.connected("s", wire.V5)
	s.send("SUBSCRIBE id=1 f=devices/+/commands,1")
	s.expect("SUBACK 1 01")
	b.foreign("persistent://acme/in/device-cmd", "7", "on", core.Property{Key: "ok", Value: "yes"},
		core.Property{Key: "bad", Value: "\xff"}, core.Property{Key: "nul\x00", Value: "x"})
	s.expect("PUBLISH devices/7/commands qos=1 id=1 body=on user=ok:yes")
}
