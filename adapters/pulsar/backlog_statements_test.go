package pulsar

import (
	"fmt"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/core/engine"
)

// S1.10: whatever the type, each message is consumed and acknowledged by one consumer.
func TestS1_10_EachMessageAtOneConsumer(t *testing.T) {
	for name, kind := range map[string]stock.SubscriptionType{"failover": stock.Failover, "shared": stock.Shared, "key_shared": stock.KeyShared} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, setup{})
			var cs []stock.Consumer
			for range 3 {
				cs = append(cs, consumerOf(t, b.client(t), stock.ConsumerOptions{Topic: "ten", Type: kind}))
			}
			p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "ten", DisableBatching: true})
			const n = 90
			for i := range n {
				sendKeyed(t, p, fmt.Sprint("key-", i))
			}
			for key, who := range collectAll(t, cs, n, true) {
				if len(who) != 1 {
					t.Errorf("%s came to consumers %v", key, who)
				}
			}
			for _, c := range cs {
				expectNothing(t, c)
			}
			eventually(t, "all is acknowledged", func() bool { return b.info(t, "ten").Backlog == 0 })
		})
	}
}

func (b *bed) info(t testing.TB, topic string) engine.GroupInfo {
	t.Helper()
	g, err := b.group(t, topic, "sub")
	if err != nil {
		t.Fatal(err)
	}
	return g.Info()
}

// S1.44, S1.45, S1.46: the backlog is what is not acknowledged, delivered or not; it returns to zero; what a consumer never
// acknowledges stays, grows old, and is what comes again when it restarts, and nothing else.
func TestS1_44_45_46_BacklogIsWhatIsNotAcknowledged(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "lag", Type: stock.Shared})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "lag", DisableBatching: true})
	send(t, p, numbered("m", 0, 30)...)
	kept := map[string]bool{"m7": true, "m19": true}
	var ms []stock.Message
	for range 30 {
		ms = append(ms, receive(t, k))
	}
	if i := b.info(t, "lag"); i.Backlog != 30 || i.InFlight != 30 {
		t.Errorf("delivered, not acknowledged: %+v", i)
	}
	for _, m := range ms {
		if !kept[string(m.Payload())] {
			if err := k.Ack(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "two are left", func() bool { i := b.info(t, "lag"); return i.Backlog == 2 && i.InFlight == 2 })
	first := b.info(t, "lag").OldestUnacked
	eventually(t, "they grow old", func() bool { return b.info(t, "lag").OldestUnacked > first+10*time.Millisecond })
	k.Close()
	k = consumerOf(t, c, stock.ConsumerOptions{Topic: "lag", Type: stock.Shared})
	for range 2 {
		m := receive(t, k)
		if !kept[string(m.Payload())] {
			t.Errorf("%s comes again", m.Payload())
		}
		if err := k.Ack(m); err != nil {
			t.Fatal(err)
		}
	}
	expectNothing(t, k)
	eventually(t, "the backlog is empty", func() bool { return b.info(t, "lag").Backlog == 0 })
}
