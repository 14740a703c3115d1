package mqtt

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"isthmus/adapters/mqtt/wire"
)

// Several publishers, several subscribers: everybody gets everything once, and each publisher's order.
func TestFanOutKeepsOrder(t *testing.T) {
	const publishers, subscribers, each = 4, 5, 500
	b := newBed(t, nil)
	var subs []*client
	for i := range subscribers {
		v := []wire.Version{wire.V311, wire.V5}[i%2]
		c := b.connected(fmt.Sprintf("s%d", i), v)
		c.send(fmt.Sprintf("SUBSCRIBE id=1 f=load/+,%d", i%2))
		c.expect(fmt.Sprintf("SUBACK 1 0%d", i%2))
		subs = append(subs, c)
	}
	var wg sync.WaitGroup
	for p := range publishers {
		c := b.connected(fmt.Sprintf("p%d", p), wire.V311)
		wg.Go(func() {
			for i := range each {
				c.send(fmt.Sprintf("PUBLISH load/%d qos=1 id=%d body=%d", p, i+1, i))
			}
		})
		wg.Go(func() {
			for i := range each {
				c.expect(fmt.Sprintf("PUBACK %d", i+1))
			}
		})
	}
	for _, s := range subs {
		wg.Go(func() {
			next := map[string]int{}
			for range publishers * each {
				m := parseFields(s.receive())
				if len(m.words) < 2 || m.get("body") != fmt.Sprint(next[m.words[1]]) {
					s.fail("out of order: want %v", next)
				}
				next[m.words[1]]++
				if id := m.get("id"); id != "" {
					s.send("PUBACK id=" + id)
				}
			}
		})
	}
	wg.Wait()
}

// A subscriber that reads late: QoS 0 of plain subscriptions is dropped, QoS 1 and what a group gave waits and
// comes, all in order.
func TestASlowSocketIsCaughtUp(t *testing.T) {
	b := newBed(t, func(c *Config) { c.MaxOutput = 256 << 10 })
	body := strings.Repeat("x", 20<<10)
	s := b.connected("s", wire.V5)
	s.send("SUBSCRIBE id=1 f=plain/one,1 f=plain/zero,0 f=$share/g/shared,0")
	s.expect("SUBACK 1 01 00 00")
	p := b.connected("p", wire.V5)
	const n = 300
	for i := range n {
		for j, topic := range []string{"plain/one", "plain/zero", "shared"} {
			p.send(fmt.Sprintf("PUBLISH %s qos=1 id=%d body=%d-%s", topic, 3*i+j+1, i, body))
			p.expect(fmt.Sprintf("PUBACK %d", 3*i+j+1))
		}
	}
	got := map[string]int{}
	for got["plain/one"] < n || got["shared"] < n {
		m := parseFields(s.receive())
		if len(m.words) < 2 || m.words[0] != "PUBLISH" {
			s.fail("after %v", got)
		}
		topic := m.words[1]
		number, _, _ := strings.Cut(m.get("body"), "-")
		if topic != "plain/zero" && number != fmt.Sprint(got[topic]) {
			s.fail("%s: got %s, want %d", topic, number, got[topic])
		}
		got[topic]++
		if id := m.get("id"); id != "" {
			s.send("PUBACK id=" + id)
		}
	}
	if got["plain/zero"] == n {
		t.Log("the socket took everything: QoS 0 was never behind")
	}
}
