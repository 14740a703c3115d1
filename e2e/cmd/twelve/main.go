// Command twelve measures what a twelfth Failover consumer is worth on a topic of eleven partitions: nothing. Each consumer works
// through one message at a time, so throughput is bounded by the partitions; 11, 12, 12, 11 consumers in one run, each on
// a backlog of its own, so that a drifting machine favours neither.
//
// Run it from the repository's root: go run ./e2e/cmd/twelve
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

var (
	count = flag.Int("count", 5500, "messages of each measurement")
	hold  = flag.Duration("hold", 20*time.Millisecond, "how long a consumer works on a message: slow enough for the machine not to matter")
	order = []int{11, 12, 12, 11}
)

const topic = "persistent://acme/out/event"

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "twelve:", err)
		os.Exit(1)
	}
}

// Spec: ACCEPTANCE S1.48: throughput with 12 consumers equals throughput with 11, within 5 %
func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	bin, err := gateway.Build(ctx, ".", "e2e/.work")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "twelve-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g, err := gateway.New(bin, dir, gateway.Event)
	if err != nil {
		return err
	}
	defer g.Close()
	if err := g.Start(ctx); err != nil {
		return err
	}
	rates := map[int]float64{}
	for round, n := range order {
		rate, idle, err := measure(ctx, g, n, fmt.Sprint("s", round))
		if err != nil {
			return err
		}
		fmt.Printf("%d consumers: %.0f messages a second, %d of them idle\n", n, rate, idle)
		rates[n] += rate / 2
	}
	fmt.Printf("12 consumers do %.1f %% of what 11 do (%d messages each time, %s of work on each)\n", 100*rates[12]/rates[11], *count, *hold)
	return nil
}

// measure lets n consumers of a new group work through a backlog. The keys are spread evenly: the same number of messages lies in
// each partition.
func measure(ctx context.Context, g *gateway.Gateway, n int, group string) (rate float64, idle int, err error) {
	var ks []pulsar.Consumer
	for i := range n {
		c, err := clients.DialPulsar(g.Pulsar)
		if err != nil {
			return 0, 0, err
		}
		defer c.Close()
		k, err := c.Subscribe(pulsar.ConsumerOptions{
			Topic: topic, SubscriptionName: group, Name: fmt.Sprintf("c%02d", i), Type: pulsar.Failover, ReceiverQueueSize: 100,
		})
		if err != nil {
			return 0, 0, err
		}
		ks = append(ks, k)
	}
	ctx, all := context.WithCancel(ctx)
	defer all()
	took, counts := make(chan int, n), make([]int, n)
	var wg sync.WaitGroup
	for i, k := range ks {
		wg.Go(func() {
			for {
				m, err := k.Receive(ctx)
				if err != nil {
					return
				}
				time.Sleep(*hold) // the work
				k.AckCumulative(m)
				select {
				case took <- i:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	start := time.Now()
	if err := publish(ctx, g); err != nil {
		return 0, 0, err
	}
	for range *count {
		select {
		case i := <-took:
			counts[i]++
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
	rate = float64(*count) / time.Since(start).Seconds()
	all()
	wg.Wait()
	for _, c := range counts {
		if c == 0 {
			idle++
		}
	}
	return rate, idle, nil
}

// publish sends to each partition in turn, much faster than the consumers are.
func publish(ctx context.Context, g *gateway.Gateway) error {
	c, err := clients.DialPulsar(g.Pulsar)
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := clients.NewPulsarProducer(c, topic, func(o *pulsar.ProducerOptions) {
		o.MaxPendingMessages = *count
		next := -1
		o.MessageRouter = func(_ *pulsar.ProducerMessage, t pulsar.TopicMetadata) int {
			next++
			return next % int(t.NumPartitions())
		}
	})
	if err != nil {
		return err
	}
	defer p.Close()
	ms := make([]clients.Message, *count)
	for i := range ms {
		ms[i].Body = []byte("x")
	}
	return p.SendAll(ctx, ms)
}
