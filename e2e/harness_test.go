package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

const (
	event     = "persistent://acme/out/event"
	eventTest = "persistent://acme/out/event-test"
)

// bed is one gateway with the clients that a test has made; all of them end with the test.
type bed struct {
	*testing.T
	*gateway.Gateway
	ctx  context.Context
	pc   pulsar.Client
	seen int
}

// newBed starts a gateway on a fresh folder. The whole test must end within limit.
func newBed(t *testing.T, c gateway.Config, limit time.Duration) *bed {
	t.Helper()
	dir, err := os.MkdirTemp("", "isthmus-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gatewayBinary, dir, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	b := &bed{T: t, Gateway: g, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		if g.Died() {
			t.Error("the gateway died")
		}
		if err := g.Stop(); err != nil { // an orderly end, whatever the test has done to it
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the gateway's last words:\n%s", g.Tail(40))
		}
		g.Close()
		os.RemoveAll(dir)
	})
	if err := g.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) restart(stop func() error) {
	b.Helper()
	b.must(stop())
	b.must(b.Start(b.ctx))
}

// pulsar returns the test's Pulsar client.
func (b *bed) pulsar() pulsar.Client {
	b.Helper()
	if b.pc == nil {
		b.pc = b.newPulsar()
	}
	return b.pc
}

// newPulsar is another client, so other connections: closing it is what a consumer's crash looks like.
func (b *bed) newPulsar() pulsar.Client {
	b.Helper()
	pc, err := clients.DialPulsar(b.Pulsar)
	b.must(err)
	b.Cleanup(pc.Close)
	return pc
}

func (b *bed) mqtt(id string) *clients.MQTT {
	b.Helper()
	m, err := clients.DialMQTT(b.ctx, b.MQTT, id, nil)
	b.must(err)
	b.Cleanup(m.Close)
	return m
}

func (b *bed) mqttSub(id string, filters ...string) *clients.MQTT {
	b.Helper()
	m := b.mqtt(id)
	b.must(m.Subscribe(b.ctx, 1, filters...))
	return m
}

// consume subscribes with a consumer name; what it gets must be acknowledged by the test.
func (b *bed) consume(topic, sub, name string, kind pulsar.SubscriptionType) *clients.PulsarConsumer {
	b.Helper()
	return b.consumeOn(b.pulsar(), topic, sub, name, kind, nil)
}

func (b *bed) consumeOn(pc pulsar.Client, topic, sub, name string, kind pulsar.SubscriptionType, conf func(*pulsar.ConsumerOptions)) *clients.PulsarConsumer {
	b.Helper()
	k, err := clients.NewPulsarConsumer(pc, topic, sub, kind, false, func(o *pulsar.ConsumerOptions) {
		o.Name = name
		if conf != nil {
			conf(o)
		}
	})
	b.must(err)
	return k
}

// publish sends n numbered messages to an MQTT topic made from (i), one after the other.
func (b *bed) publish(n int, topic func(i int) string) {
	b.Helper()
	b.seen++
	d := clients.Device{Addr: b.MQTT, ClientID: fmt.Sprintf("pub-%d", b.seen), Window: 64, NoReconnect: true}
	b.must(d.Run(b.ctx, n, func(i int) clients.Publication {
		return clients.Publication{Topic: topic(i), Payload: fmt.Appendf(nil, "%d", i)}
	}, nil))
}

// produce sends n numbered messages by a Pulsar producer.
func (b *bed) produce(topic string, from, n int, key func(i int) string) {
	b.Helper()
	p, err := clients.NewPulsarProducer(b.pulsar(), topic, nil)
	b.must(err)
	defer p.Close()
	for i := from; i < from+n; i++ {
		b.must(p.Send(b.ctx, clients.Message{Key: key(i), Body: fmt.Appendf(nil, "%d", i)}))
	}
}

func noKey(int) string { return "" }

// take reads n messages, failing with what came when they do not come in time.
func (b *bed) take(k clients.Consumer, n int, patience time.Duration) []clients.Message {
	b.Helper()
	var got []clients.Message
	deadline := time.After(patience)
	for len(got) < n {
		select {
		case m := <-k.C():
			got = append(got, m)
		case <-deadline:
			b.Fatalf("%d of %d messages within %s: %s", len(got), n, patience, bodies(got))
		case <-b.ctx.Done():
			b.Fatalf("%d of %d messages before the test's time was over: %s", len(got), n, bodies(got))
		}
	}
	return got
}

// quiet fails if a message comes within d.
func (b *bed) quiet(k clients.Consumer, d time.Duration) {
	b.Helper()
	select {
	case m := <-k.C():
		b.Fatalf("got %.40q (partition %d offset %d), want nothing", m.Body, m.Partition, m.Offset)
	case <-time.After(d):
	}
}

// ackAll acknowledges a consumer's messages one by one.
func (b *bed) ackAll(k *clients.PulsarConsumer, ms []clients.Message) {
	b.Helper()
	for _, m := range ms {
		b.must(k.Ack(m.Raw.(pulsar.Message)))
	}
}

func bodies(ms []clients.Message) string {
	var s []string
	for i, m := range ms {
		if i == 40 {
			return strings.Join(s, " ") + " …"
		}
		s = append(s, fmt.Sprintf("%.12q", m.Body))
	}
	return strings.Join(s, " ")
}

// eventually polls a condition that has no event to wait for.
func (b *bed) eventually(patience time.Duration, what string, ok func() bool) {
	b.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			b.Fatalf("not within %s: %s", patience, what)
		}
	}
}
