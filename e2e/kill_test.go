package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

const kills = 5

// The kill: the fleet at work while the gateway is killed five times. Devices, consumers and the two other producers are
// stock clients that only reconnect.
func TestKill(t *testing.T) {
	b := newBed(t, gateway.Event, 6*time.Minute)
	s := samples(b)
	seen := map[string]*firstSeen{"pulsar": newFirstSeen(), "rocketmq": newFirstSeen()}
	acks := &ackLog{through: map[int][]ackedAt{}}
	killedReaders(b, seen, acks, t)

	work := make(chan struct{})
	go func() { // awaited below
		defer close(work)
		runFleet(b, s, 250*time.Millisecond, nil)
	}()
	others := b.steadyProducers(work)
	for range kills {
		select {
		case <-work:
			t.Fatal("the fleet was done before the last kill; the test proves less than it says")
		case <-time.After(4 * time.Second): // the scenario's own rhythm: work, then death
		}
		now := time.Now()
		b.must(b.Kill())
		// What the clients had fetched before may still come out of their queues; only what comes after that is judged.
		b.eventually(20*time.Second, "the consumers' queues run dry", func() bool { return acks.silentFor(300 * time.Millisecond) })
		acks.killed(now)
		dry := time.Now()
		b.must(b.Start(b.ctx))
		t.Logf("killed; ready again after %s", time.Since(dry).Round(time.Millisecond))
	}
	want := fleetWant()
	for range 2 {
		p := <-others
		want[p.key] = p.acked
	}
	<-work
	for world, f := range seen {
		b.eventually(100*time.Second, world+" has everything", func() bool { return f.total() >= sum(want) })
		f.judge(t, world, want)
	}
	denseOffsets(b)
}

type produced struct {
	key   string
	acked int
}

// steadyProducers are one Pulsar and one RocketMQ producer that send until the work is done, each message again until
// its receipt or send result comes. Both tell how many were acknowledged.
func (b *bed) steadyProducers(work <-chan struct{}) <-chan produced {
	b.Helper()
	pp, err := clients.NewPulsarProducer(b.newPulsar(), event, nil)
	b.must(err)
	b.Cleanup(pp.Close)
	out := make(chan produced, 2)
	for key, p := range map[string]clients.Producer{"pulsar-producer": pp, "rocketmq-producer": b.rocketmqProducer("event")} {
		go func() { // ends with the work
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; {
				select {
				case <-work:
					out <- produced{key, n}
					return
				case <-tick.C:
				}
				if p.Send(b.ctx, clients.Message{Key: key, Body: fmt.Appendf(nil, "%d ", n)}) == nil {
					n++
				}
			}
		}()
	}
	return out
}

// killedReaders are the fleet's readers, whose Pulsar part writes down when each cumulative ack was answered.
func killedReaders(b *bed, seen map[string]*firstSeen, acks *ackLog, t *testing.T) {
	b.Helper()
	for _, name := range []string{"backend-0", "backend-1", "backend-2"} {
		k, err := clients.NewPulsarConsumer(b.newPulsar(), event, "acme-sub", pulsar.Failover, false, func(o *pulsar.ConsumerOptions) { o.Name = name })
		b.must(err)
		b.Cleanup(k.Close)
		go func() { // ends with the test
			last := map[int]clients.Message{}
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case m := <-k.C():
					if why := acks.mayCome(m); why != "" {
						t.Errorf("partition %d offset %d came again: %s", m.Partition, m.Offset, why)
					}
					seen["pulsar"].add(m.Key, number(m.Body))
					last[m.Partition] = m
				case <-tick.C:
					for p, m := range last {
						if k.AckCumulative(m.Raw.(pulsar.Message)) == nil { // answered: AckWithResponse is on
							acks.answered(m)
						}
						delete(last, p)
					}
				case <-b.ctx.Done():
					return
				}
			}
		}()
	}
	for range 2 {
		k := b.rocketmqConsumer("event", "acme-rmq", true)
		go seen["rocketmq"].read(b, k) // ends with the test
	}
}

// ackLog knows up to which offset each partition was acknowledged, and when that was answered.
type ackLog struct {
	mu      sync.Mutex
	through map[int][]ackedAt
	floor   map[int]int64 // partition → offset acknowledged more than two seconds before the last kill
	last    time.Time     // when a message came last
}

func (a *ackLog) silentFor(d time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.last) > d
}

type ackedAt struct {
	offset int64
	at     time.Time
}

func (a *ackLog) answered(m clients.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.through[m.Partition] = append(a.through[m.Partition], ackedAt{m.Offset, time.Now()})
}

func (a *ackLog) killed(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.floor == nil {
		a.floor = map[int]int64{}
	}
	for p, list := range a.through {
		for _, e := range list {
			if e.at.Before(at.Add(-2 * time.Second)) {
				a.floor[p] = max(a.floor[p], e.offset+1)
			}
		}
	}
}

// mayCome notes that a message came; it is empty unless the message was acknowledged long enough before a kill.
func (a *ackLog) mayCome(m clients.Message) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = time.Now()
	if m.Offset < a.floor[m.Partition] {
		return "its ack was answered more than two seconds before a kill"
	}
	return ""
}

// denseOffsets reads every partition from its start: entry ids without a gap, since each publish is one entry of one.
func denseOffsets(b *bed) {
	b.Helper()
	k := b.consume(event, "auditor", "c", pulsar.Exclusive)
	defer k.Close()
	p, err := clients.NewPulsarProducer(b.pulsar(), event, nil)
	b.must(err)
	defer p.Close()
	for i := range 11 * 20 { // so that each partition has a last message to wait for
		b.must(p.Send(b.ctx, clients.Message{Key: clients.DeviceName(i), Body: []byte("mark")}))
	}
	at := map[int][]int64{}
	marks := map[int]bool{}
	for len(marks) < 11 {
		m := b.take(k, 1, 30*time.Second)[0]
		at[m.Partition] = append(at[m.Partition], m.Offset)
		if string(m.Body) == "mark" {
			marks[m.Partition] = true
		}
	}
	for p, offsets := range at {
		if !slices.IsSorted(offsets) {
			b.Errorf("partition %d: offsets are not ascending", p)
		}
		for i, o := range offsets {
			if o != int64(i) {
				b.Errorf("partition %d: position %d has offset %d", p, i, o)
				break
			}
		}
	}
}
