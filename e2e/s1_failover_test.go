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

// S1, Failover.

func TestS1_22_OneActiveTheOthersAreToldSo(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	ks, a := b.failover(eventTest, "s", 3)
	b.eventually(10*time.Second, "one active consumer and two notices that say inactive", func() bool {
		return slices.Equal(a.shares(3), []int{0, 0, 1}) && func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return len(a.inactive) >= 2
		}()
	})
	a.mu.Lock()
	var active string
	for _, o := range a.owner {
		active = o
	}
	a.mu.Unlock()
	b.produce(eventTest, 0, 30, noKey)
	for i, k := range ks {
		if fmt.Sprintf("c%02d", i) == active {
			exactlyOnce(b, 30, b.take(k, 30, 10*time.Second))
		}
	}
	for i, k := range ks {
		if fmt.Sprintf("c%02d", i) != active {
			b.quiet(k, 100*time.Millisecond)
		}
	}
}

func failoverShares(t *testing.T, consumers int, want []int) {
	t.Parallel()
	b := newBed(t, gateway.Event, 90*time.Second)
	ks, a := b.failover(event, "s", consumers)
	b.eventually(20*time.Second, fmt.Sprint("partitions shared as ", want), func() bool { return slices.Equal(a.shares(consumers), want) })
	b.publish(1100, func(i int) string { return fmt.Sprintf("devices/dev-%05d/telemetry", i%110) })
	owner := map[int]string{}
	got := b.take(tagged(b, ks), 1100, 20*time.Second)
	exactlyOnce(b, 1100, got)
	for _, m := range got {
		if o, ok := owner[m.Partition]; ok && o != m.Tag {
			t.Errorf("partition %d was served to %s and %s", m.Partition, o, m.Tag)
		}
		owner[m.Partition] = m.Tag
	}
	count := map[string]int{}
	for _, o := range owner {
		count[o]++
	}
	var shares []int
	for _, c := range count {
		shares = append(shares, c)
	}
	for len(shares) < consumers {
		shares = append(shares, 0)
	}
	if slices.Sort(shares); !slices.Equal(shares, want) {
		t.Errorf("messages came from partitions shared as %v, want %v", shares, want)
	}
}

// tagged merges consumers and writes the receiver's number into Tag.
func tagged[K clients.Consumer](b *bed, ks []K) channel {
	all := make(channel)
	for i, k := range ks {
		go func() { // ends with the test
			for {
				select {
				case m := <-k.C():
					m.Tag = fmt.Sprint(i)
					select {
					case all <- m:
					case <-b.ctx.Done():
						return
					}
				case <-b.ctx.Done():
					return
				}
			}
		}()
	}
	return all
}

func TestS1_23_ThreeConsumersShareElevenPartitions(t *testing.T) {
	failoverShares(t, 3, []int{3, 4, 4})
}
func TestS1_26_TheTwelfthConsumerIsIdle(t *testing.T) {
	failoverShares(t, 12, []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
}
func TestS1_27_FourConsumersShareElevenPartitions(t *testing.T) {
	failoverShares(t, 4, []int{2, 3, 3, 3})
}

func TestS1_24_FailoverHandsOverTheTail(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	ks, a := b.failover(eventTest, "s", 2)
	b.eventually(10*time.Second, "one active", func() bool { return slices.Equal(a.shares(2), []int{0, 1}) })
	master, next := ks[0], ks[1]
	a.mu.Lock()
	for _, o := range a.owner {
		if o == "c01" {
			master, next = next, master
		}
	}
	a.mu.Unlock()
	b.produce(eventTest, 0, 8, noKey)
	got := b.take(master, 8, 10*time.Second)
	b.must(master.AckCumulative(got[2].Raw.(pulsar.Message)))
	master.Close()
	b.produce(eventTest, 8, 4, noKey)
	for i, m := range b.take(next, 9, 15*time.Second) {
		if string(m.Body) != fmt.Sprint(3+i) {
			t.Fatalf("position %d after the hand-over is %q, want %d", i, m.Body, 3+i)
		}
		if m.Redelivery != 0 {
			t.Errorf("redelivery count %d, want 0 in Failover", m.Redelivery)
		}
	}
}

func TestS1_28_OrderPerDeviceAcrossMasterChanges(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	order := newFirstSeen()
	const devices, each = 20, 100
	done := make(chan error, 1)
	go func() { // ends with the publishing, awaited below
		d := clients.Device{Addr: b.MQTT, ClientID: "p", Window: 8, Pace: 2 * time.Millisecond, NoReconnect: true}
		done <- d.Run(b.ctx, devices*each, func(i int) clients.Publication {
			return clients.Publication{Topic: fmt.Sprintf("devices/dev-%d/telemetry", i%devices), Payload: fmt.Appendf(nil, "%d", i/devices)}
		}, nil)
	}()
	var wg sync.WaitGroup
	for round := range 6 { // members come and go; every join moves partitions
		pc := b.newPulsar()
		k, err := clients.NewPulsarConsumer(pc, event, "acme-sub", pulsar.Failover, true, func(o *pulsar.ConsumerOptions) {
			o.Name = fmt.Sprintf("m%d", 9-round)
		})
		b.must(err)
		defer k.Close()
		wg.Go(func() { order.read(b, k) })
		if round%2 == 1 {
			k.Close()
		}
		b.eventually(20*time.Second, "some progress in this membership", func() bool { return order.total() >= (round+1)*devices*each/8 })
	}
	b.must(<-done)
	b.eventually(30*time.Second, "every message at some consumer", func() bool { return order.total() == devices*each })
	want := map[string]int{}
	for d := range devices {
		want[fmt.Sprintf("dev-%d", d)] = each
	}
	order.judge(t, "pulsar", want)
}

func TestS1_29_CumulativeAckLeavesTheRest(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	k := b.consume(eventTest, "s", "a", pulsar.Failover)
	b.produce(eventTest, 1, 10, noKey)
	got := b.take(k, 10, 10*time.Second)
	b.must(k.AckCumulative(got[6].Raw.(pulsar.Message)))
	k.Close()
	k = b.consume(eventTest, "s", "b", pulsar.Failover)
	defer k.Close()
	for i, m := range b.take(k, 3, 10*time.Second) {
		if string(m.Body) != fmt.Sprint(8+i) {
			t.Fatalf("got m%s, want m%d", m.Body, 8+i)
		}
	}
	b.quiet(k, 200*time.Millisecond)
}

func TestS1_30_CumulativeAckIsPerPartition(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	k := b.consume(event, "s", "a", pulsar.Failover)
	keys := []string{"dev-42", "dev-1001"} // partitions 10 and 2
	b.publish(20, func(i int) string { return "devices/" + keys[i%2] + "/telemetry" })
	var last clients.Message
	for _, m := range b.take(k, 20, 10*time.Second) {
		if m.Partition == 10 {
			last = m
		}
	}
	b.must(k.AckCumulative(last.Raw.(pulsar.Message)))
	k.Close()
	k = b.consume(event, "s", "b", pulsar.Failover)
	defer k.Close()
	for _, m := range b.take(k, 10, 10*time.Second) {
		if m.Key != "dev-1001" {
			t.Fatalf("got %s of partition %d, which was acknowledged", m.Body, m.Partition)
		}
	}
	b.quiet(k, 200*time.Millisecond)
}
