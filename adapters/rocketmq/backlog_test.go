package rocketmq

import (
	"strings"
	"testing"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// Spec: RocketMQ ResponseCode.SYSTEM_BUSY=2: sends to a full backlog, one by one and in batches; pulls and commits go on
func TestSendsToAFullTopic(t *testing.T) {
	g := newGateway(t, nil)
	name := core.TopicName{Tenant: "public", Namespace: "default", Name: "full"}
	topic, err := g.Engine.DeclareTopic(name, engine.TopicSpec{
		Partitions: 1, Groups: []string{"g"}, Policy: engine.Policy{Backlog: engine.Backlog{Size: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	c := g.dial(t)
	c.send(wire.Success, "full", 0, "", "fills it")
	if r := c.send(wire.SystemBusy, "full", 0, "", "is too much"); !strings.Contains(r.remark, "backlog") {
		t.Errorf("remark %q", r.remark)
	}
	c.heartbeat("g", "full", "*", "")
	if ms := c.pull(wire.Success, "g", "full", 0, 0).messages(t); len(ms) != 1 {
		t.Errorf("%d messages", len(ms))
	}
	group, err := topic.Group("g")
	if err != nil {
		t.Fatal(err)
	}
	group.Commit(0, 1)
	for full := true; full; {
		_, err := topic.Full()
		full = err != nil
	}
	c.send(wire.Success, "full", 0, "", "there is room")
}
