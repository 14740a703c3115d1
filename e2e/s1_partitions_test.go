package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// S1, partitions. S1.16 is kept by what is not here: no test compares the order of two devices.

func TestS1_13_OneDeviceOnePartition(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	k := b.consume(event, "s", "c", pulsar.Exclusive)
	defer k.Close()
	b.publish(10_000, func(i int) string { return fmt.Sprintf("devices/dev-%05d/telemetry", i%100) })
	at := map[string]int{}
	got := b.take(k, 10_000, 30*time.Second)
	exactlyOnce(b, 10_000, got)
	for _, m := range got {
		if p, ok := at[m.Key]; ok && p != m.Partition {
			t.Fatalf("device %s is in partitions %d and %d", m.Key, p, m.Partition)
		}
		at[m.Key] = m.Partition
	}
	if len(at) != 100 {
		t.Fatalf("%d devices, want 100", len(at))
	}
}

func TestS1_14_DevicesSpreadOverPartitions(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	k := b.consume(event, "s", "c", pulsar.Exclusive)
	defer k.Close()
	b.publish(1000, func(i int) string { return fmt.Sprintf("devices/%x/telemetry", (i+1)*2654435761) })
	count := map[int]int{}
	for _, m := range b.take(k, 1000, 20*time.Second) {
		count[m.Partition]++
	}
	for p := range 11 {
		if count[p] < 50 {
			t.Errorf("partition %d holds %d of 1000 devices: %v", p, count[p], count)
		}
	}
}

func TestS1_15_OneTotalOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	var wg sync.WaitGroup
	for p := range 3 {
		wg.Go(func() {
			d := clients.Device{Addr: b.MQTT, ClientID: fmt.Sprintf("p%d", p), Window: 4, NoReconnect: true}
			if err := d.Run(b.ctx, 200, func(i int) clients.Publication {
				return clients.Publication{Topic: fmt.Sprintf("test/%d", p), Payload: fmt.Appendf(nil, "%d/%d", p, i)}
			}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var first []clients.Message
	for _, kind := range []pulsar.SubscriptionType{pulsar.Exclusive, pulsar.Failover} {
		k := b.consume(eventTest, fmt.Sprint("s", kind), "c", kind)
		got := b.take(k, 600, 20*time.Second)
		k.Close()
		for i, m := range got {
			if m.Offset != int64(i) {
				t.Fatalf("message %d has entry id %d: storage order is not delivery order", i, m.Offset)
			}
		}
		if first == nil {
			first = got
		}
		for i := range got {
			if string(got[i].Body) != string(first[i].Body) {
				t.Fatalf("message %d is %q for one consumer and %q for another", i, first[i].Body, got[i].Body)
			}
		}
	}
}

// Golden vectors: murmur3 of the key, sign bit cleared, modulo 11. They must never change, so they are written out here.
func TestS1_17_KeysStayInTheirPartition(t *testing.T) {
	t.Parallel()
	golden := map[string]int{
		"dev-1": 7, "dev-2": 1, "dev-3": 10, "dev-42": 10, "dev-1001": 2, "sensor-a": 0, "sensor-b": 7,
		"vdevo170000000000001": 3, "1": 4, "2": 8, "naïve-ü": -1, // the last one only has to stay where it was
	}
	b := newBed(t, gateway.Event, time.Minute)
	var keys []string
	for k := range golden {
		keys = append(keys, k)
	}
	k := b.consume(event, "s", "c", pulsar.Exclusive)
	b.publish(len(keys), func(i int) string { return "devices/" + keys[i] + "/telemetry" })
	before := b.take(k, len(keys), 10*time.Second)
	k.Close()
	b.restart(b.Stop)
	k = b.consume(event, "s2", "c", pulsar.Exclusive)
	defer k.Close()
	b.publish(len(keys), func(i int) string { return "devices/" + keys[i] + "/telemetry" })
	at := map[string]int{}
	for _, m := range append(before, b.take(k, 2*len(keys), 10*time.Second)...) {
		if p, ok := at[m.Key]; ok && p != m.Partition {
			t.Errorf("key %q moved from partition %d to %d", m.Key, p, m.Partition)
		}
		at[m.Key] = m.Partition
		if want := golden[m.Key]; want >= 0 && m.Partition != want {
			t.Errorf("key %q is in partition %d, want %d", m.Key, m.Partition, want)
		}
	}
}

// Every producing client with its own hash: under placement by key they meet in one partition per key.
func TestS1_13_PlacementByKeyWhateverTheClient(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	pp, err := clients.NewPulsarProducer(b.pulsar(), event, nil)
	b.must(err)
	defer pp.Close()
	rp, err := clients.NewRocketMQProducer(b.NameServer, "event")
	b.must(err)
	defer rp.Close()
	key := func(i int) string { return fmt.Sprintf("device-%05d", i) }
	for i := range 60 {
		b.must(pp.Send(b.ctx, clients.Message{Key: key(i), Body: []byte("pulsar")}))
		b.must(rp.Send(b.ctx, clients.Message{Key: key(i), Body: []byte("rocketmq")}))
	}
	b.publish(60, func(i int) string { return "devices/" + key(i) + "/telemetry" })
	k := b.consume(event, "s", "c", pulsar.Exclusive)
	defer k.Close()
	at := map[string]int{}
	for _, m := range b.take(k, 180, 20*time.Second) {
		if !strings.HasPrefix(m.Key, "device-") {
			t.Fatalf("key %q", m.Key)
		}
		if p, ok := at[m.Key]; ok && p != m.Partition {
			t.Errorf("key %q of %s is in partition %d, elsewhere in %d", m.Key, m.Body, m.Partition, p)
		}
		at[m.Key] = m.Partition
	}
}
