package e2e

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

var killRounds = flag.Int("kills", 4, "how often TestKillLoop kills the gateway")

// loopEach is what a device sends in each round.
const (
	loopDevices = 6
	loopEach    = 25
)

// I1, I2, I7: SIGKILL at random moments, soon after the start or in the middle of work, again and again: under MQTT devices
// and Pulsar and RocketMQ producers that only reconnect and send again what nobody acknowledged. Consumers of both worlds
// get every acknowledged message, in order, and offsets have no gap.
func TestI1_I2_I7_KillLoop(t *testing.T) {
	b := newBed(t, gateway.Event, time.Minute+time.Duration(*killRounds)*20*time.Second)
	s := samples(b)
	seen := map[string]*firstSeen{"pulsar": newFirstSeen(), "rocketmq": newFirstSeen()}
	killedReaders(b, seen, &ackLog{through: map[int][]ackedAt{}}, t)

	work := make(chan struct{})
	others := b.steadyProducers(work)
	for round := range *killRounds {
		devices := make(chan struct{})
		go func() { // awaited below
			defer close(devices)
			b.loopDevices(s, round)
		}()
		select { // the scenario's own rhythm: work, then death
		case <-time.After(time.Duration(rand.Int64N(int64(time.Second)))):
		case <-b.ctx.Done():
			t.Fatal(b.ctx.Err())
		}
		b.must(b.Kill())
		b.must(b.Start(b.ctx))
		<-devices
	}
	close(work)
	want := map[string]int{}
	for range 2 {
		p := <-others
		want[p.key] = p.acked
	}
	for d := range loopDevices {
		want[clients.DeviceName(d)] = *killRounds * loopEach
	}
	for world, f := range seen {
		b.eventually(100*time.Second, world+" has everything", func() bool { return f.total() >= sum(want) })
		f.judge(t, world, want)
	}
	denseOffsets(b)
}

// loopDevices sends each device's messages of a round and returns when all are acknowledged.
func (b *bed) loopDevices(s clients.Samples, round int) {
	var wg sync.WaitGroup
	for d := range loopDevices {
		wg.Go(func() {
			dev := clients.Device{Addr: b.MQTT, ClientID: clients.DeviceName(d), Window: 8, Pace: 10 * time.Millisecond}
			err := dev.Run(b.ctx, loopEach, func(i int) clients.Publication { return s.Publication(d, round*loopEach+i) }, nil)
			if err != nil {
				b.Errorf("%s: %v", dev.ClientID, err)
			}
		})
	}
	wg.Wait()
}
