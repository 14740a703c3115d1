package pulsar

import (
	"testing"

	stock "github.com/apache/pulsar-client-go/pulsar"
)

func TestProduceAndConsume(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "plain"})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "plain", DisableBatching: true})
	send(t, p, numbered("m", 0, 10)...)
	for _, m := range expect(t, k, numbered("m", 0, 10)...) {
		if err := k.Ack(m); err != nil {
			t.Fatal(err)
		}
	}
}
