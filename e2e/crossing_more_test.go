package e2e

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/eclipse/paho.golang/paho"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// Bodies that their producers compressed reach the other worlds as the applications wrote them.
func TestCompressedBodiesAreReadByAll(t *testing.T) {
	t.Parallel()
	b := newBed(t, matrix, time.Minute)
	body := bytes.Repeat([]byte("all work and no play "), 1000) // RocketMQ's client compresses from 4 KiB on
	byMQTT := b.mqttSub("sub", "by-batch/+", "by-rocketmq/+")
	kinds := []pulsar.CompressionType{pulsar.LZ4, pulsar.ZLib, pulsar.ZSTD, pulsar.SNAPPY}
	for i, kind := range kinds {
		p, err := clients.NewPulsarProducer(b.pulsar(), "persistent://acme/out/by-batch", func(o *pulsar.ProducerOptions) {
			o.CompressionType, o.DisableBatching = kind, i%2 == 0
		})
		b.must(err)
		b.must(p.Send(b.ctx, clients.Message{Key: fmt.Sprint("k", i), Body: body}))
		p.Close()
	}
	b.must(b.rocketmqProducer("by-rocketmq").Send(b.ctx, clients.Message{Key: "k", Body: body}))
	same := func(ms []clients.Message) {
		t.Helper()
		for _, m := range ms {
			if !bytes.Equal(m.Body, body) {
				t.Errorf("%s: body of %d bytes, want %d", m.Topic, len(m.Body), len(body))
			}
		}
	}
	same(b.take(byMQTT, len(kinds)+1, 10*time.Second))
	same(b.take(b.rocketmqConsumer("by-batch", "g", false), len(kinds), 15*time.Second))
	k := b.consume("persistent://acme/out/by-rocketmq", "s", "c", pulsar.Exclusive)
	defer k.Close()
	same(b.take(k, 1, 10*time.Second))
	own := b.consume("persistent://acme/out/by-batch", "s", "c", pulsar.Exclusive)
	defer own.Close()
	same(b.take(own, len(kinds), 10*time.Second))
}

// The way down: back ends of both kinds send commands, a device hears its own.
func TestCommandsReachTheDevice(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Config{Topics: `
persistent://acme/in/device-cmd: { partitions: 3, placement: key, names: { rocketmq: device-cmd } }`, Mappings: `
- id: commands-down
  from: { topic: persistent://acme/in/device-cmd }
  to:   { mqtt: "devices/{key}/commands", qos: 1 }`}, time.Minute)
	device := b.mqttSub("device-42", "devices/42/commands")
	other := b.mqttSub("device-7", "devices/7/commands")
	p, err := clients.NewPulsarProducer(b.pulsar(), "persistent://acme/in/device-cmd", nil)
	b.must(err)
	defer p.Close()
	b.must(p.Send(b.ctx, clients.Message{Key: "42", Body: []byte("reboot")}))
	b.must(b.rocketmqProducer("device-cmd").Send(b.ctx, clients.Message{Key: "42", Body: []byte("update")}))
	for i, m := range b.take(device, 2, 10*time.Second) {
		raw := m.Raw.(*paho.Publish)
		if want := []string{"reboot", "update"}[i]; string(m.Body) != want || m.Topic != "devices/42/commands" || raw.QoS != 1 {
			t.Errorf("got %q on %s at QoS %d, want %q at 1", m.Body, m.Topic, raw.QoS, want)
		}
	}
	b.quiet(other, 200*time.Millisecond)
}

// SIGTERM: clients are told, the process ends by itself, and what was acknowledged a moment before stays so.
func TestOrderlyShutdown(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	told := make(chan byte, 1)
	_, err := clients.DialMQTT(b.ctx, b.MQTT, "told", func(_ *paho.Connect, c *paho.ClientConfig) {
		c.OnServerDisconnect = func(d *paho.Disconnect) { told <- d.ReasonCode }
	})
	b.must(err)
	k := b.consume(eventTest, "s", "c", pulsar.Failover)
	r := b.rocketmqConsumer("event", "g", true)
	b.produce(eventTest, 0, 50, noKey)
	b.publish(50, func(int) string { return "devices/1/telemetry" })
	got := b.take(k, 50, 10*time.Second)
	b.take(r, 50, 15*time.Second)
	b.must(k.AckCumulative(got[49].Raw.(pulsar.Message)))
	start := time.Now()
	b.must(b.Stop())
	t.Logf("stopped in %s", time.Since(start).Round(time.Millisecond))
	const serverShuttingDown = 0x8b
	select {
	case code := <-told:
		if code != serverShuttingDown {
			t.Errorf("MQTT client was told %#x, want %#x", code, serverShuttingDown)
		}
	case <-time.After(5 * time.Second):
		t.Error("MQTT client was not told")
	}
	b.must(b.Start(b.ctx))
	b.produce(eventTest, 50, 1, noKey)
	if m := b.take(k, 1, 20*time.Second)[0]; string(m.Body) != "50" {
		t.Errorf("after the restart came %q, want 50: an acknowledgement was forgotten", m.Body)
	}
	k.Close()
}

// From MQTT to MQTT a message stays as it was: what a mapping adds is for the other worlds, and repeated user properties
// keep their order.
func TestMQTTToMQTTUnaltered(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	sub := b.mqttSub("sub", "devices/+/telemetry")
	user := paho.UserProperties{{Key: "b", Value: "1"}, {Key: "a", Value: "2"}, {Key: "b", Value: "3"}}
	b.must(b.mqtt("device").Send(b.ctx, clients.Message{Topic: "devices/1/telemetry", Body: []byte("x"), Raw: &paho.PublishProperties{User: user}}))
	got := b.take(sub, 1, 5*time.Second)[0].Raw.(*paho.Publish)
	if fmt.Sprint(got.Properties.User) != fmt.Sprint(user) {
		t.Errorf("user properties %v, want %v", got.Properties.User, user)
	}
}
