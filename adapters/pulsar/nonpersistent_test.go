package pulsar

import (
	"context"
	"fmt"
	"testing"

	stock "github.com/apache/pulsar-client-go/pulsar"
)

// As TestNonPersistentTopic of the Go client: to work with one is to work with any; a subscription leaves nothing behind.
func TestNonPersistentTopics(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	const topic = "non-persistent://public/default/event"
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
	p := producerOf(t, c, stock.ProducerOptions{Topic: topic})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 100 {
		if _, err := p.Send(ctx, &stock.ProducerMessage{Payload: []byte(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
		m, err := k.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.Payload()); got != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, got)
		}
		if err := k.Ack(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
}
