package pulsar

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/adapters/pulsar/wire"
)

// Relative and absolute delays of the stock client: never early, no loss, and what is not delayed does not wait for them.
// Spec: Pulsar MessageMetadata.deliver_at_time
func TestDelayedDelivery(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	shared := consumerOf(t, c, stock.ConsumerOptions{Topic: "event", SubscriptionName: "s", Type: stock.Shared})
	failover := consumerOf(t, c, stock.ConsumerOptions{Topic: "event", SubscriptionName: "f", Type: stock.Failover})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "event"})
	start := time.Now()
	late := sendMessage(t, p, &stock.ProducerMessage{Payload: []byte("late"), Key: "k", Properties: map[string]string{"a": "b"}, DeliverAfter: 700 * time.Millisecond})
	sendMessage(t, p, &stock.ProducerMessage{Payload: []byte("soon"), DeliverAt: start.Add(300 * time.Millisecond)})
	sendMessage(t, p, &stock.ProducerMessage{Payload: []byte("past"), DeliverAt: start.Add(-time.Hour)})
	sendMessage(t, p, &stock.ProducerMessage{Payload: []byte("now")})
	for _, consumer := range []stock.Consumer{shared, failover} {
		ms := expect(t, consumer, "past", "now", "soon", "late")
		if m := ms[3]; m.Key() != "k" || m.Properties()["a"] != "b" || m.ID().EntryID() != 3 || m.ID().LedgerID() == late.LedgerID() {
			t.Errorf("%v, sent as %v", m.ID(), late)
		}
	}
	if took := time.Since(start); took < 699*time.Millisecond { // a due time is a whole millisecond
		t.Errorf("all after %v", took)
	}
	for i, e := range entriesOf(t, b, "event") {
		if due := start.Add([]time.Duration{0, 0, 300 * time.Millisecond, 700 * time.Millisecond}[i]).UnixMilli(); e < due {
			t.Errorf("message %d entered the log %d ms early", i, due-e)
		}
	}
	// A client drops what lies before the id that it has sought, so the broker may not let it wait for nothing.
	if err := shared.Seek(late); err == nil || !strings.Contains(err.Error(), "no place") {
		t.Errorf("seek to the receipt of a delayed message: %v", err)
	}
}

// entriesOf are the commit times of a topic.
func entriesOf(t *testing.T, b *bed, topic string) (ms []int64) {
	t.Helper()
	es, err := b.Topic(t, topic, 0).Partition(0).Read(t.Context(), 0, 100, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range es {
		ms = append(ms, es[i].Commit)
	}
	return ms
}

// A batch may be delayed as a whole, also where placing by key tears it; a delay that is too long is refused in the
// protocol's words, before anything is stored.
func TestDelayedBatch(t *testing.T) {
	b := newBed(t, setup{})
	topic := b.placed(t, "keys", 3)
	r := dial(t, b)
	r.send(wire.TypeProducer, &wire.Producer{Topic: "keys-partition-1", ProducerID: 1, RequestID: r.id()})
	r.want(wire.TypeProducerSuccess)
	batch := func(seq uint64, at int64) {
		meta := clients(t, "MessageMetadata", fmt.Sprintf(`producer_name:"p" sequence_id:%d publish_time:7 num_messages_in_batch:2 deliver_at_time:%d`, seq, at))
		checked := append(binary.BigEndian.AppendUint32(nil, uint32(len(meta))), meta...)
		for _, k := range []string{"k1", "k2"} {
			one := clients(t, "SingleMessageMetadata", fmt.Sprintf(`partition_key:"%s" payload_size:1`, k))
			checked = append(append(binary.BigEndian.AppendUint32(checked, uint32(len(one))), one...), 'x')
		}
		c := wire.Send{ProducerID: 1, SequenceID: seq, NumMessages: 2}
		r.bytes(c.Append(nil, wire.Checksum(checked), checked))
	}
	batch(0, time.Now().Add(200*time.Millisecond).UnixMilli())
	if got := r.receipt(); got.SequenceID != 0 || b.Engine.PartitionByNumber(uint32(got.ID.Ledger-1)) != nil {
		t.Errorf("%+v is the id of a message in the log", got)
	}
	parked, entered := int64(0), func() (n int64) {
		for i := range topic.Logs() {
			_, next := topic.Partition(i).Bounds()
			n += next
		}
		return n
	}
	for i := range topic.Logs() {
		parked += topic.Partition(i).Parked()
	}
	if parked != 2 || entered() != 0 {
		t.Errorf("%d are parked, %d are there", parked, entered())
	}
	eventually(t, "both messages", func() bool { return entered() == 2 })

	batch(1, time.Now().Add(400*24*time.Hour).UnixMilli())
	var e wire.SendError
	r.parse(r.want(wire.TypeSendError), &e)
	if e.Code != wire.MetadataError || e.SequenceID != 1 {
		t.Errorf("%+v", e)
	}
}
