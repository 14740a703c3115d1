package mqtt

import (
	"testing"
	"time"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// fill bounds the backlog of the event topic and fills it.
func fill(t *testing.T, b *bed, w engine.WhenFull) *engine.Group {
	t.Helper()
	event := core.TopicName{Tenant: "acme", Namespace: "out", Name: "event"}
	topic, err := b.Engine.DeclareTopic(event, engine.TopicSpec{Partitions: 3, ByKey: true, Groups: []string{"slow"},
		Policy: engine.Policy{Backlog: engine.Backlog{Size: 1, WhenFull: w}}})
	if err != nil {
		t.Fatal(err)
	}
	c := b.connected("filler", wire.V5)
	c.send("PUBLISH devices/1/telemetry qos=1 id=1 body=x")
	c.expect("PUBACK 1")
	g, err := topic.Group("slow")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func release(g *engine.Group) {
	for i := range g.Topic().Logs() {
		_, end := g.Topic().Partition(i).Bounds()
		g.Commit(i, end)
	}
}

// Spec: MQTT5 3.4.2.1: 0x97 Quota exceeded; a version 3 client cannot be told: no ack, and the connection is closed
func TestPublishesToAFullTopic(t *testing.T) {
	b := newBed(t, nil)
	g := fill(t, b, engine.Reject)
	c := b.connected("five", wire.V5)
	c.send("PUBLISH devices/1/telemetry qos=1 id=7 body=x")
	c.expect("PUBACK 7 97")
	old := b.connected("three", wire.V311)
	old.send("PUBLISH devices/1/telemetry qos=1 id=7 body=x")
	old.expect("CLOSED")
	release(g)
	for full := true; full; {
		_, err := g.Topic().Full()
		full = err != nil
	}
	c.send("PUBLISH devices/1/telemetry qos=1 id=8 body=x")
	c.expect("PUBACK 8")
}

// A client that has to wait is not read, keeps its message, and goes on when there is room.
func TestPublishesToABlockedTopicWait(t *testing.T) {
	b := newBed(t, nil)
	g := fill(t, b, engine.Block)
	c := b.connected("five", wire.V5)
	c.send("PUBLISH devices/1/telemetry qos=1 id=7 body=x")
	if got := c.read(300 * time.Millisecond); got != "TIMEOUT" {
		t.Fatalf("got %s", got)
	}
	release(g)
	c.expect("PUBACK 7")
}
