package pulsar

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// placed declares a topic that places by key.
func (b *bed) placed(t testing.TB, name string, partitions int32) *engine.Topic {
	t.Helper()
	n, err := core.ParseTopicName(name, "public", "default")
	if err != nil {
		t.Fatal(err)
	}
	topic, err := b.Engine.DeclareTopic(n, engine.TopicSpec{Partitions: partitions, ByKey: true})
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// On a topic that places by key every key lies in one partition, in order, whatever the client chose and however it batched.
func TestBatchesArePlacedByKey(t *testing.T) {
	b := newBed(t, setup{})
	topic := b.placed(t, "keys", 3)
	r := dial(t, b)
	r.send(wire.TypeProducer, &wire.Producer{Topic: "keys-partition-1", ProducerID: 1, RequestID: r.id()})
	r.want(wire.TypeProducerSuccess)
	seq := uint64(0)
	batch := func(keys ...string) {
		meta := clients(t, "MessageMetadata", fmt.Sprintf(`producer_name:"p" sequence_id:%d publish_time:7 partition_key:"%s"
			num_messages_in_batch:%d schema_version:"\x05" highest_sequence_id:9`, seq, keys[0], len(keys)))
		checked := append(binary.BigEndian.AppendUint32(nil, uint32(len(meta))), meta...)
		for i, k := range keys {
			text := fmt.Sprint(k, "@", seq, ".", i)
			one := clients(t, "SingleMessageMetadata", fmt.Sprintf(`partition_key:"%s" payload_size:%d properties:{key:"a" value:"%s"} event_time:5 ordering_key:"o"`, k, len(text), k))
			if k == "" {
				one = clients(t, "SingleMessageMetadata", fmt.Sprintf(`payload_size:%d`, len(text)))
			}
			checked = append(append(append(binary.BigEndian.AppendUint32(checked, uint32(len(one))), one...), text...), nil...)
		}
		c := wire.Send{ProducerID: 1, SequenceID: seq, NumMessages: int32(len(keys))}
		r.bytes(c.Append(nil, wire.Checksum(checked), checked))
		seq++
		got := r.receipt()
		want := topic.Partition(topic.Place([]byte(keys[0]), true, 1))
		if keys[0] != "" && got.ID.Ledger != ledgerOf(want) || got.SequenceID != seq-1 {
			t.Fatalf("receipt %+v for %v", got, keys)
		}
	}
	batch("k0", "k1", "k2", "", "k0")
	batch("k0")
	batch("k1", "k1")
	batch("k5", "k4", "k3", "k2", "k1", "k0")
	where, last := map[string]int32{}, map[string]string{}
	count := 0
	for i := range int32(3) {
		for _, m := range b.messages(t, "keys", i) {
			count++
			k := string(m.Key)
			at, ok := where[k]
			if ok && (at != i || last[k] >= string(m.Body)) {
				t.Errorf("%s in partition %d after %s in %d", m.Body, i, last[k], at)
			}
			if !bytes.HasPrefix(m.Body, []byte(k+"@")) || m.HasKey && (len(m.Properties) != 1 || m.Properties[0].Value != k || m.EventTime != 5 || string(m.OrderingKey) != "o") {
				t.Errorf("%+v", m)
			}
			if k == "" && i != 1 {
				t.Errorf("an unkeyed message went to partition %d", i)
			}
			where[k], last[k] = i, string(m.Body)
		}
	}
	if count != 14 {
		t.Errorf("%d messages", count)
	}
	// A batch of one partition stays as it came, and clients read both kinds.
	kept := false
	for i := range int32(3) {
		for _, e := range b.entries(t, "keys", i) {
			kept = kept || e.Count == 2
		}
	}
	if !kept {
		t.Error("no batch was stored as it came")
	}
	k := consumerOf(t, b.client(t), stock.ConsumerOptions{Topic: "keys", SubscriptionInitialPosition: stock.SubscriptionPositionEarliest})
	for range 14 {
		m := receive(t, k)
		if m.Key() != "" && (m.Properties()["a"] != m.Key() || !bytes.Equal(m.SchemaVersion(), []byte{5})) {
			t.Errorf("%s %v %x", m.Payload(), m.Properties(), m.SchemaVersion())
		}
	}
}

// The stock client's own batches.
func TestStockBatchesArePlacedByKey(t *testing.T) {
	b := newBed(t, setup{})
	b.placed(t, "stock", 4)
	c := b.client(t)
	p := producerOf(t, c, batching("stock"))
	done := make(chan error, 200)
	for i := range 200 {
		p.SendAsync(t.Context(), &stock.ProducerMessage{Key: fmt.Sprint("k", i%13), Payload: fmt.Appendf(nil, "%03d", i)},
			func(_ stock.MessageID, _ *stock.ProducerMessage, err error) { done <- err })
	}
	if err := p.FlushWithCtx(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	where, last, n := map[string]int32{}, map[string]string{}, 0
	for i := range int32(4) {
		for _, m := range b.messages(t, "stock", i) {
			n++
			k := string(m.Key)
			if at, ok := where[k]; ok && (at != i || last[k] >= string(m.Body)) {
				t.Fatalf("%s %s in %d after %s in %d", k, m.Body, i, last[k], at)
			}
			where[k], last[k] = i, string(m.Body)
		}
	}
	if n != 200 {
		t.Errorf("%d messages", n)
	}
}
