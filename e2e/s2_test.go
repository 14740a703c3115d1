package e2e

import (
	"fmt"
	"testing"
	"time"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// S2: ordinary and shared MQTT subscriptions. The topics are unmatched, so they meet in the catch-all topic.

func TestS2_1_OrdinarySubscribersEachGetACopy(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	subs := []*clients.MQTT{b.mqttSub("a", "t"), b.mqttSub("b", "t"), b.mqttSub("c", "t")}
	b.must(b.mqtt("p").Send(b.ctx, clients.Message{Topic: "t", Body: []byte("one")}))
	for _, s := range subs {
		if m := b.take(s, 1, 5*time.Second)[0]; string(m.Body) != "one" || m.Topic != "t" {
			t.Fatalf("got %q on %q", m.Body, m.Topic)
		}
	}
	for _, s := range subs {
		b.quiet(s, 100*time.Millisecond)
	}
}

func TestS2_2_OneMemberOfAShareGetsIt(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	subs := []*clients.MQTT{b.mqttSub("a", "$share/g/t"), b.mqttSub("b", "$share/g/t"), b.mqttSub("c", "$share/g/t")}
	p := b.mqtt("p")
	const n = 60
	for i := range n {
		b.must(p.Send(b.ctx, clients.Message{Topic: "t", Body: fmt.Appendf(nil, "%d", i)}))
	}
	exactlyOnce(b, n, b.drain(n, subs...))
}

func TestS2_6_TwoShareGroupsEachGetAll(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	g1 := []*clients.MQTT{b.mqttSub("a", "$share/g1/t"), b.mqttSub("b", "$share/g1/t")}
	g2 := []*clients.MQTT{b.mqttSub("c", "$share/g2/t"), b.mqttSub("d", "$share/g2/t")}
	b.publish(100, func(int) string { return "t" })
	exactlyOnce(b, 100, b.drain(100, g1...))
	exactlyOnce(b, 100, b.drain(100, g2...))
}

func TestS2_7_ShareNameAndFilterAreSplitAtTheSecondSlash(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	s := b.mqttSub("a", "$share/order-processors/retail/orders/#")
	topics := []string{"retail/orders", "retail/orders/eu/1", "retail/other"}
	b.publish(3, func(i int) string { return topics[i] })
	got := b.take(s, 2, 5*time.Second)
	b.quiet(s, 200*time.Millisecond)
	seen := map[string]bool{got[0].Topic: true, got[1].Topic: true}
	if !seen["retail/orders"] || !seen["retail/orders/eu/1"] {
		t.Fatalf("got topics %v", seen)
	}
}

func TestS2_8_ShareWithSingleLevelWildcard(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	s := b.mqttSub("a", "$share/g/a/+/c")
	topics := []string{"a/b/c", "a/b/d/c", "a/c", "a/x/c"}
	b.publish(4, func(i int) string { return topics[i] })
	for _, m := range b.take(s, 2, 5*time.Second) {
		if m.Topic != "a/b/c" && m.Topic != "a/x/c" {
			t.Fatalf("got %q", m.Topic)
		}
	}
	b.quiet(s, 200*time.Millisecond)
}

// drain reads n messages of all subscribers together, then makes sure that no more come.
func (b *bed) drain(n int, subs ...*clients.MQTT) []clients.Message {
	b.Helper()
	all := make(chan clients.Message)
	stop := make(chan struct{})
	defer close(stop)
	for _, s := range subs {
		go func() { // ends with the drain
			for {
				select {
				case m := <-s.C():
					select {
					case all <- m:
					case <-stop:
						return
					}
				case <-stop:
					return
				}
			}
		}()
	}
	got := b.take(channel(all), n, 10*time.Second)
	b.quiet(channel(all), 200*time.Millisecond)
	return got
}

type channel chan clients.Message

func (c channel) C() <-chan clients.Message { return c }
func (channel) Close()                      {}

// exactlyOnce wants the numbered bodies 0 … n-1, each once.
func exactlyOnce(b *bed, n int, got []clients.Message) {
	b.Helper()
	count := map[string]int{}
	for _, m := range got {
		count[string(m.Body)]++
	}
	for i := range n {
		if c := count[fmt.Sprint(i)]; c != 1 {
			b.Errorf("message %d came %d times", i, c)
		}
	}
	if len(got) != n {
		b.Errorf("%d messages, want %d", len(got), n)
	}
}
