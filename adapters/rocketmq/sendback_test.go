package rocketmq

import (
	"strconv"
	"testing"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// A message that is sent back waits by its level and comes through the retry topic; after its last try it is a dead letter.
// Spec: RocketMQ RequestCode.CONSUMER_SEND_MSG_BACK=36
func TestSendBack(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	c.heartbeat("g", "T", "*", "")
	c.send(wire.Success, "T", 1, "UNIQ_KEY\x01U\x02p\x01q\x02", "x")
	first := c.stored("T", 1, 1)[0]
	back := func(code wire.Code, phys int64, level, most int) {
		t.Helper()
		ext := []string{"group", "g", "offset", strconv.FormatInt(phys, 10), "delayLevel", strconv.Itoa(level), "originMsgId", "ID", "originTopic", "T", "unitMode", "false"}
		if most >= 0 {
			ext = append(ext, "maxReconsumeTimes", strconv.Itoa(most))
		}
		c.call(code, wire.SendMessageBack, nil, ext...)
	}
	sent := time.Now()
	back(wire.Success, first.PhysOffset, 1, 16)
	retry := c.stored("%RETRY%g", 0, 1)[0]
	if retry.StoreTime < sent.Add(time.Second).UnixMilli() || retry.Reconsume != 1 || string(retry.Body) != "x" || retry.Born != first.Born || retry.BornHost != first.BornHost {
		t.Errorf("%+v", retry)
	}
	for name, want := range map[string]string{"UNIQ_KEY": "U", "p": "q", "RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": "ID", "DELAY": ""} {
		if got := string(wire.FindProperty(retry.Properties, name)); got != want {
			t.Errorf("property %s is %q, want %q", name, got, want)
		}
	}
	back(wire.Success, retry.PhysOffset, 0, 16) // the second retry waits 30 s: level 3 + 1
	part := g.Topic(t, "%RETRY%g", 0).Partition(0)
	if part.Parked() != 1 {
		t.Errorf("%d are parked", part.Parked())
	}
	back(wire.Success, retry.PhysOffset, 0, 1)
	c.heartbeat("g", "%DLQ%g", "*", "")
	dead := c.stored("%DLQ%g", 0, 1)[0]
	if dead.Reconsume != 2 || string(wire.FindProperty(dead.Properties, "RETRY_TOPIC")) != "T" || dead.StoreTime > time.Now().UnixMilli() {
		t.Errorf("%+v", dead)
	}
	back(wire.Success, first.PhysOffset, -1, -1)
	c.stored("%DLQ%g", 0, 2)
	for _, phys := range []int64{-1, first.PhysOffset + 7, 1 << 60} {
		back(wire.SystemError, phys, 1, 16)
	}
	c.call(wire.SystemError, wire.SendMessageBack, nil, "group", "g")
	c.call(wire.InvalidParameter, wire.SendMessageBack, nil, "group", "g/h", "offset", "1", "delayLevel", "1")
}

// What another protocol published is sent back too.
func TestSendBackOfForeignMessage(t *testing.T) {
	g := newGateway(t, nil)
	done := make(chan struct{}, 1)
	part := g.Topic(t, "T", 0).Partition(0)
	m := core.Message{Body: []byte("x"), Tag: "a", Properties: []core.Property{{Key: "p", Value: "q"}}}
	if err := g.publish(t, done).Publish(part, &core.Entry{Count: 1, Key: []byte("k"), Flags: core.FlagHasKey, PublishTime: 5, Data: m.AppendNeutral(nil)}, 0); err != nil {
		t.Fatal(err)
	}
	<-done
	c := g.dial(t)
	c.heartbeat("g", "%DLQ%g", "*", "")
	c.call(wire.Success, wire.SendMessageBack, nil, "group", "g", "offset", strconv.FormatInt(physOffset(part.Number(), 0), 10), "delayLevel", "-1", "originTopic", "T")
	dead := c.stored("%DLQ%g", 0, 1)[0]
	if string(dead.Body) != "x" || dead.Reconsume != 1 || dead.Born != 5 || string(wire.FindProperty(dead.Properties, "TAGS")) != "a" || string(wire.FindProperty(dead.Properties, "KEYS")) != "k" {
		t.Errorf("%+v %q", dead, dead.Properties)
	}
}

// A consumer that puts a message into its retry topic itself, because sending it back failed or because it reads in order and
// has given up, has a limit too.
// Spec: RocketMQ SendMessageProcessor.handleRetryAndDLQ
func TestSentToTheRetryTopicTooOften(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	g.Topic(t, "T", 8)
	c.heartbeat("g", "T", "*", "")
	again := func(times int, more ...string) {
		t.Helper()
		ext := append(sendExt("%RETRY%g", 0, "DELAY\x011\x02UNIQ_KEY\x01U\x02"), "reconsumeTimes", strconv.Itoa(times))
		c.call(wire.Success, wire.SendMessage, []byte("x"), append(ext, more...)...)
	}
	again(16)
	again(2, "maxReconsumeTimes", "2")
	if retries := c.stored("%RETRY%g", 0, 2); retries[0].Reconsume+retries[1].Reconsume != 18 {
		t.Errorf("%+v", retries)
	}
	again(17)
	again(3, "maxReconsumeTimes", "2")
	if got := c.lock(wire.LockBatch, "g", `{"brokerName":"x","queueId":0,"topic":"T"}`); got == "" {
		t.Fatal("no lock")
	}
	again(1, "maxReconsumeTimes", "16")
	c.heartbeat("g", "%DLQ%g", "*", "")
	for i, m := range c.stored("%DLQ%g", 0, 3) {
		if string(m.Properties) != "UNIQ_KEY\x01U\x02" || m.Reconsume != []int32{17, 3, 1}[i] {
			t.Errorf("%+v, properties %q", m, m.Properties)
		}
	}
	if n := g.Topic(t, "%DLQ%g", 0).Partition(0).Parked(); n != 0 {
		t.Errorf("%d dead letters wait", n)
	}
}
