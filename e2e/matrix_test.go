package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

const (
	matrixMessages = 1000
	matrixKeys     = 50
)

// The matrix: a topic per producing protocol, consumed by all three at once; a cell is a producer and a consumer.
var matrix = gateway.Config{
	Topics: `
persistent://acme/out/by-mqtt:     { partitions: 5, placement: key, names: { rocketmq: by-mqtt } }
persistent://acme/out/by-pulsar:   { partitions: 5, placement: key, names: { rocketmq: by-pulsar } }
persistent://acme/out/by-batch:    { partitions: 5, placement: key, names: { rocketmq: by-batch } }
persistent://acme/out/by-whole-batch: { partitions: 5, placement: client, names: { rocketmq: by-whole-batch } }
persistent://acme/out/by-rocketmq: { partitions: 5, placement: key, names: { rocketmq: by-rocketmq } }`,
	Mappings: mapping("by-mqtt") + mapping("by-pulsar") + mapping("by-batch") + mapping("by-whole-batch") + mapping("by-rocketmq"),
}

// mapping joins t/{k} and the topic both ways.
func mapping(topic string) string {
	return fmt.Sprintf(`
- id: %[1]s
  from: { mqtt: "%[1]s/{k}" }
  to:   { topic: persistent://acme/out/%[1]s }
  key:  "{k}"`, topic)
}

func TestMatrix(t *testing.T) {
	b := newBed(t, matrix, 3*time.Minute)
	row := func(name string, send func([]clients.Message)) {
		t.Run(name, func(t *testing.T) { matrixRow(&bed{T: t, Gateway: b.Gateway, ctx: b.ctx, pc: b.pulsar()}, name, send) })
	}
	row("by-mqtt", func(ms []clients.Message) {
		p := b.mqtt("matrix-producer")
		for _, m := range ms {
			m.Topic = "by-mqtt/" + m.Key
			b.must(p.Send(b.ctx, m))
		}
	})
	row("by-pulsar", func(ms []clients.Message) {
		p, err := clients.NewPulsarProducer(b.pulsar(), "persistent://acme/out/by-pulsar", nil)
		b.must(err)
		defer p.Close()
		sendAll(b, p, ms)
	})
	// Batches hold many keys: placed by key they are taken apart, left to the client they stay whole.
	for _, name := range []string{"by-batch", "by-whole-batch"} {
		row(name, func(ms []clients.Message) {
			p, err := clients.NewPulsarProducer(b.pulsar(), "persistent://acme/out/"+name, func(o *pulsar.ProducerOptions) {
				o.DisableBatching, o.BatchingMaxMessages, o.BatchingMaxPublishDelay = false, 100, 50*time.Millisecond
			})
			b.must(err)
			defer p.Close()
			b.must(p.SendAll(b.ctx, ms))
		})
	}
	row("by-rocketmq", func(ms []clients.Message) {
		p, err := clients.NewRocketMQProducer(b.NameServer, "by-rocketmq")
		b.must(err)
		defer p.Close()
		sendAll(b, p, ms)
	})
}

func sendAll(b *bed, p clients.Producer, ms []clients.Message) {
	b.Helper()
	for _, m := range ms {
		b.must(p.Send(b.ctx, m))
	}
}

// matrixRow starts the three consumers, sends, and judges each cell by itself.
func matrixRow(b *bed, name string, send func([]clients.Message)) {
	topic := "persistent://acme/out/" + name
	byMQTT := b.mqttSub("sub-"+name, name+"/+")
	byPulsar := b.consume(topic, "matrix", "c", pulsar.Exclusive)
	defer byPulsar.Close()
	byRocketMQ, err := clients.NewRocketMQConsumer(b.NameServer, name, "matrix-rocketmq", true, "") // a group of its own: one name is one group
	b.must(err)
	defer byRocketMQ.Close()

	sent := matrixSent(name)
	start := time.Now()
	send(sent)
	b.Logf("%d messages sent in %s", len(sent), time.Since(start).Round(time.Millisecond))
	for cell, k := range map[string]clients.Consumer{"to-mqtt": byMQTT, "to-pulsar": byPulsar, "to-rocketmq": byRocketMQ} {
		got := b.collect(k, len(sent), 30*time.Second)
		b.Run(cell, func(t *testing.T) { judgeCell(t, cell, name, sent, got, start) })
	}
}

func matrixSent(name string) []clients.Message {
	ms := make([]clients.Message, matrixMessages)
	for i := range ms {
		key := fmt.Sprintf("vdevo17000000000%04d", i%matrixKeys) // long enough to hash above 2^31
		ms[i] = clients.Message{
			Key: key, HasKey: true, Body: bytes.Repeat(fmt.Appendf(nil, "%s/%d\x00ü ", name, i), 1+i%7),
			Props: map[string]string{"n": fmt.Sprint(i), "unit": "°C", "with space": "a=b;c,d"},
		}
		if strings.HasSuffix(name, "pulsar") || strings.HasSuffix(name, "batch") {
			ms[i].EventTime = time.UnixMilli(1_600_000_000_000 + int64(i))
		}
	}
	return ms
}

// collect reads until n came, and a little longer to catch what came twice; it does not fail, the cell's judge does.
func (b *bed) collect(k clients.Consumer, n int, patience time.Duration) []clients.Message {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	var got []clients.Message
	for {
		select {
		case m := <-k.C():
			if got = append(got, m); len(got) == n {
				time.AfterFunc(300*time.Millisecond, cancel)
			}
		case <-ctx.Done():
			return got
		}
	}
}

func judgeCell(t *testing.T, cell, name string, sent, got []clients.Message, start time.Time) {
	if len(got) != len(sent) {
		t.Errorf("got %d messages, want %d", len(got), len(sent))
	}
	seen := map[string]int{}
	last := map[string]int{}
	for _, m := range got {
		var i int
		if _, err := fmt.Sscan(m.Props["n"], &i); err != nil || i < 0 || i >= len(sent) {
			t.Fatalf("property n is %q in %v, body %.40q", m.Props["n"], m.Props, m.Body)
		}
		want := sent[i]
		if cell == "to-mqtt" { // the key travels as a part of the MQTT topic
			m.Key = strings.TrimPrefix(m.Topic, name+"/")
		}
		if m.Key != want.Key || !bytes.Equal(m.Body, want.Body) {
			t.Fatalf("message %d: key %q body %.40q, want %q %.40q", i, m.Key, m.Body, want.Key, want.Body)
		}
		for k, v := range want.Props {
			if m.Props[k] != v {
				t.Fatalf("message %d: property %q is %q, want %q (all: %v)", i, k, m.Props[k], v, m.Props)
			}
		}
		if cell == "to-pulsar" && !want.EventTime.IsZero() && !m.EventTime.Equal(want.EventTime) {
			t.Fatalf("message %d: event time %s, want %s", i, m.EventTime, want.EventTime)
		}
		if cell != "to-mqtt" && (m.PublishTime.Before(start.Add(-time.Second)) || m.PublishTime.After(m.At.Add(time.Second))) {
			t.Fatalf("message %d: publish time %s is outside %s … %s", i, m.PublishTime, start, m.At)
		}
		if seen[m.Props["n"]]++; seen[m.Props["n"]] > 1 {
			t.Errorf("message %d came twice", i)
		}
		if before, ok := last[m.Key]; ok && before >= i {
			t.Errorf("key %s: message %d after %d", m.Key, i, before)
		}
		last[m.Key] = i
	}
}
