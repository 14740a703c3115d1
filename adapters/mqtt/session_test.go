package mqtt

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/adapters/mqtt/wire"
)

// bothVersions runs f for 3.1.1 and 5.
func bothVersions(t *testing.T, f func(t *testing.T, v wire.Version)) {
	for _, v := range []wire.Version{wire.V311, wire.V5} {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) { f(t, v) })
	}
}

// gate lets a test hold appends to journals.
type gate struct {
	once    sync.Once
	closed  chan struct{}
	arrived chan string
}

func (g *gate) open() { g.once.Do(func() { close(g.closed) }) }

func (b *bed) gate(holds func(journal string) bool) *gate {
	g := &gate{closed: make(chan struct{}), arrived: make(chan string, 100)}
	b.t.Cleanup(g.open) // a test that failed must not hold the engine
	b.Journals.OnAppend(func(name string, _ []byte) error {
		if holds(name) {
			g.arrived <- name
			<-g.closed
		}
		return nil
	})
	return g
}

func everything(string) bool { return true }

// Spec: MQTT5 3.3.4 [MQTT-3.3.4-1]; MQTT3 3.3.4 [MQTT-3.3.4-1]
func TestI1_NoPubackBeforeTheBlockIsDurable(t *testing.T) {
	bothVersions(t, func(t *testing.T, v wire.Version) {
		b := newBed(t, nil)
		c := b.connected("c", v)
		g := b.gate(everything)
		c.send("PUBLISH t qos=1 id=1 body=x")
		<-g.arrived // the block is on its way to the disk, not there
		c.quiet()
		g.open()
		c.expect("PUBACK 1")
	})
}

func TestI1_WhatCouldNotBeWrittenIsNotAcknowledged(t *testing.T) {
	bothVersions(t, func(t *testing.T, v wire.Version) {
		b := newBed(t, nil)
		c := b.connected("c", v)
		c.send("PUBLISH t qos=1 id=1 body=x")
		c.expect("PUBACK 1")
		b.Journals.OnAppend(func(string, []byte) error { return errors.New("disk is gone") })
		c.send("PUBLISH t qos=1 id=2 body=y")
		if v == wire.V5 {
			c.expect("PUBACK 2 80")
			return
		}
		c.expect("CLOSED")
	})
}

// Two journals, of which the first is slow: the acks of the second wait for their turn.
func TestPubacksLeaveInOrder(t *testing.T) {
	bothVersions(t, func(t *testing.T, v wire.Version) {
		b := newBed(t, nil)
		c, watcher := b.connected("c", v), b.connected("watcher", v)
		watcher.send("SUBSCRIBE id=1 f=devices/19/telemetry,0")
		watcher.expect("SUBACK 1 00")
		c.send("PUBLISH slow qos=1 id=1 body=x") // creates the topic
		c.expect("PUBACK 1")
		g := b.gate(func(journal string) bool { return strings.HasPrefix(journal, "small") })
		for i := range 20 {
			topic := "slow"
			if i%3 == 1 {
				topic = fmt.Sprintf("devices/%d/telemetry", i)
			}
			c.send(fmt.Sprintf("PUBLISH %s qos=1 id=%d body=x", topic, 100+i))
		}
		<-g.arrived
		watcher.expect("PUBLISH devices/19/telemetry qos=0 body=x") // the second journal is through
		g.open()
		for i := range 20 {
			c.expect(fmt.Sprintf("PUBACK %d", 100+i))
		}
	})
}

// The ring itself, without luck: completed backwards, acks leave forwards.
func TestRingEmitsFromItsHead(t *testing.T) {
	r := ring{limit: 20}
	for id := range 20 {
		if _, ok := r.push(uint16(id + 1)); !ok {
			t.Fatal("full at", id)
		}
	}
	if _, ok := r.push(99); ok {
		t.Fatal("beyond its limit")
	}
	for token := uint64(19); token > 0; token-- {
		r.finish(token, wire.Success)
		if dst, _ := r.emit(nil, wire.V5); len(dst) > 0 {
			t.Fatal("an ack overtook the first")
		}
	}
	r.finish(0, wire.NotAuthorized)
	dst, failed := r.emit(nil, wire.V5)
	if failed || len(dst) != 5+19*4 || dst[4] != byte(wire.NotAuthorized) || dst[8] != 2 {
		t.Fatalf("%x", dst)
	}
	r.finish(7, wire.Success) // a receipt that comes twice harms nobody
	if token, ok := r.push(5); !ok || token != 20 {
		t.Fatal(token, ok)
	}
	r.finish(20, wire.UnspecifiedError)
	if dst, failed := r.emit(nil, wire.V311); len(dst) > 0 || !failed {
		t.Fatal("version 3 has no way to say no")
	}
}

// Spec: MQTT5 3.3.4 [MQTT-3.3.4-7] [MQTT-3.3.4-9]
func TestReceiveMaximum(t *testing.T) {
	bothVersions(t, func(t *testing.T, v wire.Version) {
		b := newBed(t, func(c *Config) { c.ReceiveMaximum = 10 })
		c := b.connected("c", v)
		c.send("PUBLISH t qos=1 id=1000 body=x")
		c.expect("PUBACK 1000")
		g := b.gate(everything)
		for i := range 11 {
			c.send(fmt.Sprintf("PUBLISH t qos=1 id=%d body=x", i+1))
		}
		<-g.arrived
		if v == wire.V5 {
			c.expect("DISCONNECT 93")
			c.expect("CLOSED")
			g.open()
			return
		}
		// Version 3 knows no such limit: the eleventh waits in the socket.
		g.open()
		for i := range 11 {
			c.expect(fmt.Sprintf("PUBACK %d", i+1))
		}
	})
}

// Spec: MQTT5 3.1.4 [MQTT-3.1.4-3]; MQTT3 3.1.4 [MQTT-3.1.4-2]
func TestTakeOverWaitsUntilTheOldOneIsGone(t *testing.T) {
	b := newBed(t, nil)
	var clients []*client
	for i := range 5 {
		c := b.client(fmt.Sprintf("connection %d", i), wire.V5)
		c.send("CONNECT id=same clean")
		c.expect("CONNACK 00 ...")
		c.send("SUBSCRIBE id=1 f=t,1 f=$share/g/t,1")
		c.expect("SUBACK 1 01 01")
		clients = append(clients, c)
	}
	for _, c := range clients[:4] {
		c.expect("DISCONNECT 8e")
		c.expect("CLOSED")
	}
	last := clients[4]
	last.send("PUBLISH t qos=1 id=1 body=x")
	got := map[string]bool{last.receive(): true, last.receive(): true, last.receive(): true}
	if !got["PUBACK 1"] || !got["PUBLISH t qos=1 id=1 body=x"] || !got["PUBLISH t qos=1 id=2 body=x"] {
		last.fail("%v", got)
	}
	last.quiet()
	if n := b.server.tree.count.Load(); n != 1 {
		t.Fatal("subscriptions left behind:", n)
	}
}

// A device whose network stutters connects many times at once: one connection stays, and it works.
func TestManyConnectAtOnceUnderOneClientID(t *testing.T) {
	b := newBed(t, nil)
	const n = 20
	served, ended := make(chan *client, n), make(chan *client, n)
	for i := range n {
		c := b.client(fmt.Sprintf("connection %d", i), wire.V311)
		c.send("CONNECT id=same clean")
		go func() {
			if got := c.read(10 * time.Second); got != "CONNACK 00" {
				t.Errorf("not let in: %s", got)
			}
			c.send("PINGREQ")
			for got := c.read(time.Minute); got == "PINGRESP"; got = c.read(time.Minute) {
				served <- c
			}
			ended <- c
		}()
	}
	gone := map[*client]bool{}
	for range n - 1 {
		gone[<-ended] = true
	}
	for c := <-served; gone[c]; c = <-served { // the one that stays is served, now or soon
	}
	b.server.clients.mu.Lock()
	left := len(b.server.clients.by)
	b.server.clients.mu.Unlock()
	if left != 1 {
		t.Errorf("%d sessions are left", left)
	}
	b.stop() // the last one ends with the server
	<-ended
}

// Spec: MQTT5 3.1.2.10 [MQTT-3.1.2-22]; MQTT3 3.1.2.10 [MQTT-3.1.2-24]
func TestKeepAliveEndsTheSilent(t *testing.T) {
	bothVersions(t, func(t *testing.T, v wire.Version) {
		b := newBed(t, nil)
		c, free := b.connected("c", v, "keepalive=10"), b.connected("free", v)
		tick := func(n int) {
			for range n {
				b.server.tickOnce(nil)
			}
		}
		tick(14)
		c.quiet() // any packet counts
		tick(15)
		c.quiet()
		tick(18)
		if v == wire.V5 {
			c.expect("DISCONNECT 8d")
		}
		c.expect("CLOSED")
		free.quiet() // keep alive 0 is none
	})
}

func TestServerKeepAlive(t *testing.T) {
	b := newBed(t, func(c *Config) { c.MaxKeepAlive = time.Minute })
	c := b.client("c", wire.V5)
	c.send("CONNECT id=c clean")
	if got := c.receive(); !strings.Contains(got, "server-keepalive=60") {
		c.fail("%s", got)
	}
}

func TestSilentConnectionIsClosed(t *testing.T) {
	b := newBed(t, func(c *Config) { c.ConnectTimeout = 30 * time.Millisecond })
	silent, half := b.client("silent", wire.V5), b.client("half", wire.V5)
	half.send("HEX 10 0d 0004 4d51")
	silent.expect("CLOSED")
	half.expect("CLOSED")
}

// At shutdown what is on its way to the disk is acknowledged, then clients are told.
func TestShutdownAcknowledgesThenSaysGoodbye(t *testing.T) {
	bothVersions(t, func(t *testing.T, v wire.Version) {
		b := newBed(t, nil)
		c := b.connected("c", v)
		c.send("PUBLISH t qos=1 id=1 body=x")
		c.expect("PUBACK 1")
		g := b.gate(everything)
		c.send("PUBLISH t qos=1 id=2 body=x")
		<-g.arrived
		stopped := make(chan struct{})
		go func() { defer close(stopped); b.stop() }()
		g.open()
		c.expect("PUBACK 2")
		if v == wire.V5 {
			c.expect("DISCONNECT 8b")
		}
		c.expect("CLOSED")
		<-stopped
	})
}

// A subscriber that does not read loses QoS 0 first; one that takes no QoS 1 is told and closed. Others go on.
func TestSlowSubscribers(t *testing.T) {
	b := newBed(t, func(c *Config) { c.MaxQueued, c.MaxInflight = 20, 5 })
	slow, good, p := b.connected("slow", wire.V5), b.connected("good", wire.V5), b.connected("p", wire.V5)
	slow.send("SUBSCRIBE id=1 f=t,1")
	slow.expect("SUBACK 1 01")
	good.send("SUBSCRIBE id=1 f=t,1")
	good.expect("SUBACK 1 01")
	for i := range 26 {
		p.send(fmt.Sprintf("PUBLISH t qos=1 id=%d body=%d", i+1, i))
		p.expect(fmt.Sprintf("PUBACK %d", i+1))
		m := good.receive()
		if !strings.HasSuffix(m, fmt.Sprintf("body=%d", i)) {
			good.fail("%s", m)
		}
		good.send("PUBACK id=" + parseFields(m).get("id"))
	}
	for i := range 5 {
		slow.expect(fmt.Sprintf("PUBLISH t qos=1 id=%d body=%d", i+1, i))
	}
	slow.expect("DISCONNECT 97")
	slow.expect("CLOSED")
}

// What waits behind the window comes in order when there is room.
func TestQueueBehindTheWindow(t *testing.T) {
	b := newBed(t, nil)
	s, p := b.connected("s", wire.V5, "receive-max=3"), b.connected("p", wire.V311)
	s.send("SUBSCRIBE id=1 f=t,1")
	s.expect("SUBACK 1 01")
	for i := range 100 {
		p.send(fmt.Sprintf("PUBLISH t qos=1 id=%d body=%d", i+1, i))
	}
	for i := range 100 {
		p.expect(fmt.Sprintf("PUBACK %d", i+1))
	}
	for i := range 100 {
		m := s.receive()
		if !strings.HasSuffix(m, fmt.Sprintf("body=%d", i)) {
			s.fail("want body %d", i)
		}
		s.send("PUBACK id=" + parseFields(m).get("id"))
	}
	s.quiet()
}

func TestConfigNamesEveryFault(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	c.Bind, c.MaxTopic, c.V311Shared = "", 70000, "maybe"
	err := c.Validate()
	for _, want := range []string{"bind: empty", "max_topic: 70000", "v311_shared"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
