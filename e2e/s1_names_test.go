package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// S1, naming and defaults.

func TestS1_1_TopicNames(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	r, err := clients.DialRawPulsar(b.Pulsar)
	b.must(err)
	defer r.Close()
	for _, name := range []string{"persistent://t/n/x", "non-persistent://t/n/x"} {
		code, text, err := r.Lookup(name)
		b.must(err)
		if code != -1 {
			t.Errorf("lookup of %q: refused with %d %s", name, code, text)
		}
	}
	const invalidTopicName = 17
	for _, name := range []string{"foo://t/n/x", "persistent://t/x", "persistent:///n/x", "persistent://t//x", "persistent://t/n/", ""} {
		code, text, err := r.Lookup(name)
		if err != nil {
			t.Fatalf("lookup of %q: no answer: %v", name, err)
		}
		if code != invalidTopicName {
			t.Errorf("lookup of %q: code %d %q, want %d", name, code, text, invalidTopicName)
		}
		n, err := r.Metadata(name)
		if err != nil {
			t.Fatalf("metadata of %q: no answer: %v", name, err)
		}
		if n != -invalidTopicName {
			t.Errorf("metadata of %q: %d, want error %d", name, n, invalidTopicName)
		}
	}
}

func TestS1_2_AMappingWithoutADomainMakesAPersistentTopic(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Config{Mappings: `
- id: plain
  from: { mqtt: "plain/{id}" }
  to:   { topic: acme/out/plain }
  key:  "{id}"`}, time.Minute)
	b.publish(3, func(int) string { return "plain/7" })
	b.restart(b.Kill)
	k := b.consume("persistent://acme/out/plain", "s", "c", pulsar.Exclusive)
	defer k.Close()
	if got := b.take(k, 3, 10*time.Second); got[0].Key != "7" || string(got[2].Body) != "2" {
		t.Fatalf("got %+v", got)
	}
}

func TestS1_3_AcknowledgedPublishesSurviveSIGKILL(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	b.consume(eventTest, "waiting", "c", pulsar.Failover).Close() // one subscription, no consumer
	b.publish(200, func(int) string { return "test/1" })
	b.produce(eventTest, 200, 50, noKey)
	b.restart(b.Kill)
	k := b.consume(eventTest, "waiting", "c", pulsar.Failover)
	defer k.Close()
	for i, m := range b.take(k, 250, 20*time.Second) {
		if string(m.Body) != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, m.Body)
		}
	}
}

func TestS1_5_ShortNamesResolveUnderTheDefaultNamespace(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Config{
		Defaults: "{ tenant: public, namespace: out, auto_create: true, partitions: 0, rocketmq_queues: 4 }",
		Mappings: `
- id: short
  from: { mqtt: "short/{id}" }
  to:   { topic: short }
  key:  "{id}"`}, time.Minute)
	b.publish(1, func(int) string { return "short/1" })
	k := b.consume("persistent://public/out/short", "s", "c", pulsar.Exclusive)
	defer k.Close()
	b.take(k, 1, 10*time.Second)

	p, err := clients.NewRocketMQProducer(b.NameServer, "shortrmq")
	b.must(err)
	defer p.Close()
	b.must(p.Send(b.ctx, clients.Message{Key: "k", Body: []byte("x")}))
	k2 := b.consume("persistent://public/out/shortrmq", "s", "c", pulsar.Exclusive)
	defer k2.Close()
	b.take(k2, 1, 10*time.Second)
}

func TestS1_6_ElevenPartitionsCanBeLookedUp(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	parts, err := b.pulsar().TopicPartitions(event)
	b.must(err)
	if len(parts) != 11 {
		t.Fatalf("%d partitions, want 11: %v", len(parts), parts)
	}
	r, err := clients.DialRawPulsar(b.Pulsar)
	b.must(err)
	defer r.Close()
	for i := range 12 {
		name := fmt.Sprintf("%s-partition-%d", event, i)
		code, text, err := r.Lookup(name)
		b.must(err)
		if found := code == -1; found != (i < 11) {
			t.Errorf("lookup of %s: code %d %s", name, code, text)
		}
	}
}

func TestS1_7_NoPartitions(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	r, err := clients.DialRawPulsar(b.Pulsar)
	b.must(err)
	defer r.Close()
	if n, err := r.Metadata(eventTest); err != nil || n != 0 {
		t.Fatalf("metadata says %d, %v; want 0", n, err)
	}
}

func TestS1_8_TheDeclaredGroupMissesNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	b.publish(100, func(i int) string { return fmt.Sprintf("devices/%d/telemetry", i%10) })
	// Latest: a group that began only now would get nothing.
	k := b.consumeOn(b.pulsar(), event, "acme-sub", "c", pulsar.Failover, func(o *pulsar.ConsumerOptions) {
		o.SubscriptionInitialPosition = pulsar.SubscriptionPositionLatest
	})
	defer k.Close()
	exactlyOnce(b, 100, b.take(k, 100, 15*time.Second))
}

func TestS1_12_AcknowledgedNeverComesBack(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	k := b.consume(eventTest, "s", "c", pulsar.Shared)
	b.produce(eventTest, 0, 20, noKey)
	got := b.take(k, 20, 10*time.Second)
	var odd []clients.Message // individual acks, so that the saved cursor has holes
	for i, m := range got {
		if i%2 == 1 {
			odd = append(odd, m)
		}
	}
	b.ackAll(k, odd)
	k.Close()
	b.restart(b.Stop)
	k = b.consume(eventTest, "s", "c", pulsar.Shared)
	defer k.Close()
	for _, m := range b.take(k, 10, 15*time.Second) {
		if (m.Body[len(m.Body)-1]-'0')%2 == 1 {
			t.Errorf("%s was acknowledged and came back", m.Body)
		}
	}
	b.quiet(k, 300*time.Millisecond)
}

func TestS1_49_TwoSubscriptionsBothGetEverything(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	a1 := b.consume(eventTest, "a", "1", pulsar.Shared)
	defer a1.Close()
	a2 := b.consume(eventTest, "a", "2", pulsar.Shared)
	defer a2.Close()
	other := b.consume(eventTest, "b", "3", pulsar.Shared)
	defer other.Close()
	b.produce(eventTest, 0, 60, noKey)
	exactlyOnce(b, 60, b.take(other, 60, 10*time.Second))
	exactlyOnce(b, 60, b.take(merge(b, a1, a2), 60, 10*time.Second))
}

// merge is one consumer made of several; it ends with the test.
func merge[K clients.Consumer](b *bed, ks ...K) channel {
	all := make(channel)
	for _, k := range ks {
		go func() {
			for {
				select {
				case m := <-k.C():
					select {
					case all <- m:
					case <-b.ctx.Done():
						return
					}
				case <-b.ctx.Done():
					return
				}
			}
		}()
	}
	return all
}
