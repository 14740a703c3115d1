package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// metric is the value of one series, or "" when there is none.
func (b *bed) metric(series string) string {
	b.Helper()
	r, err := http.Get("http://" + b.HTTP + "/metrics")
	b.must(err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	b.must(err)
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			return v
		}
	}
	return ""
}

// Messages that nobody acknowledges in time are no longer delivered, to Pulsar and to RocketMQ clients, and leave the backlog.
func TestS1_11_OldMessagesExpire(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Config{
		Topics: `
persistent://acme/out/event: { partitions: 1, names: { rocketmq: event }, ttl: 4s }`,
		Groups: `
persistent://acme/out/event: [ acme-sub, queued ]`,
	}, time.Minute)
	const topic = "persistent://acme/out/event"
	holder := b.consumeOn(b.newPulsar(), topic, "acme-sub", "holder", pulsar.Shared, nil)
	b.produce(topic, 0, 5, func(i int) string { return fmt.Sprint("old-", i) })
	b.take(holder, 5, 10*time.Second) // and acknowledges none
	backlog := func(group string) string {
		return b.metric(`isthmus_group_backlog_messages{group="` + group + `",topic="` + topic + `"}`)
	}
	if got := backlog("acme-sub"); got != "5" {
		t.Errorf("a backlog of %s before", got)
	}
	b.eventually(15*time.Second, "the backlog empties", func() bool { return backlog("acme-sub") == "0" && backlog("queued") == "0" })
	b.produce(topic, 5, 1, func(int) string { return "young" })
	holder.Close()
	k := b.consume(topic, "acme-sub", "late", pulsar.Shared)
	defer k.Close()
	q := b.rocketmqConsumer("event", "queued", false)
	for _, k := range []clients.Consumer{k, q} {
		if got := b.take(k, 1, 30*time.Second); got[0].Key != "young" {
			t.Errorf("an old message was delivered: %s", got[0].Key)
		}
	}
	if got := b.metric(`isthmus_group_dropped_total{reason="ttl"}`); got != "10" {
		t.Errorf("%s messages counted, want 10", got)
	}
}

// A full backlog refuses every stock client in its own words; what was acknowledged stays, and there is room once it is read.
func TestAFullBacklogRefusesEveryClient(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Config{
		Topics: `
persistent://acme/out/event: { partitions: 1, names: { rocketmq: event }, backlog: { size: 4KiB, when_full: reject } }`,
		Groups: `
persistent://acme/out/event: [ acme-sub ]`,
		Mappings: `
- { id: up, from: { mqtt: "up/{id}" }, to: { topic: persistent://acme/out/event } }`,
	}, time.Minute)
	const topic = "persistent://acme/out/event"
	device, rmq := b.mqtt("device"), b.rocketmqProducer("event")
	p, err := clients.NewPulsarProducer(b.newPulsar(), topic, func(o *pulsar.ProducerOptions) { o.DisableBatching = true })
	b.must(err)
	defer p.Close()
	message := clients.Message{Topic: "up/1", Key: "k", Body: make([]byte, 1000)}
	sent := 0
	for ; sent < 10; sent++ {
		if err = device.Send(b.ctx, message); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "limit has been exceeded") { // paho's words for 0x97
		t.Errorf("MQTT: after %d messages %v, want quota exceeded", sent, err)
	}
	if _, err := rmq.SendResult(b.ctx, message); err == nil || !strings.Contains(err.Error(), "backlog") {
		t.Errorf("RocketMQ: %v", err)
	}
	if err := p.Send(b.ctx, message); err == nil || !strings.Contains(err.Error(), "uota") {
		t.Errorf("Pulsar: %v", err)
	}
	k := b.consume(topic, "acme-sub", "c", pulsar.Exclusive)
	defer k.Close()
	b.ackAll(k, b.take(k, sent, 10*time.Second))
	b.eventually(10*time.Second, "there is room", func() bool { return device.Send(b.ctx, message) == nil })
	_, err = rmq.SendResult(b.ctx, message)
	b.must(err)
	again, err := clients.NewPulsarProducer(b.newPulsar(), topic, nil)
	b.must(err)
	defer again.Close()
	b.must(again.Send(b.ctx, message))
}
