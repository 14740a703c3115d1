package pulsar

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/core"
	"isthmus/core/engine"
)

func TestProduceAndConsume(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "plain"})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "plain", DisableBatching: true})
	send(t, p, numbered("m", 0, 10)...)
	for _, m := range expect(t, k, numbered("m", 0, 10)...) {
		if err := k.Ack(m); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "everything is acknowledged", func() bool { return b.mark(t, "plain", "sub", 0) == 10 })
}

// mark is the mark-delete offset of a subscription.
func (b *bed) mark(t testing.TB, topic, sub string, partition int32) core.Offset {
	t.Helper()
	g, err := b.group(t, topic, sub)
	if err != nil {
		t.Fatal(err)
	}
	return g.Mark(partition)
}

func (b *bed) group(t testing.TB, topic, sub string) (*engine.Group, error) {
	t.Helper()
	n, err := core.ParseTopicName(topic, "public", "default")
	if err != nil {
		t.Fatal(err)
	}
	tp, err := b.Engine.Topic(n)
	if err != nil {
		return nil, err
	}
	return tp.Group(sub)
}

// Everything that a message can carry arrives, batched and not, compressed in each way.
func TestMessageSurvives(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	event := time.UnixMilli(1700000000123)
	kinds := map[string]stock.CompressionType{
		"none": stock.NoCompression, "lz4": stock.LZ4, "zlib": stock.ZLib, "zstd": stock.ZSTD, "snappy": stock.SNAPPY,
	}
	for name, kind := range kinds {
		for _, batched := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s batched=%v", name, batched), func(t *testing.T) {
				topic := fmt.Sprintf("survive-%s-%v", name, batched)
				k := consumerOf(t, c, stock.ConsumerOptions{Topic: topic})
				p := producerOf(t, c, stock.ProducerOptions{Topic: topic, Name: "maker-" + topic, CompressionType: kind, DisableBatching: !batched})
				body := strings.Repeat("body", 100)
				sendMessage(t, p, &stock.ProducerMessage{
					Payload: []byte(body), Key: "key", OrderingKey: "order", Properties: map[string]string{"a": "1", "b": ""}, EventTime: event,
				})
				m := receive(t, k)
				if string(m.Payload()) != body || m.Key() != "key" || m.OrderingKey() != "order" || !m.EventTime().Equal(event) ||
					m.ProducerName() != "maker-"+topic || !reflect.DeepEqual(m.Properties(), map[string]string{"a": "1", "b": ""}) {
					t.Errorf("%q key %q %q at %v by %q with %v", m.Payload(), m.Key(), m.OrderingKey(), m.EventTime(), m.ProducerName(), m.Properties())
				}
				// The same entry for a consumer of another protocol.
				got := b.messages(t, topic, 0)
				want := core.Message{
					Key: []byte("key"), HasKey: true, OrderingKey: []byte("order"), Body: []byte(body), EventTime: event.UnixMilli(),
					Producer: "maker-" + topic, PublishTime: got[0].PublishTime,
				}
				got[0].Properties = nil // a map's order
				if !reflect.DeepEqual(got[0], want) {
					t.Errorf("neutral\n got %+v\nwant %+v", got[0], want)
				}
			})
		}
	}
}

// messages decodes everything in a partition.
func (b *bed) messages(t testing.TB, topic string, partition int32) (ms []core.Message) {
	t.Helper()
	for _, e := range b.entries(t, topic, partition) {
		var err error
		if ms, err = b.Engine.Messages(&e, ms); err != nil {
			t.Fatal(err)
		}
	}
	return ms
}

func (b *bed) entries(t testing.TB, topic string, partition int32) (all []core.Entry) {
	t.Helper()
	p := b.Topic(t, topic, 0).Partition(partition)
	first, next := p.Bounds()
	for at := first; at < next; {
		es, err := p.Read(context.Background(), at, 100, 1<<20)
		if err != nil || len(es) == 0 {
			t.Fatalf("read at %d of %d: %v", at, next, err)
		}
		all = append(all, es...)
		at = es[len(es)-1].End()
	}
	return all
}

// A batch is one entry: the client's ids and the offsets agree.
func TestBatchIsOneEntry(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "batch"})
	p := producerOf(t, c, batching("batch"))
	var ids []stock.MessageID
	for i := 0; i < 30; i += 10 {
		ids = append(ids, sendBatch(t, p, numbered("m", i, i+10)...)...)
	}
	es := b.awaitEntries(t, "batch", 30)
	if len(es) != 3 || es[0].Count != 10 || es[1].Base != 10 || es[2].Base != 20 {
		t.Fatalf("entries %+v", es)
	}
	for i, m := range expect(t, k, numbered("m", 0, 30)...) {
		id := ids[i]
		if id.EntryID() != int64(i/10*10) || id.BatchIdx() != int32(i%10) || id.LedgerID() != m.ID().LedgerID() || m.ID().EntryID() != id.EntryID() || m.ID().BatchIdx() != id.BatchIdx() {
			t.Fatalf("message %d: receipt %v, received %v", i, id, m.ID())
		}
		if err := k.Ack(m); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "everything is acknowledged", func() bool { return b.mark(t, "batch", "sub", 0) == 30 })
	if ms := b.messages(t, "batch", 0); len(ms) != 30 || string(ms[17].Body) != "m17" {
		t.Fatalf("%d messages for others", len(ms))
	}
}

func (b *bed) awaitEntries(t testing.TB, topic string, messages core.Offset) []core.Entry {
	t.Helper()
	p := b.Topic(t, topic, 0).Partition(0)
	eventually(t, "messages are durable", func() bool { _, next := p.Bounds(); return next >= messages })
	return b.entries(t, topic, 0)
}

// Bodies that clients stumble over: empty, with and without properties, null, large.
func TestOddBodies(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "odd"})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "odd"})
	large := strings.Repeat("x", 4<<20)
	for _, m := range []*stock.ProducerMessage{
		{Payload: []byte{}, Properties: map[string]string{"a": "1"}}, {Payload: []byte{}}, {Payload: nil, Key: "gone"}, {Payload: []byte(large)}, {Payload: []byte("last")},
	} {
		sendMessage(t, p, m)
	}
	expect(t, k, "", "", "", large, "last")
}

func TestAsyncReceiptsInOrder(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	p := producerOf(t, c, stock.ProducerOptions{Topic: "async", DisableBatching: true, MaxPendingMessages: 3000})
	const n = 5000
	done := make(chan int64, n)
	for i := range n {
		p.SendAsync(context.Background(), &stock.ProducerMessage{Payload: fmt.Append(nil, i)}, func(id stock.MessageID, _ *stock.ProducerMessage, err error) {
			if err != nil {
				t.Error(err)
				done <- -1
				return
			}
			done <- id.EntryID()
		})
	}
	for i := range n {
		if got := <-done; got != int64(i) {
			t.Fatalf("receipt %d names entry %d", i, got)
		}
	}
	if got := p.LastSequenceID(); got != n-1 {
		t.Errorf("last sequence id %d", got)
	}
}

func TestPartitionedTopic(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "parts", 4)
	c := b.client(t)
	if ps, err := c.TopicPartitions("parts"); err != nil || len(ps) != 4 || ps[3] != "parts-partition-3" {
		t.Fatalf("partitions %v %v", ps, err)
	}
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "parts"})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "parts"})
	for i := range 100 {
		sendMessage(t, p, &stock.ProducerMessage{Key: fmt.Sprint("k", i%10), Payload: fmt.Append(nil, i)})
	}
	last, where := map[string]int{}, map[string]int32{}
	for range 100 {
		m := receive(t, k)
		var n int
		fmt.Sscan(string(m.Payload()), &n)
		if at, ok := where[m.Key()]; ok && (at != m.ID().PartitionIdx() || last[m.Key()] >= n) {
			t.Fatalf("key %s: %d in partition %d after %d in %d", m.Key(), n, m.ID().PartitionIdx(), last[m.Key()], at)
		}
		last[m.Key()], where[m.Key()] = n, m.ID().PartitionIdx()
		k.Ack(m)
	}
	if len(last) != 10 {
		t.Errorf("keys %v", last)
	}
}

func TestInitialPositions(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	p := producerOf(t, c, stock.ProducerOptions{Topic: "pos"})
	send(t, p, numbered("old", 0, 3)...)
	early := consumerOf(t, c, stock.ConsumerOptions{Topic: "pos", SubscriptionName: "early", SubscriptionInitialPosition: stock.SubscriptionPositionEarliest})
	late := consumerOf(t, c, stock.ConsumerOptions{Topic: "pos", SubscriptionName: "late"})
	send(t, p, "new")
	expect(t, early, "old0", "old1", "old2", "new")
	expect(t, late, "new")
}

// A subscription keeps its place while nobody is connected.
func TestResumesAtFirstUnacknowledged(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	p := producerOf(t, c, stock.ProducerOptions{Topic: "resume"})
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "resume"})
	send(t, p, numbered("m", 0, 6)...)
	ms := expect(t, k, numbered("m", 0, 6)...)
	for _, i := range []int{0, 1, 3} {
		k.Ack(ms[i])
	}
	k.Close()
	send(t, p, "m6")
	again := consumerOf(t, c, stock.ConsumerOptions{Topic: "resume"})
	expect(t, again, "m2", "m4", "m5", "m6")
}

func TestCumulativeInsideABatch(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	for _, index := range []bool{false, true} {
		topic := fmt.Sprint("cumulative-", index)
		o := stock.ConsumerOptions{Topic: topic, EnableBatchIndexAcknowledgment: index, AckWithResponse: true}
		k := consumerOf(t, c, o)
		p := producerOf(t, c, batching(topic))
		sendBatch(t, p, numbered("m", 0, 10)...)
		sendBatch(t, p, numbered("m", 10, 20)...)
		ms := expect(t, k, numbered("m", 0, 20)...)
		if err := k.AckCumulative(ms[14]); err != nil {
			t.Fatal(err)
		}
		want := core.Offset(10) // the batch is acknowledged when it is acknowledged whole
		if index {
			want = 15
		}
		k.Close()
		eventually(t, "the mark moves", func() bool { return b.mark(t, topic, "sub", 0) == want })
		again := consumerOf(t, c, o)
		expect(t, again, numbered("m", int(want), 20)...)
	}
}

func TestBatchIndexAck(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	o := stock.ConsumerOptions{Topic: "index", Type: stock.Shared, EnableBatchIndexAcknowledgment: true, AckWithResponse: true}
	k := consumerOf(t, c, o)
	p := producerOf(t, c, batching("index"))
	sendBatch(t, p, numbered("m", 0, 5)...)
	ms := expect(t, k, numbered("m", 0, 5)...)
	for _, i := range []int{0, 2, 4} {
		if err := k.Ack(ms[i]); err != nil {
			t.Fatal(err)
		}
	}
	k.Close()
	again := consumerOf(t, c, o)
	for _, m := range expect(t, again, "m1", "m3") {
		again.Ack(m)
	}
	expectNothing(t, again)
	eventually(t, "all is acknowledged", func() bool { return b.mark(t, "index", "sub", 0) == 5 })
}

func TestNackRaisesTheCount(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "nack", Type: stock.Shared, NackRedeliveryDelay: 50 * time.Millisecond})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "nack", DisableBatching: true})
	send(t, p, "a", "b")
	ms := expect(t, k, "a", "b")
	k.Ack(ms[1])
	for n := range uint32(3) {
		if got := ms[0].RedeliveryCount(); got != n {
			t.Fatalf("redelivery count %d, want %d", got, n)
		}
		k.Nack(ms[0])
		ms = expect(t, k, "a")
	}
}

func TestDeadLetters(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	dead := consumerOf(t, c, stock.ConsumerOptions{Topic: "dead"})
	k := consumerOf(t, c, stock.ConsumerOptions{
		Topic: "dlq", Type: stock.Shared, NackRedeliveryDelay: 20 * time.Millisecond,
		DLQ: &stock.DLQPolicy{MaxDeliveries: 2, DeadLetterTopic: "dead"},
	})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "dlq"})
	send(t, p, "poison")
	for range 2 {
		k.Nack(expect(t, k, "poison")[0])
	}
	expect(t, dead, "poison")
}

func TestUnsubscribe(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "unsub", 3)
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "unsub"})
	if err := k.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.group(t, "unsub", "sub"); err == nil {
		t.Error("the subscription is still there")
	}
	one := consumerOf(t, c, stock.ConsumerOptions{Topic: "unsub", Type: stock.Shared})
	two := consumerOf(t, c, stock.ConsumerOptions{Topic: "unsub", Type: stock.Shared})
	if err := one.Unsubscribe(); err == nil {
		t.Error("unsubscribed although another is connected")
	}
	if err := two.UnsubscribeForce(); err != nil {
		t.Error(err)
	}
}

func TestStringSchema(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "schema", Schema: stock.NewStringSchema(nil)})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "schema", Schema: stock.NewStringSchema(nil)})
	sendMessage(t, p, &stock.ProducerMessage{Value: "hello"})
	var s *string
	if err := receive(t, k).GetSchemaValue(&s); err != nil || *s != "hello" {
		t.Errorf("%v %v", s, err)
	}
}

func TestTopicsOfNamespace(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "rx-a", 0)
	b.Topic(t, "rx-b", 2)
	b.Topic(t, "other", 0)
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{TopicsPattern: "persistent://public/default/rx-.*", SubscriptionInitialPosition: stock.SubscriptionPositionEarliest})
	send(t, producerOf(t, c, stock.ProducerOptions{Topic: "rx-a"}), "a")
	expect(t, k, "a")
	send(t, producerOf(t, c, stock.ProducerOptions{Topic: "rx-b"}), "b")
	expect(t, k, "b")
}

// declare makes a topic where auto-creation is off.
func (b *bed) declare(t testing.TB, name string, partitions int32) {
	t.Helper()
	n, err := core.ParseTopicName(name, "public", "default")
	if err == nil {
		_, err = b.Engine.DeclareTopic(n, engine.TopicSpec{Partitions: partitions})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The group itself gives up on a message, whatever its clients do, and any client finds it in the dead-letter topic.
func TestDeadLettersOfTheGroup(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "work", Type: stock.Shared, NackRedeliveryDelay: 20 * time.Millisecond})
	g, err := b.group(t, "work", "sub")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.SetRetry(engine.Retry{MaxAttempts: 2}); err != nil {
		t.Fatal(err)
	}
	sendMessage(t, producerOf(t, c, stock.ProducerOptions{Topic: "work"}), &stock.ProducerMessage{Payload: []byte("poison"), Key: "k", Properties: map[string]string{"a": "b"}})
	for range 2 {
		k.Nack(receive(t, k))
	}
	dead := consumerOf(t, c, stock.ConsumerOptions{Topic: "work-sub-DLQ", SubscriptionInitialPosition: stock.SubscriptionPositionEarliest})
	if m := expect(t, dead, "poison")[0]; m.Key() != "k" || m.Properties()["a"] != "b" {
		t.Errorf("key %q, properties %v", m.Key(), m.Properties())
	}
	expectNothing(t, k)
	eventually(t, "it is acknowledged", func() bool { return b.mark(t, "work", "sub", 0) == 1 })
}
