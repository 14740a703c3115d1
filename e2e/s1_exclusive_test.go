package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/gateway"
)

// S1, Exclusive.

func TestS1_18_ASecondExclusiveConsumerIsRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	first := b.consume(eventTest, "s", "first", pulsar.Exclusive)
	defer first.Close()
	second := b.newPulsar()
	_, err := second.Subscribe(pulsar.ConsumerOptions{Topic: eventTest, SubscriptionName: "s", Name: "second"})
	if err == nil || !strings.Contains(err.Error(), "ConsumerBusy") {
		t.Fatalf("the second consumer got %v, want consumer busy", err)
	}
	b.produce(eventTest, 0, 10, noKey)
	exactlyOnce(b, 10, b.take(first, 10, 10*time.Second))
}

func TestS1_19_OneExclusiveConsumerHasAllPartitions(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	k := b.consume(event, "s", "c", pulsar.Exclusive)
	defer k.Close()
	b.publish(200, func(i int) string { return fmt.Sprintf("devices/dev-%05d/telemetry", i) })
	got := b.take(k, 200, 15*time.Second)
	exactlyOnce(b, 200, got)
	parts := map[int]bool{}
	for _, m := range got {
		parts[m.Partition] = true
	}
	if len(parts) != 11 {
		t.Fatalf("messages from %d partitions, want 11", len(parts))
	}
}

func TestS1_20_ExclusiveResumesAtTheFirstUnacknowledged(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	k := b.consume(eventTest, "s", "c", pulsar.Exclusive)
	b.produce(eventTest, 0, 10, noKey)
	got := b.take(k, 10, 10*time.Second)
	b.must(k.AckCumulative(got[3].Raw.(pulsar.Message)))
	k.Close()
	k = b.consume(eventTest, "s", "c2", pulsar.Exclusive)
	defer k.Close()
	for i, m := range b.take(k, 6, 10*time.Second) {
		if string(m.Body) != fmt.Sprint(4+i) {
			t.Fatalf("resumed with %q at position %d, want %d", m.Body, i, 4+i)
		}
	}
}

func TestS1_21_ExclusiveSeesThePublishOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	k := b.consume(eventTest, "s", "c", pulsar.Exclusive)
	defer k.Close()
	b.publish(500, func(i int) string { return fmt.Sprintf("test/%d", i%7) })
	for i, m := range b.take(k, 500, 15*time.Second) {
		if string(m.Body) != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, m.Body)
		}
	}
}
