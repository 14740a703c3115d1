package mqtt

import (
	"strings"
	"testing"
	"time"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// A refusal that has to wait for its turn behind a publish on its way to the disk still ends a version 3 connection,
// which would wait for ever for an ack that cannot say no.
func TestARefusalBehindAPendingPublishIsSaid(t *testing.T) {
	bothVersions(t, func(t *testing.T, v wire.Version) {
		b := newBedAccess(t, nil, forbids{auth.Produce: "acme/out/event"})
		c := b.connected("c", v)
		c.send("PUBLISH t qos=1 id=1 body=x") // creates the topic
		c.expect("PUBACK 1")
		g := b.gate(everything)
		c.send("PUBLISH t qos=1 id=2 body=x")
		<-g.arrived
		c.send("PUBLISH devices/1/telemetry qos=1 id=3 body=x")
		c.quiet()
		g.open()
		c.expect("PUBACK 2")
		if v == wire.V5 {
			c.expect("PUBACK 3 87")
			return
		}
		c.expect("CLOSED")
	})
}

// A client that the server does not read, because the disk is slow, is not silent.
func TestKeepAliveDoesNotCountWhatTheServerWaitsFor(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ReceiveMaximum = 1 })
	c := b.connected("c", wire.V311, "keepalive=10")
	c.send("PUBLISH t qos=1 id=1 body=x")
	c.expect("PUBACK 1")
	g := b.gate(everything)
	c.send("PUBLISH t qos=1 id=2 body=x")
	<-g.arrived
	c.quiet()
	c.send("PUBLISH t qos=1 id=3 body=x") // the reader waits for room now, or will soon
	s := b.server.clients.all(nil)[0]
	for until := time.Now().Add(10 * time.Second); s.seen.Load() != atWork; {
		if time.Now().After(until) {
			t.Fatal("the reader is not at work")
		}
	}
	for range 30 {
		b.server.tickOnce(nil)
	}
	g.open()
	c.expect("PUBACK 2")
	c.expect("PUBACK 3")
	c.quiet()
}

// Who has not said CONNECT yet does not hold the server up.
func TestShutdownDoesNotWaitForStrangers(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ConnectTimeout, c.Grace = time.Hour, time.Hour })
	stranger, half := b.dial(), b.client("half", wire.V5)
	half.send("HEX 10 0d 0004 4d51")
	b.connected("c", wire.V5) // the strangers were accepted before
	b.stop()
	if n, err := stranger.Read(make([]byte, 1)); err == nil {
		t.Fatal("got", n)
	}
}

// Texts of other protocols may be longer than a length field of MQTT can say.
func TestForeignTextsThatNoFieldHolds(t *testing.T) {
	b := newBed(t, nil)
	c := b.connected("c", wire.V5)
	c.send("SUBSCRIBE id=1 f=devices/+/commands,1")
	c.expect("SUBACK 1 01")
	long := strings.Repeat("QUJD", 30000) // base64 of 90 000 bytes
	b.foreign("persistent://acme/in/device-cmd", "7", "x",
		core.Property{Key: core.PropCorrelationData, Value: long}, core.Property{Key: core.PropContentType, Value: long})
	c.expect("PUBLISH devices/7/commands qos=1 id=1 body=x")
}

// Spec: MQTT5 3.1.2.11.4 [MQTT-3.1.2-24]
func TestNoAnswerExceedsTheClientsMaximumPacketSize(t *testing.T) {
	b := newBed(t, nil)
	tiny := b.client("tiny", wire.V5)
	tiny.send("CONNECT id=tiny clean max-packet=8")
	tiny.expect("CONNACK 95")
	tiny.expect("CLOSED")
	c := b.connected("c", wire.V5, "max-packet=40")
	c.send("SUBSCRIBE id=1" + strings.Repeat(" f=t,0", 50))
	c.expect("DISCONNECT 95")
	c.expect("CLOSED")
}
