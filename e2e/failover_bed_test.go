package e2e

import (
	"fmt"
	"slices"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
)

// actives hears the notices of many consumers: who says to be active on which partition.
type actives struct {
	mu       sync.Mutex
	owner    map[int32]string // partition → consumer name
	inactive map[string]int   // consumer name → notices that said inactive
}

type listener struct {
	a    *actives
	name string
}

func (l listener) BecameActive(_ pulsar.Consumer, _ string, p int32) {
	l.a.mu.Lock()
	defer l.a.mu.Unlock()
	l.a.owner[p] = l.name
}

func (l listener) BecameInactive(_ pulsar.Consumer, _ string, p int32) {
	l.a.mu.Lock()
	defer l.a.mu.Unlock()
	l.a.inactive[l.name]++
	if l.a.owner[p] == l.name {
		delete(l.a.owner, p)
	}
}

// shares returns how many partitions each consumer says to own, ascending; names without one count 0.
func (a *actives) shares(n int) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	count := map[string]int{}
	for _, o := range a.owner {
		count[o]++
	}
	s := make([]int, 0, n)
	for _, c := range count {
		s = append(s, c)
	}
	for len(s) < n {
		s = append(s, 0)
	}
	slices.Sort(s)
	return s
}

// failover attaches n consumers, each on a connection of its own, with names c00, c01 …
func (b *bed) failover(topic, sub string, n int) ([]*clients.PulsarConsumer, *actives) {
	b.Helper()
	a := &actives{owner: map[int32]string{}, inactive: map[string]int{}}
	var ks []*clients.PulsarConsumer
	for i := range n {
		name := fmt.Sprintf("c%02d", i)
		ks = append(ks, b.consumeOn(b.newPulsar(), topic, sub, name, pulsar.Failover, func(o *pulsar.ConsumerOptions) {
			o.EventListener = listener{a, name}
		}))
	}
	return ks, a
}
