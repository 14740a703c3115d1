package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

const topic = "persistent://acme/out/event"

// read attaches what the main job has at its back end: three Pulsar Failover consumers on acme-sub with cumulative
// acknowledgement, and a RocketMQ orderly group of two. everything returns when both worlds have total messages.
func read(ctx context.Context, g *gateway.Gateway, total int64) (everything func() error, stop func(), err error) {
	var closers []func()
	stop = func() {
		for _, c := range closers {
			c()
		}
	}
	done := make(chan struct{}, 2)
	var pulsarSeen, rocketSeen atomic.Int64
	watch := func(k clients.Consumer, seen *atomic.Int64) {
		closers = append(closers, k.Close)
		go func() { // ends with the measurement
			for {
				select {
				case <-k.C():
					if seen.Add(1) == total {
						done <- struct{}{}
					}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	for i := range 3 {
		pc, err := clients.DialPulsar(g.Pulsar)
		if err != nil {
			return nil, stop, err
		}
		closers = append(closers, pc.Close)
		k, err := clients.NewPulsarConsumer(pc, topic, "acme-sub", pulsar.Failover, true, func(o *pulsar.ConsumerOptions) {
			o.Name, o.AckWithResponse = fmt.Sprintf("backend-%d", i), false // its default
		})
		if err != nil {
			return nil, stop, err
		}
		watch(k, &pulsarSeen)
	}
	for range 2 {
		k, err := clients.NewRocketMQConsumer(g.NameServer, "event", "acme-rmq", true, "")
		if err != nil {
			return nil, stop, err
		}
		watch(k, &rocketSeen)
	}
	return func() error {
		for range 2 {
			select {
			case <-done:
			case <-ctx.Done():
				return fmt.Errorf("readers have %d and %d of %d messages: %w", pulsarSeen.Load(), rocketSeen.Load(), total, ctx.Err())
			}
		}
		return nil
	}, stop, nil
}
