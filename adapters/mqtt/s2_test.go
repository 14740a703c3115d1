package mqtt

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/adapters/mqtt/wire"
)

// take receives n messages, acknowledges them and returns their bodies.
func (c *client) take(n int) (bodies []string) {
	c.t.Helper()
	for range n {
		m := c.receive()
		if !strings.HasPrefix(m, "PUBLISH ") {
			c.fail("want a message, got %s", m)
		}
		f := parseFields(m)
		bodies = append(bodies, f.get("body"))
		if id := f.get("id"); id != "" {
			c.send("PUBACK id=" + id)
		}
	}
	return bodies
}

// publish sends n messages numbered from 0 and waits for their acks.
func (c *client) publish(n int, topic string) {
	c.t.Helper()
	for i := range n {
		c.send(fmt.Sprintf("PUBLISH %s qos=1 id=%d body=%d", topic, i+1, i))
		c.expect(fmt.Sprintf("PUBACK %d", i+1))
	}
}

func (b *bed) members(n int, filter string, options ...string) (cs []*client) {
	b.t.Helper()
	for i := range n {
		c := b.connected(fmt.Sprintf("m%d-%s", i, strings.ReplaceAll(filter, "/", "_")), wire.V5, options...)
		c.send("SUBSCRIBE id=1 f=" + filter + ",1")
		c.expect("SUBACK 1 01")
		cs = append(cs, c)
	}
	return cs
}

// onceEach fails unless the bodies are 0 to n-1, each once.
func onceEach(t *testing.T, n int, lists ...[]string) {
	t.Helper()
	seen := map[string]int{}
	for _, l := range lists {
		for _, body := range l {
			seen[body]++
		}
	}
	for i := range n {
		if seen[fmt.Sprint(i)] != 1 {
			t.Errorf("message %d came %d times", i, seen[fmt.Sprint(i)])
		}
	}
	if len(seen) != n {
		t.Errorf("%d different messages, want %d", len(seen), n)
	}
}

func TestS2_1_OrdinarySubscribersEachGetACopy(t *testing.T) {
	b := newBed(t, nil)
	subs := b.members(3, "t")
	b.connected("p", wire.V5).publish(1, "t")
	for _, s := range subs {
		onceEach(t, 1, s.take(1))
		s.quiet()
	}
}

// S2.2, S2.4 (round robin), S2.11
func TestS2_2_OneMemberOfAShareGetsIt(t *testing.T) {
	for _, filter := range []string{"t", "devices/+/telemetry"} { // a group of its own, and the group of the topic
		t.Run(strings.ReplaceAll(filter, "/", "_"), func(t *testing.T) {
			b := newBed(t, nil)
			subs := b.members(3, "$share/g/"+filter)
			b.connected("p", wire.V5).publish(300, strings.ReplaceAll(filter, "+", "7"))
			var all [][]string
			for _, s := range subs {
				all = append(all, s.take(100)) // an equal share each
			}
			onceEach(t, 300, all...)
			for _, s := range subs {
				s.quiet()
			}
		})
	}
}

func TestS2_5_OwnCopyAndTheGroupsCopy(t *testing.T) {
	b := newBed(t, nil)
	c := b.connected("c", wire.V5)
	c.send("SUBSCRIBE id=1 subid=1 f=t,1")
	c.expect("SUBACK 1 01")
	c.send("SUBSCRIBE id=2 subid=2 f=$share/g/t,1")
	c.expect("SUBACK 2 01")
	b.connected("p", wire.V5).publish(1, "t")
	a, z := c.receive(), c.receive()
	if both := a + z; !strings.Contains(both, "subid=1") || !strings.Contains(both, "subid=2") {
		c.fail("want one delivery for each subscription")
	}
	c.quiet()
}

func TestS2_6_TwoShareGroupsEachGetAll(t *testing.T) {
	b := newBed(t, nil)
	g1, g2 := b.members(2, "$share/g1/t"), b.members(2, "$share/g2/t")
	b.connected("p", wire.V5).publish(100, "t")
	for _, g := range [][]*client{g1, g2} {
		onceEach(t, 100, g[0].take(50), g[1].take(50))
	}
}

// S2.9 is in testdata/scripts/shared.txt; that no group appears is here.
func TestS2_9_ARefusedShareMakesNoGroup(t *testing.T) {
	b := newBed(t, nil)
	c := b.connected("c", wire.V5)
	c.send("SUBSCRIBE id=1 f=$share//t,1 f=$share/g,1 f=$share/g/,1 f=$share/a+b/t,1 f=$share/a#/t,1")
	c.expect("SUBACK 1 8f 8f 8f 8f 8f")
	for _, topic := range b.Engine.Topics() {
		if gs := topic.Groups(); len(gs) > 0 {
			t.Fatalf("%s has a group %s", topic.Name(), gs[0].Name())
		}
	}
}

func TestS2_10_ANewMemberGetsItsShare(t *testing.T) {
	b := newBed(t, nil)
	subs := b.members(3, "$share/g/t")
	p := b.connected("p", wire.V5)
	p.publish(30, "t")
	for _, s := range subs {
		s.take(10)
	}
	late := b.connected("late", wire.V5)
	late.send("SUBSCRIBE id=1 f=$share/g/t,1")
	late.expect("SUBACK 1 01")
	subs = append(subs, late)
	p.publish(40, "t")
	var all [][]string
	for _, s := range subs {
		all = append(all, s.take(10))
	}
	onceEach(t, 40, all...)
}

// S2.14, S2.15: only a PUBACK consumes.
func TestS2_14_UnacknowledgedGoesToAnotherMember(t *testing.T) {
	b := newBed(t, nil)
	first := b.members(1, "$share/g/devices/+/telemetry")[0]
	b.connected("p", wire.V5).publish(5, "devices/7/telemetry")
	for range 5 {
		first.receive() // and no PUBACK
	}
	second := b.connected("second", wire.V5)
	second.send("SUBSCRIBE id=1 f=$share/g/devices/+/telemetry,1")
	second.expect("SUBACK 1 01")
	second.quiet()
	first.conn.Close()
	onceEach(t, 5, second.take(5))
	second.quiet()
}

// The core group of a topic keeps what nobody was there for. A filter's own group ends with its last session, as a shared
// subscription does.
func TestS2_20_AGroupKeepsMessagesForItsNextMember(t *testing.T) {
	for filter, kept := range map[string]int{"devices/+/telemetry": 12, "devices/7/telemetry": 0} {
		b := newBed(t, nil)
		share := "$share/g/" + filter
		first := b.members(1, share)[0]
		first.send("DISCONNECT")
		first.expect("CLOSED")
		b.connected("p", wire.V5).publish(12, "devices/7/telemetry")
		next := b.connected("next", wire.V5)
		next.send("SUBSCRIBE id=1 f=" + share + ",1")
		next.expect("SUBACK 1 01")
		onceEach(t, kept, next.take(kept))
		next.quiet()
	}
}

// A whole covered topic: the MQTT member shares the core group of that name with whoever else is in it.
func TestShareJoinsTheCoreGroupOfTheTopic(t *testing.T) {
	b := newBed(t, nil)
	b.members(1, "$share/acme-sub/devices/+/telemetry")
	b.members(1, "$share/part/devices/7/telemetry")
	topic := b.Topic(t, "persistent://acme/out/event", 0)
	for _, name := range []string{"acme-sub", "part@devices/7/telemetry"} {
		if g, err := topic.Group(name); err != nil || len(g.Consumers()) != 1 {
			t.Errorf("group %s: %v", name, err)
		}
	}
}

// A member's window is its receive maximum.
func TestShareRespectsTheReceiveMaximum(t *testing.T) {
	b := newBed(t, nil)
	c := b.members(1, "$share/g/t", "receive-max=2")[0]
	b.connected("p", wire.V5).publish(6, "t")
	a, z := c.receive(), c.receive()
	c.quiet()
	c.send("PUBACK id=" + parseFields(z).get("id"))
	c.send("PUBACK id=" + parseFields(a).get("id"))
	if got := c.take(4); strings.Join(got, "") != "2345" {
		c.fail("%v", got)
	}
}

// A group that ends under its members is not silence: they are told and may come again.
func TestADeletedGroupEndsItsMembers(t *testing.T) {
	b := newBed(t, nil)
	c := b.members(1, "$share/g/devices/+/telemetry")[0]
	if err := b.Topic(t, "persistent://acme/out/event", 0).DeleteGroup("g"); err != nil {
		t.Fatal(err)
	}
	c.expect("DISCONNECT 83")
	c.expect("CLOSED")
}

// Members that come at the same moment, to a group that does not exist yet, all get in, and the group works.
func TestMembersThatComeAtOnce(t *testing.T) {
	for range 10 {
		b := newBed(t, nil)
		p := b.connected("p", wire.V5)
		p.publish(3, "devices/7/telemetry")
		const n = 4
		var cs []*client
		for i := range n {
			cs = append(cs, b.connected(fmt.Sprintf("m%d", i), wire.V5))
		}
		var wg sync.WaitGroup
		for _, c := range cs {
			wg.Go(func() {
				c.send("SUBSCRIBE id=1 f=$share/g/devices/+/telemetry,1")
				c.expect("SUBACK 1 01")
			})
		}
		wg.Wait()
		p.publish(8*n, "devices/7/telemetry")
		got := make(chan string, 16*n)
		for _, c := range cs { // who gets how many is dealt in turns, and not asked here
			wg.Go(func() {
				for m := c.read(time.Minute); strings.HasPrefix(m, "PUBLISH "); m = c.read(time.Minute) {
					f := parseFields(m)
					got <- f.get("body")
					c.send("PUBACK id=" + f.get("id"))
				}
			})
		}
		var all []string
		for len(all) < 8*n {
			select {
			case body := <-got:
				all = append(all, body)
			case <-time.After(10 * time.Second):
				t.Fatalf("%d of %d messages came", len(all), 8*n)
			}
		}
		onceEach(t, 8*n, all)
		b.stop()
		wg.Wait()
		b.Stop(t)
	}
}
