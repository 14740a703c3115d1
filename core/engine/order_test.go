package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// Many producers write to many partitions at once; what each wrote to one partition comes back in its order.
func TestI3_OrderPerProducerAndPartition(t *testing.T) {
	const producers, partitions, each = 8, 3, 300
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", partitions)
	_, in := join(t, begin(t, topic, "g", engine.Latest), "c", core.Exclusive, producers*each)
	var wg sync.WaitGroup
	for n := range producers {
		wg.Go(func() {
			p := newPublisher(bed.Engine)
			for i := range each {
				if err := p.Publish(topic.Partition(int32(i%partitions)), message("k", fmt.Sprintf("%d %d", n, i)), 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	last := map[string]int{}
	for range producers * each {
		d := receive(t, in.got, "delivery")
		n, i, _ := strings.Cut(body(t, bed.Engine, d), " ")
		at := fmt.Sprintf("producer %s partition %d", n, d.Partition.Index())
		var now int
		fmt.Sscan(i, &now)
		if before, seen := last[at]; seen && now != before+partitions || !seen && now != int(d.Partition.Index()) {
			t.Fatalf("%s: %d after %d", at, now, before)
		}
		last[at] = now
	}
}

// A failover group changes hands in the middle; each key goes on in its order, from the first unacknowledged message.
func TestI4_OrderPerKeyOverAHandOver(t *testing.T) {
	const keys, each = 5, 40
	bed := enginetest.New(t, nil)
	topic := bed.Topic(t, "event", 0)
	g := begin(t, topic, "g", engine.Latest)
	first, a := join(t, g, "a", core.Failover, keys*each)
	p := newPublisher(bed.Engine)
	for i := range keys * each {
		if err := p.Publish(topic.Partition(0), message(fmt.Sprint("key-", i%keys), fmt.Sprint(i)), 0); err != nil {
			t.Fatal(err)
		}
	}
	const acked = 73
	next := make([]int, keys)
	for i := range keys {
		next[i] = i
	}
	take := func(in *inbox, n int) {
		t.Helper()
		for range n {
			d := receive(t, in.got, "delivery")
			var i int
			fmt.Sscan(body(t, bed.Engine, d), &i)
			if key := fmt.Sprint("key-", i%keys); string(d.Entry.Key) != key || i != next[i%keys] {
				t.Fatalf("key %s: message %d, want %d", d.Entry.Key, i, next[i%keys])
			}
			next[i%keys] = i + keys
		}
	}
	take(a, keys*each)
	first.AckThrough(0, acked)
	first.Leave()
	for i := range keys { // the unacknowledged tail comes again
		next[i] = i + (acked-i+keys-1)/keys*keys
	}
	_, b := join(t, g, "b", core.Failover, keys*each)
	take(b, keys*each-acked)
}
