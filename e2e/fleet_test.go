package e2e

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

const (
	fleetDevices = 500
	fleetEach    = 100
)

// fleetReaders are what the main job has at its back end: three Pulsar Failover consumers with cumulative acks on
// acme-sub, and a RocketMQ orderly push group of two.
func fleetReaders(b *bed, see func(world string, m clients.Message)) {
	b.Helper()
	watch := func(world string, k clients.Consumer) {
		go func() { // ends with the test
			for {
				select {
				case m := <-k.C():
					see(world, m)
				case <-b.ctx.Done():
					return
				}
			}
		}()
	}
	for i := range 3 {
		k, err := clients.NewPulsarConsumer(b.newPulsar(), event, "acme-sub", pulsar.Failover, true, func(o *pulsar.ConsumerOptions) {
			o.Name = fmt.Sprintf("backend-%d", i)
		})
		b.must(err)
		b.Cleanup(k.Close)
		watch("pulsar", k)
	}
	for range 2 {
		watch("rocketmq", b.rocketmqConsumer("event", "acme-rmq", true))
	}
}

// The fleet: all of each device's messages, in order, at both back ends, none twice.
func TestFleet(t *testing.T) {
	b := newBed(t, gateway.Event, 3*time.Minute)
	s := samples(b)
	seen := map[string]*firstSeen{"pulsar": newFirstSeen(), "rocketmq": newFirstSeen()}
	index := map[string]int{}
	for d := range fleetDevices {
		index[clients.DeviceName(d)] = d
	}
	fleetReaders(b, func(world string, m clients.Message) {
		n := number(m.Body)
		seen[world].add(m.Key, n)
		if d, ok := index[m.Key]; !ok || !bytes.Equal(m.Body, s.Body(d, n)) {
			t.Errorf("%s: %s message %d: body differs (%d bytes)", world, m.Key, n, len(m.Body))
		}
		if m.Props["deviceId"] != m.Key || m.Tag != "telemetry" {
			t.Errorf("%s: %s message %d: deviceId %q tag %q", world, m.Key, n, m.Props["deviceId"], m.Tag)
		}
	})
	start := time.Now()
	runFleet(b, s, 0, nil)
	b.Logf("%d messages published in %s", fleetDevices*fleetEach, time.Since(start).Round(time.Millisecond))
	for world, f := range seen {
		b.eventually(100*time.Second, world+" has everything", func() bool { return f.total() >= fleetDevices*fleetEach || t.Failed() })
		t.Log(world, "after", time.Since(start).Round(time.Millisecond))
		f.judge(t, world, fleetWant())
		if f.copies > 0 {
			t.Errorf("%s: %d messages came twice, and nothing had failed", world, f.copies)
		}
	}
	if u, err := b.Usage(); err == nil {
		t.Logf("gateway: %s CPU, %d MiB resident, %d MiB at most", u.CPU, u.RSS>>20, u.Peak>>20)
	}
}

func fleetWant() map[string]int {
	want := map[string]int{}
	for d := range fleetDevices {
		want[clients.DeviceName(d)] = fleetEach
	}
	return want
}

func samples(b *bed) clients.Samples {
	b.Helper()
	s, err := clients.LoadSamples("testdata/payloads")
	b.must(err)
	return s
}

// runFleet publishes with every device at once and returns when all is acknowledged.
func runFleet(b *bed, s clients.Samples, pace time.Duration, acked func(d, i int)) {
	b.Helper()
	var wg sync.WaitGroup
	for d := range fleetDevices {
		wg.Go(func() {
			dev := clients.Device{Addr: b.MQTT, ClientID: clients.DeviceName(d), Window: 8, Pace: pace, NoReconnect: pace == 0}
			err := dev.Run(b.ctx, fleetEach, func(i int) clients.Publication { return s.Publication(d, i) }, func(i int) {
				if acked != nil {
					acked(d, i)
				}
			})
			if err != nil {
				b.Errorf("%s: %v", dev.ClientID, err)
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}
