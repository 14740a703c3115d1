package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// S1, Shared.

func TestS1_32_ThreeSharedConsumersShareEvenly(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	var ks []*clients.PulsarConsumer
	for _, name := range []string{"a", "b", "c"} {
		ks = append(ks, b.consumeOn(b.newPulsar(), eventTest, "s", name, pulsar.Shared, nil))
	}
	b.produce(eventTest, 0, 300, noKey)
	got := b.take(tagged(b, ks), 300, 15*time.Second)
	exactlyOnce(b, 300, got)
	count := map[string]int{}
	for _, m := range got {
		count[m.Tag]++
	}
	for k, n := range count {
		if n < 90 || n > 110 {
			t.Errorf("consumer %s got %d of 300", k, n)
		}
	}
}

func TestS1_33_WhatADroppedConsumerHeldGoesToTheOthers(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	dying := b.newPulsar()
	a := b.consumeOn(dying, eventTest, "s", "a", pulsar.Shared, nil)
	b.produce(eventTest, 0, 20, noKey)
	b.take(a, 20, 10*time.Second)
	rest := b.consume(eventTest, "s", "b", pulsar.Shared)
	defer rest.Close()
	dying.Close()
	got := b.take(rest, 20, 5*time.Second)
	exactlyOnce(b, 20, got)
	for _, m := range got {
		if m.Redelivery != 0 {
			t.Errorf("%s: redelivery count %d after a plain disconnect, want 0", m.Body, m.Redelivery)
		}
	}
}

func TestS1_33_ARedeliveryRequestRaisesTheCount(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	k := b.consumeOn(b.pulsar(), eventTest, "s", "a", pulsar.Shared, func(o *pulsar.ConsumerOptions) {
		o.NackRedeliveryDelay = 100 * time.Millisecond
	})
	defer k.Close()
	b.produce(eventTest, 0, 1, noKey)
	for want := range 3 {
		m := b.take(k, 1, 10*time.Second)[0]
		if m.Redelivery != want {
			t.Fatalf("delivery %d has redelivery count %d", want+1, m.Redelivery)
		}
		k.Nack(m.Raw.(pulsar.Message))
	}
}

// The Go client refuses a cumulative ack on Shared by itself, so the raw one asks.
func TestS1_34_CumulativeAckOnSharedAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	b.produce(eventTest, 0, 5, noKey)
	const shared, cumulative = 1, 1
	for round := range 2 {
		r, err := clients.DialRawPulsar(b.Pulsar)
		b.must(err)
		b.must(r.Subscribe(1, eventTest, "s", "raw", shared))
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

// The words that a reader of the documents must find.
func TestS1_31_S1_35_S1_48_DocumentsSayWhichTypeAndThatSharedHasNoOrder(t *testing.T) {
	var all strings.Builder
	files, _ := filepath.Glob("../docs/*.md")
	for _, f := range append(files, "../README.md") {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, want := range []string{"ConsumerType.Failover", "acknowledge_cumulative", "no order", "it stands by"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("neither README nor docs say %q", want)
		}
	}
}
