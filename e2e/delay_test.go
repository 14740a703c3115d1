package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"isthmus/e2e/clients"
)

// S3.30: a message delayed by 10 s is not visible at 9 s and visible by 12 s: to every protocol at the same moment.
func TestS3_30_DelayedMessageEverywhere(t *testing.T) {
	t.Parallel()
	b := newBed(t, matrix, time.Minute)
	all := map[string]clients.Consumer{
		"mqtt": b.mqttSub("m", "by-rocketmq/+"), "rocketmq": b.rocketmqConsumer("by-rocketmq", "r", false),
		"shared": b.consume("persistent://acme/out/by-rocketmq", "s", "c", pulsar.Shared), "failover": b.consume("persistent://acme/out/by-rocketmq", "f", "c", pulsar.Failover),
	}
	p := b.rocketmqProducer("by-rocketmq")
	// The consumers are at work: what is sent now is seen now.
	b.must(p.Send(b.ctx, clients.Message{Key: "k", Body: []byte("now")}))
	for _, k := range all {
		b.take(k, 1, 20*time.Second)
	}
	start := time.Now()
	_, err := p.SendRaw(b.ctx, clients.RocketMQMessage("by-rocketmq", clients.Message{Key: "k", Body: []byte("level 3")}).WithDelayTimeLevel(3))
	b.must(err)
	for name, k := range all {
		select {
		case m := <-k.C():
			t.Fatalf("%s has %q after %v", name, m.Body, time.Since(start))
		case <-time.After(max(0, time.Until(start.Add(9*time.Second)))):
		}
	}
	for name, k := range all {
		m := b.take(k, 1, 15*time.Second)[0]
		if after := m.At.Sub(start); string(m.Body) != "level 3" || m.Key != "k" && name != "mqtt" || after < 10*time.Second || after > 12*time.Second {
			t.Errorf("%s: %q with key %q after %v", name, m.Body, m.Key, after)
		}
	}
}

// Hundreds of delayed messages of two protocols, and a gateway that is killed twice while they become due: each is released
// once, and none early.
func TestI7_DelayedMessagesThroughKills(t *testing.T) {
	t.Parallel()
	b := newBed(t, matrix, 2*time.Minute)
	const n = 400
	pp, err := clients.NewPulsarProducer(b.newPulsar(), "persistent://acme/out/by-pulsar", nil)
	b.must(err)
	defer pp.Close()
	rp := b.rocketmqProducer("by-pulsar")
	k := b.consume("persistent://acme/out/by-pulsar", "s", "c", pulsar.Shared)
	start := time.Now()
	errs := make(chan error, n)
	for i := range n {
		due := start.Add(2*time.Second + time.Duration(rand.IntN(8000))*time.Millisecond)
		body := fmt.Sprint(i, " ", due.UnixMilli())
		if i%2 == 0 {
			pp.SendAsync(b.ctx, &pulsar.ProducerMessage{Payload: []byte(body), Key: fmt.Sprint(i % 7), DeliverAt: due},
				func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { errs <- err })
			continue
		}
		_, err := rp.SendRaw(b.ctx, primitive.NewMessage("by-pulsar", []byte(body)).WithDelayTimestamp(due).WithKeys([]string{fmt.Sprint(i % 7)}))
		errs <- err
	}
	for range n {
		b.must(<-errs)
	}
	t.Logf("%d are parked after %s", n, time.Since(start).Round(time.Millisecond))
	for _, at := range []time.Duration{4 * time.Second, 7 * time.Second} {
		time.Sleep(time.Until(start.Add(at))) // the scenario's own rhythm: work, then death
		b.restart(b.Kill)
	}
	seen := map[string]bool{}
	early := func(m clients.Message) {
		var i, due int64
		if _, err := fmt.Sscan(string(m.Body), &i, &due); err != nil {
			t.Fatalf("%q: %v", m.Body, err)
		}
		if ms := due - m.At.UnixMilli(); ms > 0 {
			t.Errorf("message %d is %d ms early", i, ms)
		}
	}
	b.eventually(40*time.Second, "all messages", func() bool {
		for {
			select {
			case m := <-k.C():
				early(m)
				b.must(k.Ack(m.Raw.(pulsar.Message)))
				seen[string(m.Body)] = true
				continue
			default:
			}
			return len(seen) == n
		}
	})
	// In the log each is there once: a new group reads it from the start.
	again := b.consumeOn(b.newPulsar(), "persistent://acme/out/by-pulsar", "again", "c", pulsar.Exclusive, func(o *pulsar.ConsumerOptions) {
		o.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	})
	once := map[string]int{}
	for _, m := range b.take(again, n, 20*time.Second) {
		once[string(m.Body)]++
	}
	b.quiet(again, 500*time.Millisecond)
	if len(once) != n {
		t.Errorf("%d different messages among %d", len(once), n)
	}
}

// The Java client's transactions, delays and recall.
func TestS3_30_JavaTransactionsAndDelays(t *testing.T) {
	t.Parallel()
	program := java(t, "TransactionMain")
	b := newBed(t, matrix, 2*time.Minute)
	k := b.consume("persistent://acme/out/by-rocketmq", "s", "c", pulsar.Shared)
	lines := strings.Join(b.run(program, b.NameServer, "by-rocketmq"), "\n")
	if want := "checked checked\nchecked lost\nrecalled true\nrecalled again false"; lines != want {
		t.Errorf("the program says:\n%s\nwant:\n%s", lines, want)
	}
	got := map[string]int{}
	for _, m := range b.take(k, 4, 20*time.Second) {
		got[string(m.Body)]++
		if _, has := m.Props["DELAY"]; has {
			t.Errorf("%s: properties %v", m.Body, m.Props)
		}
	}
	b.quiet(k, time.Second)
	for _, body := range []string{"commit", "checked", "level", "timer"} {
		if got[body] != 1 {
			t.Errorf("%s came %d times, of %v", body, got[body], got)
		}
	}
}
