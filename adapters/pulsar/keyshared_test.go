package pulsar

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

func keyShared(topic string) stock.ConsumerOptions {
	return stock.ConsumerOptions{Topic: topic, Type: stock.KeyShared, NackRedeliveryDelay: 50 * time.Millisecond}
}

// sticky declares the slots of one key, or of all keys but that one.
func sticky(t testing.TB, topic, key string, others bool) stock.ConsumerOptions {
	t.Helper()
	slot := int(core.KeySlot([]byte(key)))
	ranges := []int{slot, slot + 1} // the client takes none of one slot
	if others {
		ranges = []int{0, slot - 1, slot + 2, core.KeySlots - 1}
	}
	policy, err := stock.NewKeySharedPolicySticky(ranges)
	if err != nil {
		t.Fatal(err)
	}
	o := keyShared(topic)
	o.KeySharedPolicy = policy
	return o
}

func sendKeyed(t testing.TB, p stock.Producer, keys ...string) {
	t.Helper()
	for i, k := range keys {
		sendMessage(t, p, &stock.ProducerMessage{Payload: fmt.Append(nil, k, "#", i), Key: k})
	}
}

// collect takes messages of several consumers until there are n, and says who got what.
func collectAll(t testing.TB, cs []stock.Consumer, n int, ack bool) map[string][]int {
	t.Helper()
	type got struct {
		who int
		m   stock.Message
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	all := make(chan got)
	var wg sync.WaitGroup
	for i, c := range cs {
		wg.Go(func() {
			for {
				m, err := c.Receive(ctx)
				if err != nil {
					return
				}
				select {
				case all <- got{i, m}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	who := map[string][]int{}
	for range n {
		select {
		case g := <-all:
			who[g.m.Key()] = append(who[g.m.Key()], g.who)
			if ack {
				if err := cs[g.who].Ack(g.m); err != nil {
					t.Error(err)
				}
			}
		case <-ctx.Done():
			t.Fatal("some messages did not come")
		}
	}
	stop()
	wg.Wait()
	return who
}

func TestS1_36_EachKeyIsSeenByOneConsumer(t *testing.T) {
	b := newBed(t, setup{})
	var cs []stock.Consumer
	for range 3 {
		cs = append(cs, consumerOf(t, b.client(t), keyShared("keys")))
	}
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "keys", DisableBatching: true})
	const keys, each = 50, 6
	for i := range keys * each {
		sendKeyed(t, p, fmt.Sprint("key-", i%keys))
	}
	busy := map[int]bool{}
	for key, who := range collectAll(t, cs, keys*each, true) {
		if len(who) != each {
			t.Errorf("%s came %d times", key, len(who))
		}
		for _, w := range who {
			busy[w] = true
			if w != who[0] {
				t.Errorf("%s was at consumers %v", key, who)
				break
			}
		}
	}
	if len(busy) != 3 {
		t.Errorf("only consumers %v have got anything", busy)
	}
}

// Auto-split by ranges (subscriptionKeySharedUseConsistentHashing=false): the second to join has the lower half of all
// slots, and the first the rest.
func TestS1_36_AutoSplitByRanges(t *testing.T) {
	b := newBed(t, setup{engine: func(c *engine.Config) { c.Defaults.Split = engine.SplitHalves }})
	first := consumerOf(t, b.client(t), keyShared("ranges"))
	second := consumerOf(t, b.client(t), keyShared("ranges"))
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "ranges", DisableBatching: true})
	const keys = 100
	for i := range keys {
		sendKeyed(t, p, fmt.Sprint("key-", i))
	}
	for key, who := range collectAll(t, []stock.Consumer{first, second}, keys, true) {
		want := 0
		if core.KeySlot([]byte(key)) <= core.KeySlots/2 {
			want = 1
		}
		if len(who) != 1 || who[0] != want {
			t.Errorf("%s of slot %d came to consumers %v", key, core.KeySlot([]byte(key)), who)
		}
	}
}

func TestS1_37_TheOrderingKeyDecides(t *testing.T) {
	b := newBed(t, setup{})
	one := consumerOf(t, b.client(t), sticky(t, "ordering", "o", false))
	rest := consumerOf(t, b.client(t), sticky(t, "ordering", "o", true))
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "ordering", DisableBatching: true})
	sendMessage(t, p, &stock.ProducerMessage{Payload: []byte("by ordering key"), Key: "k", OrderingKey: "o"})
	sendMessage(t, p, &stock.ProducerMessage{Payload: []byte("by key"), Key: "k"})
	expect(t, one, "by ordering key")
	expect(t, rest, "by key")
}

func TestS1_38_ANackedMessageComesBackToTheSameConsumer(t *testing.T) {
	b := newBed(t, setup{})
	one := consumerOf(t, b.client(t), sticky(t, "nack", "k", false))
	rest := consumerOf(t, b.client(t), sticky(t, "nack", "k", true))
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "nack", DisableBatching: true})
	sendKeyed(t, p, "k")
	for attempt := range uint32(3) {
		m := receive(t, one)
		if m.RedeliveryCount() != attempt {
			t.Errorf("attempt %d has redelivery count %d", attempt, m.RedeliveryCount())
		}
		one.Nack(m)
	}
	expectNothing(t, rest)
}

// Members come and go under load. Each takes some messages before it acknowledges them, so whoever gets one can see whether
// another holds its key.
func TestS1_39_NoKeyIsInFlightAtTwoConsumers(t *testing.T) {
	b := newBed(t, setup{})
	const keys, messages, hand, rounds = 200, 6000, 10, 12
	w := &keyWatch{t: t, holds: map[string]map[int]int{}, last: map[string]int{}, seen: map[int]bool{}, news: make(chan struct{}, 1)}
	join := func(me int) (leave func()) {
		ctx, stop := context.WithCancel(context.Background())
		o := keyShared("churn")
		o.Name, o.ReceiverQueueSize = fmt.Sprint("c", me), 50
		o.AckGroupingOptions = &stock.AckGroupingOptions{MaxSize: 1} // acknowledged means sent, not kept by the client
		c := consumerOf(t, b.client(t), o)
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.consume(ctx, c, me, hand)
		}()
		return func() {
			stop()
			<-done
			w.gone(me) // what it holds is the others' as soon as it closes
			c.Close()
		}
	}
	stay := join(0)
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "churn", BatchingMaxMessages: 10, MaxPendingMessages: messages})
	send := func(from, to int) {
		for i := from; i < to; i++ {
			p.SendAsync(context.Background(), &stock.ProducerMessage{Payload: fmt.Append(nil, i), Key: fmt.Sprint("key-", i*7919%keys)}, func(_ stock.MessageID, _ *stock.ProducerMessage, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	for i := range rounds { // somebody joins and somebody leaves while messages flow
		send(i*messages/rounds, (i+1)*messages/rounds)
		leave := join(2*i + 1)
		w.await(messages / rounds * (i + 1) / 2)
		also := join(2*i + 2)
		leave()
		w.await(messages / rounds * (i + 1) * 3 / 4)
		also()
	}
	w.await(messages)
	stay()
}

// keyWatch notes who holds which key, from Receive to just before the ack goes out.
type keyWatch struct {
	t     *testing.T
	mu    sync.Mutex
	holds map[string]map[int]int // by key and consumer
	last  map[string]int
	seen  map[int]bool
	news  chan struct{} // something was seen
}

func (w *keyWatch) consume(ctx context.Context, c stock.Consumer, me, hand int) {
	var ms []stock.Message
	for {
		wait, stop := context.WithTimeout(ctx, 20*time.Millisecond)
		m, err := c.Receive(wait)
		stop()
		if err == nil {
			w.took(m, me)
			ms = append(ms, m)
		}
		if ctx.Err() != nil {
			return
		}
		if len(ms) < hand && err == nil {
			continue
		}
		for _, m := range ms {
			w.mu.Lock()
			w.holds[m.Key()][me]--
			w.mu.Unlock()
			if err := c.Ack(m); err != nil {
				return // closed
			}
		}
		ms = ms[:0]
	}
}

func (w *keyWatch) took(m stock.Message, me int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, n := m.Key(), 0
	for who, n := range w.holds[k] {
		if who != me && n > 0 {
			w.t.Errorf("%s came to consumer %d while %d holds %d of it", k, me, who, n)
		}
	}
	if w.holds[k] == nil {
		w.holds[k] = map[int]int{}
	}
	w.holds[k][me]++
	if _, err := fmt.Sscanf(string(m.Payload()), "%d", &n); err != nil {
		w.t.Error(err)
	}
	if w.seen[n] { // left by one who went
		return
	}
	if w.seen[n] = true; n < w.last[k] {
		w.t.Errorf("%s: %d after %d", k, n, w.last[k])
	}
	w.last[k] = n
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (w *keyWatch) gone(me int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, by := range w.holds {
		delete(by, me)
	}
}

// await waits until so many different messages came.
func (w *keyWatch) await(n int) {
	w.t.Helper()
	deadline := time.NewTimer(3 * patience)
	defer deadline.Stop()
	for {
		w.mu.Lock()
		got := len(w.seen)
		w.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-w.news:
		case <-deadline.C:
			w.t.Fatalf("%d messages of %d came", got, n)
		}
	}
}

// Some keys move to who joins; it gets nothing of them before what was delivered is acknowledged, and other keys never wait.
func TestS1_40_ANewcomerWaitsForMovedKeysAlone(t *testing.T) {
	b := newBed(t, setup{})
	old := consumerOf(t, b.client(t), keyShared("join"))
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "join", DisableBatching: true})
	var keys []string
	for i := range 30 {
		keys = append(keys, fmt.Sprint("key-", i))
	}
	sendKeyed(t, p, keys...)
	var first []stock.Message
	for range keys {
		first = append(first, receive(t, old))
	}
	newcomer := consumerOf(t, b.client(t), keyShared("join"))
	sendKeyed(t, p, keys...)
	expectNothing(t, newcomer)
	var stayed int
	for ctx, stop := context.WithTimeout(context.Background(), quiet); ; stayed++ {
		if _, err := old.Receive(ctx); err != nil {
			stop()
			break
		}
	}
	if stayed == 0 || stayed == len(keys) {
		t.Fatalf("%d of %d keys stayed", stayed, len(keys))
	}
	for _, m := range first {
		if err := old.Ack(m); err != nil {
			t.Fatal(err)
		}
	}
	for range len(keys) - stayed {
		receive(t, newcomer)
	}
}

func TestS1_41_OutOfOrderDeliveryOnRequest(t *testing.T) {
	b := newBed(t, setup{})
	o := keyShared("any")
	o.KeySharedPolicy = &stock.KeySharedPolicy{Mode: stock.KeySharedPolicyModeAutoSplit, AllowOutOfOrderDelivery: true}
	old := consumerOf(t, b.client(t), o)
	p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: "any", DisableBatching: true})
	var keys []string
	for i := range 30 {
		keys = append(keys, fmt.Sprint("key-", i))
	}
	sendKeyed(t, p, keys...)
	for range keys {
		receive(t, old)
	}
	newcomer := consumerOf(t, b.client(t), o)
	sendKeyed(t, p, keys...)
	receive(t, newcomer) // though nothing is acknowledged
	// Who wants another policy is refused.
	if _, err := b.client(t).Subscribe(stock.ConsumerOptions{Topic: "any", SubscriptionName: "sub", Type: stock.KeyShared}); err == nil || !strings.Contains(err.Error(), "ConsumerBusy") {
		t.Errorf("another policy: %v", err)
	}
}

func TestS1_42_KeySharedIgnoresCumulative(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	q := subscription("kscum", "sub")
	q.SubType = wire.SubKeyShared
	r.subscribe(q)
	r.flow(q.ConsumerID, 10)
	send(t, producerOf(t, b.client(t), stock.ProducerOptions{Topic: "kscum", DisableBatching: true}), "a", "b")
	r.message()
	m := r.message()
	if got := r.ackWithResponse(q.ConsumerID, 1, m.ID); got.HasCode {
		t.Errorf("response %+v", got)
	}
	r.close()
	expectOnly(t, consumerOf(t, b.client(t), keyShared("kscum")), "a", "b")
}

// A batch of several keys is split: each message goes to its key's consumer, under an id and with bytes of its own, and an
// acknowledgement is for that message alone. A batch of one key stays a batch.
func TestS1_43_MixedBatchesAreSplit(t *testing.T) {
	for _, compression := range []stock.CompressionType{stock.NoCompression, stock.LZ4} {
		t.Run(fmt.Sprint("compression ", compression), func(t *testing.T) { mixedBatches(t, compression) })
	}
}

func mixedBatches(t *testing.T, compression stock.CompressionType) {
	b := newBed(t, setup{})
	k := consumerOf(t, b.client(t), sticky(t, "mixed", "k", false))
	rest := consumerOf(t, b.client(t), sticky(t, "mixed", "k", true))
	o := batching("mixed")
	o.CompressionType = compression
	p := producerOf(t, b.client(t), o)
	batch := func(keys ...string) {
		for i, key := range keys {
			p.SendAsync(context.Background(), &stock.ProducerMessage{
				Payload: fmt.Append(nil, key, i), Key: key, Properties: map[string]string{"i": fmt.Sprint(i)},
			}, func(_ stock.MessageID, _ *stock.ProducerMessage, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		if err := p.FlushWithCtx(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	batch("k", "x", "k", "y")
	ms := expect(t, k, "k0", "k2")
	if id := ms[1].ID(); id.EntryID() != 2 || id.BatchSize() > 1 || ms[1].Properties()["i"] != "2" || ms[1].Key() != "k" {
		t.Errorf("message 2 has id %v, properties %v, key %s", id, ms[1].Properties(), ms[1].Key())
	}
	expect(t, rest, "x1", "y3")
	if err := k.Ack(ms[0]); err != nil { // the base of the entry: message 0, not the batch
		t.Fatal(err)
	}
	eventually(t, "the first is acknowledged", func() bool { return b.mark(t, "mixed", "sub", 0) == 1 })
	k.Nack(ms[1])
	if m := receive(t, k); string(m.Payload()) != "k2" || m.RedeliveryCount() != 1 {
		t.Errorf("%s, redelivered %d times", m.Payload(), m.RedeliveryCount())
	}
	batch("k", "k")
	if m := receive(t, k); m.ID().BatchSize() != 2 {
		t.Errorf("a batch of one key came as %v", m.ID())
	}
	if got := b.mark(t, "mixed", "sub", 0); got != 1 {
		t.Errorf("acknowledged up to %d", got)
	}
}

// No ranges, a range from high to low, or one that is taken: ConsumerAssignError.
func TestStickyRangesAreChecked(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	ask := func(consumer uint64, ranges ...wire.IntRange) *wire.Subscribe {
		q := subscription("sticky", "sub")
		q.SubType, q.ConsumerID, q.HasKeys = wire.SubKeyShared, consumer, true
		q.Keys = wire.KeySharedMeta{Mode: wire.KeySharedSticky, Ranges: ranges}
		return q
	}
	r.subscribe(ask(1, wire.IntRange{Start: 0, End: 99}))
	for i, bad := range [][]wire.IntRange{nil, {{Start: 9, End: 3}}, {{Start: -1, End: 3}}, {{Start: 200, End: 65536}}, {{Start: 99, End: 120}}, {{Start: 200, End: 300}, {Start: 300, End: 301}}} {
		q := ask(uint64(i+2), bad...)
		q.RequestID = r.id()
		r.send(wire.TypeSubscribe, q)
		if e := r.refused(); e.Code != wire.ConsumerAssignError {
			t.Errorf("%v: %v %s", bad, e.Code, e.Message)
		}
	}
	r.subscribe(ask(100, wire.IntRange{Start: 100, End: 65535}))
}
