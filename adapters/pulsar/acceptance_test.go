package pulsar

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/core/engine"
)

func TestS1_01_TopicNames(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	for topic, ok := range map[string]bool{
		"persistent://t/n/x": true, "non-persistent://t/n/x": true, "x": true, "t/n/x": true,
		"foo://t/n/x": false, "persistent://t/x": false, "persistent:///n/x": false, "persistent://t//x": false, "persistent://t/n/": false,
	} {
		if got := r.lookup(topic); (got.Response == 1) != ok || !ok && (got.Code != 17 || got.Message == "") {
			t.Errorf("lookup %q: %+v", topic, got)
		}
		if got := r.partitions(topic, true); (got.Response == 0) != ok || !ok && got.Code != 17 {
			t.Errorf("partitions of %q: %+v", topic, got)
		}
	}
}

func TestS1_05_DefaultNamespace(t *testing.T) {
	b := newBed(t, setup{engine: func(c *engine.Config) { c.Defaults.Tenant, c.Defaults.Namespace = "acme", "out" }})
	r := dial(t, b)
	r.subscribe(subscription("short", "s"))
	if ts := b.Engine.Topics(); len(ts) != 1 || ts[0].Name().String() != "persistent://acme/out/short" {
		t.Errorf("topics %v", ts[0].Name())
	}
}

func TestS1_06_PartitionsCanBeLookedUp(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "event", 11)
	b.Topic(t, "event-test", 0)
	r := dial(t, b)
	if got := r.partitions("persistent://public/default/event", true); got.Partitions != 11 || got.Response != 0 {
		t.Errorf("event: %+v", got)
	}
	if got := r.partitions("persistent://public/default/event-partition-3", true); got.Partitions != 0 || got.Response != 0 {
		t.Errorf("a partition: %+v", got)
	}
	if got := r.partitions("persistent://public/default/event-test", true); got.Partitions != 0 || got.Response != 0 { // S1.7
		t.Errorf("event-test: %+v", got)
	}
	for i := range 12 {
		got := r.lookup(fmt.Sprintf("persistent://public/default/event-partition-%d", i))
		if (got.Response == 1) != (i < 11) || i == 11 && got.Code != 11 {
			t.Errorf("partition %d: %+v", i, got)
		}
	}
	if got := r.lookup("persistent://public/default/event-partition-03"); got.Response != 1 {
		t.Errorf("a topic with a leading zero is a topic: %+v", got)
	}
}

// A topic that somebody made under the name of a partition takes nothing from the partition's groups.
func TestI7_APartitionIsFoundBeforeATopicOfItsName(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "event-partition-1", 0)
	b.Topic(t, "event-partition-7", 0)
	event := b.Topic(t, "event", 2)
	c := b.client(t)
	send(t, producerOf(t, c, stock.ProducerOptions{Topic: "event-partition-1"}), "a")
	send(t, producerOf(t, c, stock.ProducerOptions{Topic: "event-partition-7"}), "b") // a partition of nothing
	if _, end := event.Partition(1).Bounds(); end != 1 {
		t.Errorf("partition 1 ends at %d, want 1", end)
	}
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "event-partition-7", SubscriptionInitialPosition: stock.SubscriptionPositionEarliest})
	expectOnly(t, k, "b")
}

func TestS1_12_AcknowledgedStaysAcknowledged(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	p := producerOf(t, c, stock.ProducerOptions{Topic: "acked", DisableBatching: true})
	o := stock.ConsumerOptions{Topic: "acked", AckWithResponse: true}
	k := consumerOf(t, c, o)
	send(t, p, "a", "b")
	if err := k.Ack(expect(t, k, "a", "b")[0]); err != nil {
		t.Fatal(err)
	}
	k.Close()
	expectOnly(t, consumerOf(t, c, o), "b")
}

func expectOnly(t testing.TB, k stock.Consumer, bodies ...string) {
	t.Helper()
	expect(t, k, bodies...)
	expectNothing(t, k)
}

func TestS1_15_OneOrderForAll(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	one := consumerOf(t, c, stock.ConsumerOptions{Topic: "event-test", SubscriptionName: "one"})
	two := consumerOf(t, c, stock.ConsumerOptions{Topic: "event-test", SubscriptionName: "two", Type: stock.Failover})
	var wg sync.WaitGroup
	for i := range 3 {
		p := producerOf(t, c, stock.ProducerOptions{Topic: "event-test", DisableBatching: true})
		wg.Go(func() { send(t, p, numbered(fmt.Sprint(i, "-"), 0, 50)...) })
	}
	wg.Wait()
	var order []string
	for _, m := range b.messages(t, "event-test", 0) {
		order = append(order, string(m.Body))
	}
	if len(order) != 150 {
		t.Fatalf("%d messages", len(order))
	}
	expect(t, one, order...) // S1.21: so does an exclusive one
	expect(t, two, order...)
}

func TestS1_18_SecondExclusiveIsBusy(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "excl"})
	for name, other := range map[string]stock.Client{"same connection": c, "another connection": b.client(t)} {
		_, err := other.Subscribe(stock.ConsumerOptions{Topic: "excl", SubscriptionName: "sub"})
		if err == nil || !strings.Contains(err.Error(), "ConsumerBusy") {
			t.Errorf("%s: %v", name, err)
		}
		_, err = other.Subscribe(stock.ConsumerOptions{Topic: "excl", SubscriptionName: "sub", Type: stock.Shared})
		if err == nil || !strings.Contains(err.Error(), "different type") {
			t.Errorf("%s, shared: %v", name, err)
		}
	}
	send(t, producerOf(t, c, stock.ProducerOptions{Topic: "excl"}), "a")
	expect(t, k, "a")
}

func TestS1_19_ExclusiveOverPartitions(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "excl11", 11)
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "excl11"})
	for i := range 11 {
		send(t, producerOf(t, c, stock.ProducerOptions{Topic: fmt.Sprint("excl11-partition-", i)}), fmt.Sprint(i))
	}
	seen := map[int32]bool{}
	for range 11 {
		seen[receive(t, k).ID().PartitionIdx()] = true
	}
	if len(seen) != 11 {
		t.Errorf("partitions %v", seen)
	}
}

func TestS1_20_ExclusiveResumes(t *testing.T) { TestResumesAtFirstUnacknowledged(t) }

// watcher records active-consumer changes by partition.
type watcher struct {
	mu     sync.Mutex
	active map[int32]bool
	told   int
}

func (w *watcher) BecameActive(_ stock.Consumer, _ string, p int32)   { w.set(p, true) }
func (w *watcher) BecameInactive(_ stock.Consumer, _ string, p int32) { w.set(p, false) }

func (w *watcher) set(p int32, active bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active == nil {
		w.active = map[int32]bool{}
	}
	w.active[p] = active
	w.told++
}

func (w *watcher) actives() (ps []int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, a := range w.active {
		if a {
			ps = append(ps, p)
		}
	}
	return ps
}

// failover makes consumers of these names, each of a client of its own.
func (b *bed) failover(t testing.TB, topic string, names ...string) ([]stock.Consumer, []*watcher) {
	var ks []stock.Consumer
	var ws []*watcher
	for _, n := range names {
		w := &watcher{}
		ks = append(ks, consumerOf(t, b.client(t), stock.ConsumerOptions{Topic: topic, Name: n, Type: stock.Failover, EventListener: w, AckWithResponse: true}))
		ws = append(ws, w)
	}
	return ks, ws
}

func TestS1_22_OneActiveOthersTold(t *testing.T) {
	b := newBed(t, setup{})
	ks, ws := b.failover(t, "event-test", "a", "b", "c")
	eventually(t, "all are told and one is active", func() bool {
		n := 0
		for _, w := range ws {
			w.mu.Lock()
			told := w.told > 0
			w.mu.Unlock()
			if !told {
				return false
			}
			n += len(w.actives())
		}
		return n == 1
	})
	send(t, producerOf(t, b.client(t), stock.ProducerOptions{Topic: "event-test"}), numbered("m", 0, 20)...)
	for i, k := range ks {
		if len(ws[i].actives()) == 1 {
			expect(t, k, numbered("m", 0, 20)...)
		} else {
			expectNothing(t, k)
		}
	}
}

func TestS1_23_FailoverSpreads(t *testing.T) {
	for _, c := range []struct {
		consumers int
		want      []int
	}{
		{3, []int{3, 4, 4}},
		{4, []int{2, 3, 3, 3}},                          // S1.27
		{12, []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, // S1.26
	} {
		t.Run(fmt.Sprint(c.consumers), func(t *testing.T) {
			b := newBed(t, setup{})
			b.Topic(t, "event", 11)
			var names []string
			for i := range c.consumers {
				names = append(names, fmt.Sprintf("c%02d", i))
			}
			_, ws := b.failover(t, "event", names...)
			var got []int
			eventually(t, fmt.Sprint("spread ", c.want, got), func() bool {
				got = nil
				for _, w := range ws {
					got = append(got, len(w.actives()))
				}
				slices.Sort(got)
				return slices.Equal(got, c.want)
			})
		})
	}
}

func TestS1_24_FailoverHandsOverTheTail(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "tail", 1)
	ks, _ := b.failover(t, "tail", "a", "b")
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "tail", DisableBatching: true})
	send(t, p, numbered("m", 0, 8)...)
	ms := expect(t, ks[0], numbered("m", 0, 8)...)
	if err := ks[0].AckCumulative(ms[2]); err != nil {
		t.Fatal(err)
	}
	ks[0].Close()
	send(t, p, "m8")
	expect(t, ks[1], numbered("m", 3, 9)...)
}

func TestS1_25_PriorityThenName(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "line", 1)
	conns, watchers := map[string]*raw{}, map[string]*watcher{}
	for name, priority := range map[string]int32{"b": 1, "a": 1, "z": 0} {
		r := dial(t, b)
		q := subscription("line-partition-0", "sub")
		q.SubType, q.ConsumerName, q.Priority = 2, name, priority
		r.subscribe(q)
		r.flow(q.ConsumerID, 1)
		conns[name], watchers[name] = r, r.watch(q.ConsumerID)
	}
	line := []string{"z", "a", "b"}
	for i, name := range line {
		eventually(t, name+" is active and nobody after it", func() bool {
			if len(watchers[name].actives()) != 1 {
				return false
			}
			return !slices.ContainsFunc(line[i+1:], func(o string) bool { return len(watchers[o].actives()) > 0 })
		})
		conns[name].close()
	}
}

func TestS1_29_CumulativeAck(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "cum", 2)
	c := b.client(t)
	o := stock.ConsumerOptions{Topic: "cum", Type: stock.Failover, AckWithResponse: true}
	k := consumerOf(t, c, o)
	var ms [2][]stock.Message
	for i := range 2 {
		send(t, producerOf(t, c, stock.ProducerOptions{Topic: fmt.Sprint("cum-partition-", i), DisableBatching: true}), numbered(fmt.Sprint("p", i, "-"), 1, 11)...)
	}
	for range 20 {
		m := receive(t, k)
		ms[m.ID().PartitionIdx()] = append(ms[m.ID().PartitionIdx()], m)
	}
	if err := k.AckCumulative(ms[0][6]); err != nil {
		t.Fatal(err)
	}
	k.Close()
	again := consumerOf(t, c, o)
	var got []string
	for range 13 {
		got = append(got, string(receive(t, again).Payload()))
	}
	slices.Sort(got)
	want := append(numbered("p0-", 8, 11), numbered("p1-", 1, 11)...) // S1.30: the other partition is untouched
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	expectNothing(t, again)
}

func TestS1_32_SharedIsFair(t *testing.T) {
	b := newBed(t, setup{})
	var ks []stock.Consumer
	for range 3 {
		ks = append(ks, consumerOf(t, b.client(t), stock.ConsumerOptions{Topic: "shared", Type: stock.Shared, ReceiverQueueSize: 1000}))
	}
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "shared", DisableBatching: true})
	for _, body := range numbered("m", 0, 300) {
		p.SendAsync(context.Background(), &stock.ProducerMessage{Payload: []byte(body)}, func(_ stock.MessageID, _ *stock.ProducerMessage, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	seen := map[string]int{}
	for i, k := range ks {
		n := 0
		for ; n < 90; n++ {
			seen[string(receive(t, k).Payload())]++
		}
		for ; n <= 110 && len(seen) < 300; n++ {
			ctx, cancel := context.WithTimeout(context.Background(), quiet)
			m, err := k.Receive(ctx)
			cancel()
			if err != nil {
				break
			}
			seen[string(m.Payload())]++
		}
		if n > 110 {
			t.Errorf("consumer %d got more than 110", i)
		}
	}
	if len(seen) != 300 || slices.Max(slices.Collect(maps.Values(seen))) != 1 {
		t.Errorf("%d messages", len(seen))
	}
}

func TestS1_33_DisconnectRedelivers(t *testing.T) {
	b := newBed(t, setup{})
	a := b.client(t)
	one := consumerOf(t, a, stock.ConsumerOptions{Topic: "drop", Type: stock.Shared})
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "drop", DisableBatching: true})
	send(t, p, numbered("m", 0, 20)...)
	expect(t, one, numbered("m", 0, 20)...)
	two := consumerOf(t, b.client(t), stock.ConsumerOptions{Topic: "drop", Type: stock.Shared, NackRedeliveryDelay: 20 * time.Millisecond})
	expectNothing(t, two)
	a.Close()
	ms := expect(t, two, numbered("m", 0, 20)...)
	for _, m := range ms {
		if m.RedeliveryCount() != 0 {
			t.Fatalf("redelivery count %d after a plain disconnect", m.RedeliveryCount())
		}
	}
	two.Nack(ms[3])
	if m := receive(t, two); string(m.Payload()) != "m3" || m.RedeliveryCount() != 1 {
		t.Errorf("%s %d", m.Payload(), m.RedeliveryCount())
	}
}

func TestS1_34_SharedIgnoresCumulative(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	q := subscription("shcum", "sub")
	q.SubType = 1
	r.subscribe(q)
	r.flow(q.ConsumerID, 10)
	send(t, producerOf(t, b.client(t), stock.ProducerOptions{Topic: "shcum", DisableBatching: true}), "a", "b")
	r.message()
	m := r.message()
	if got := r.ackWithResponse(q.ConsumerID, 1, m.ID); got.HasCode {
		t.Errorf("response %+v", got)
	}
	r.close()
	expectOnly(t, consumerOf(t, b.client(t), stock.ConsumerOptions{Topic: "shcum", Type: stock.Shared}), "a", "b")
}

func TestS1_49_TwoSubscriptionsBothReceive(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	one := consumerOf(t, c, stock.ConsumerOptions{Topic: "cast", SubscriptionName: "one"})
	two := consumerOf(t, c, stock.ConsumerOptions{Topic: "cast", SubscriptionName: "two"})
	send(t, producerOf(t, c, stock.ProducerOptions{Topic: "cast"}), numbered("m", 0, 5)...)
	expectOnly(t, one, numbered("m", 0, 5)...)
	expectOnly(t, two, numbered("m", 0, 5)...)
}
