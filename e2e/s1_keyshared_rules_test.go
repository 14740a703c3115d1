package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// S1, Key_Shared with stock clients against the binary, one rule after the other. S1.39 is in s1_keyshared_churn_test.go.

// keyShared attaches n Key_Shared consumers, each on a connection of its own.
func (b *bed) keyShared(topic, sub string, n int, conf func(*pulsar.ConsumerOptions)) []*clients.PulsarConsumer {
	b.Helper()
	var ks []*clients.PulsarConsumer
	for i := range n {
		k := b.consumeOn(b.newPulsar(), topic, sub, fmt.Sprint("c", i), pulsar.KeyShared, func(o *pulsar.ConsumerOptions) {
			o.NackRedeliveryDelay = 100 * time.Millisecond
			if conf != nil {
				conf(o)
			}
		})
		b.Cleanup(k.Close)
		ks = append(ks, k)
	}
	return ks
}

func keyOf(n int) func(i int) string { return func(i int) string { return fmt.Sprint("key-", i%n) } }

func TestS1_36_EachKeyIsSeenByOneConsumer(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	for _, topic := range []string{event, eventTest} {
		ks := b.keyShared(topic, "s", 3, nil)
		const keys, count = 50, 500
		b.produce(topic, 0, count, keyOf(keys))
		at, busy := map[string]string{}, map[string]bool{}
		got := b.take(tagged(b, ks), count, 15*time.Second)
		exactlyOnce(b, count, got)
		for _, m := range got {
			if who, known := at[m.Key]; known && who != m.Tag {
				t.Errorf("%s: %s at consumers %s and %s", topic, m.Key, who, m.Tag)
			}
			at[m.Key], busy[m.Tag] = m.Tag, true
		}
		if len(at) != keys || len(busy) != 3 {
			t.Errorf("%s: %d keys at %d consumers, want %d at 3", topic, len(at), len(busy), keys)
		}
	}
}

// A message that is refused comes back to who refused it, before anything later of its key, and counts up.
func TestS1_38_ANackedMessageComesBackToTheSameConsumer(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	ks := b.keyShared(eventTest, "s", 3, nil)
	const keys = 30
	b.produce(eventTest, 0, keys, keyOf(keys))
	all := tagged(b, ks)
	at := map[string]string{}
	for attempt := range 4 {
		got := b.take(all, keys, 15*time.Second)
		for _, m := range got {
			if who, known := at[m.Key]; known && who != m.Tag {
				t.Errorf("attempt %d: %s came to consumer %s, and before to %s", attempt, m.Key, m.Tag, who)
			}
			at[m.Key] = m.Tag
			if m.Redelivery != attempt {
				t.Errorf("attempt %d of %s has redelivery count %d", attempt, m.Key, m.Redelivery)
			}
		}
		for _, m := range got {
			ks[m.Tag[0]-'0'].Nack(m.Raw.(pulsar.Message))
		}
	}
}

// Some keys move to who joins; it gets nothing of them before what was delivered is acknowledged, and other keys never wait.
func TestS1_40_ANewcomerWaitsForMovedKeysAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	old := b.keyShared(eventTest, "s", 1, nil)[0]
	const keys = 30
	b.produce(eventTest, 0, keys, keyOf(keys))
	first := b.take(old, keys, 10*time.Second)
	newcomer := b.consumeOn(b.newPulsar(), eventTest, "s", "newcomer", pulsar.KeyShared, nil)
	b.Cleanup(newcomer.Close)
	b.produce(eventTest, keys, keys, keyOf(keys))
	stayed := map[string]bool{}
	for quiet := false; !quiet; {
		select {
		case m := <-old.C():
			stayed[m.Key] = true
		case m := <-newcomer.C():
			t.Fatalf("the newcomer got %s of %s, whose slot is not drained", m.Body, m.Key)
		case <-time.After(500 * time.Millisecond): // nothing more may come, which no event tells
			quiet = true
		}
	}
	if len(stayed) == 0 || len(stayed) == keys {
		t.Fatalf("%d of %d keys stayed with the first consumer", len(stayed), keys)
	}
	// Acknowledged one key at a time: each frees itself and no other (two keys have a slot of the 65 536 to themselves).
	for _, m := range first {
		b.must(old.Ack(m.Raw.(pulsar.Message)))
		if stayed[m.Key] {
			continue
		}
		if moved := b.take(newcomer, 1, 10*time.Second)[0]; moved.Key != m.Key {
			t.Errorf("after %s was acknowledged the newcomer got %s", m.Key, moved.Key)
		}
	}
	b.quiet(newcomer, 200*time.Millisecond)
}

func TestS1_41_OutOfOrderDeliveryOnRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	anyOrder := func(o *pulsar.ConsumerOptions) {
		o.KeySharedPolicy = &pulsar.KeySharedPolicy{Mode: pulsar.KeySharedPolicyModeAutoSplit, AllowOutOfOrderDelivery: true}
	}
	old := b.keyShared(eventTest, "s", 1, anyOrder)[0]
	const keys = 30
	b.produce(eventTest, 0, keys, keyOf(keys))
	b.take(old, keys, 10*time.Second) // and nothing is acknowledged
	newcomer := b.consumeOn(b.newPulsar(), eventTest, "s", "newcomer", pulsar.KeyShared, anyOrder)
	b.Cleanup(newcomer.Close)
	b.produce(eventTest, keys, keys, keyOf(keys))
	got := b.take(tagged(b, []*clients.PulsarConsumer{old, newcomer}), keys, 10*time.Second)
	by := map[string]int{}
	for _, m := range got {
		by[m.Tag]++
	}
	if by["1"] == 0 || by["0"] == 0 {
		t.Errorf("messages by consumer: %v, want some for the newcomer at once", by)
	}
}

// The Go client refuses a cumulative ack on Key_Shared by itself, so the raw one asks.
func TestS1_42_CumulativeAckOnKeySharedAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	b.produce(eventTest, 0, 5, keyOf(5))
	const keyShared, cumulative = 3, 1
	for round := range 2 {
		r, err := clients.DialRawPulsar(b.Pulsar)
		b.must(err)
		b.must(r.Subscribe(1, eventTest, "s", "raw", keyShared))
		b.must(r.Flow(1, 100))
		var ledger, entry uint64
		for i := range 5 {
			if ledger, entry, _, err = r.NextMessage(); err != nil {
				t.Fatalf("round %d, message %d: %v", round, i, err)
			}
		}
		b.must(r.Ack(1, cumulative, ledger, entry))
		r.Close()
	}
}
