package pulsar

import (
	"context"
	"fmt"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/adapters/pulsar/wire"
)

func readerOf(t testing.TB, c stock.Client, o stock.ReaderOptions) stock.Reader {
	t.Helper()
	r, err := c.CreateReader(o)
	if err != nil {
		t.Fatalf("reader: %v", err)
	}
	t.Cleanup(r.Close)
	return r
}

// read takes messages until HasNext says that there are none, and compares.
func read(t testing.TB, r stock.Reader, bodies ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, want := range bodies {
		if !r.HasNext() {
			t.Fatalf("HasNext is false before message %d", i)
		}
		m, err := r.Next(ctx)
		if err != nil || string(m.Payload()) != want {
			t.Fatalf("message %d: %v, want %q (%v)", i, m, want, err)
		}
	}
	if r.HasNext() {
		t.Fatal("HasNext is true at the end")
	}
}

func TestReader(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	p := producerOf(t, c, stock.ProducerOptions{Topic: "read", DisableBatching: true})
	read(t, readerOf(t, c, stock.ReaderOptions{Topic: "read", StartMessageID: stock.EarliestMessageID()}))
	ids := send(t, p, numbered("m", 0, 5)...)
	read(t, readerOf(t, c, stock.ReaderOptions{Topic: "read", StartMessageID: stock.EarliestMessageID()}), numbered("m", 0, 5)...)
	read(t, readerOf(t, c, stock.ReaderOptions{Topic: "read", StartMessageID: ids[1]}), numbered("m", 2, 5)...)
	read(t, readerOf(t, c, stock.ReaderOptions{Topic: "read", StartMessageID: ids[1], StartMessageIDInclusive: true}), numbered("m", 1, 5)...)
	read(t, readerOf(t, c, stock.ReaderOptions{Topic: "read", StartMessageID: stock.LatestMessageID(), StartMessageIDInclusive: true}), "m4")
	late := readerOf(t, c, stock.ReaderOptions{Topic: "read", StartMessageID: stock.LatestMessageID()})
	read(t, late)
	send(t, p, "m5")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if m, err := late.Next(ctx); err != nil || string(m.Payload()) != "m5" { // HasNext of the client says no until then
		t.Fatal(m, err)
	}
	if g := b.Topic(t, "read", 0).Groups(); len(g) > 6 || g[0].Durable() {
		t.Errorf("groups %v", g)
	}
}

func TestReaderInsideABatch(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	p := producerOf(t, c, batching("readbatch"))
	ids := sendBatch(t, p, numbered("m", 0, 5)...)
	sendBatch(t, p, numbered("m", 5, 10)...)
	read(t, readerOf(t, c, stock.ReaderOptions{Topic: "readbatch", StartMessageID: ids[2]}), numbered("m", 3, 10)...)
}

func TestReaderOfPartitions(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "readparts", 2)
	c := b.client(t)
	var ids []stock.MessageID
	for i := range 2 {
		p := producerOf(t, c, stock.ProducerOptions{Topic: fmt.Sprint("readparts-partition-", i), DisableBatching: true})
		ids = append(ids, send(t, p, numbered(fmt.Sprint("p", i, "-"), 0, 3)...)...)
	}
	read(t, readerOf(t, c, stock.ReaderOptions{Topic: "readparts-partition-1", StartMessageID: ids[3]}), "p1-1", "p1-2")
}

// Rule 12: a reader's place survives the forced disconnect of its own SEEK, the start id of its SUBSCRIBE is stale.
func TestRule12_ReaderSeeks(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	p := producerOf(t, c, stock.ProducerOptions{Topic: "readseek", DisableBatching: true})
	ids := send(t, p, numbered("m", 0, 5)...)
	r := readerOf(t, c, stock.ReaderOptions{Topic: "readseek", StartMessageID: stock.EarliestMessageID(), StartMessageIDInclusive: true})
	read(t, r, numbered("m", 0, 5)...)
	if err := r.Seek(ids[3]); err != nil {
		t.Fatal(err)
	}
	read(t, r, "m3", "m4")
	// A reader of its own: the client (0.19) goes on filtering by the id of an earlier Seek.
	r = readerOf(t, c, stock.ReaderOptions{Topic: "readseek", StartMessageID: stock.EarliestMessageID(), StartMessageIDInclusive: true})
	read(t, r, numbered("m", 0, 5)...)
	if err := r.SeekByTime(time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	read(t, r, numbered("m", 0, 5)...)
	r = readerOf(t, c, stock.ReaderOptions{Topic: "readseek", StartMessageID: stock.EarliestMessageID()})
	if err := r.SeekByTime(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	read(t, r)
	send(t, p, "new")
	read(t, r, "new")
}

// Rule 4: CLOSE_CONSUMER goes before the SUCCESS of a SEEK.
func TestRule04_CloseBeforeSeekSuccess(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	q := subscription("order", "sub")
	r.subscribe(q)
	r.send(wire.TypeSeek, &wire.Seek{ConsumerID: 1, RequestID: r.id(), HasID: true, ID: wire.MessageID{Ledger: wire.NoRequest, Entry: wire.NoRequest, Partition: -1, BatchIndex: -1}})
	f, err := r.frame(patience)
	var c wire.Close
	if err != nil || f.Type != wire.TypeCloseConsumer || wire.Parse(f.Command, &c) != nil || c.RequestID != wire.NoRequest {
		t.Fatalf("%v %+v %v", f.Type, c, err)
	}
	r.success()
	r.subscribe(q)
}

func TestSeekOfASubscription(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	for _, kind := range []stock.SubscriptionType{stock.Exclusive, stock.Failover, stock.Shared} {
		topic := fmt.Sprint("seek-", kind)
		p := producerOf(t, c, stock.ProducerOptions{Topic: topic, DisableBatching: true})
		k := consumerOf(t, c, stock.ConsumerOptions{Topic: topic, Type: kind, AckWithResponse: true, StartMessageIDInclusive: true})
		ids := send(t, p, numbered("m", 0, 6)...)
		for _, m := range expect(t, k, numbered("m", 0, 6)...) {
			if err := k.Ack(m); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Seek(ids[4]); err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		expect(t, k, "m4", "m5")
		k.Close()
		k = consumerOf(t, c, stock.ConsumerOptions{Topic: topic, Type: kind})
		if err := k.SeekByTime(time.Now().Add(-time.Hour)); err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		expect(t, k, numbered("m", 0, 6)...)
	}
}

// A group that an operator moves comes from its new place to consumers that are connected, and what they acknowledge of
// before counts for nothing.
func TestResetOfASubscriptionByOthers(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	for _, kind := range []stock.SubscriptionType{stock.Exclusive, stock.Failover, stock.Shared, stock.KeyShared} {
		topic := fmt.Sprint("reset-", kind)
		p := producerOf(t, c, stock.ProducerOptions{Topic: topic, DisableBatching: true})
		k := consumerOf(t, c, stock.ConsumerOptions{Topic: topic, Type: kind, AckWithResponse: true})
		send(t, p, numbered("m", 0, 6)...)
		ms := expect(t, k, numbered("m", 0, 6)...)
		if err := k.Ack(ms[0]); err != nil {
			t.Fatal(err)
		}
		g, err := b.group(t, topic, "sub")
		if err != nil {
			t.Fatal(err)
		}
		if err := g.ResetAll(func() error { return g.Reset(0, 0) }); err != nil {
			t.Fatal(err)
		}
		expect(t, k, numbered("m", 0, 6)...)
		k.Close()
	}
}

// Rule 12: consumer_mark_delete_position is always there, below the next entry, and the last id when nothing is left.
func TestRule12_LastMessageID(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	q := subscription("last", "sub")
	r.subscribe(q)
	ask := func() (c wire.GetLastMessageIDReply) {
		t.Helper()
		c.Last, c.MarkDelete = wire.NewMessageID(), wire.NewMessageID()
		r.send(wire.TypeGetLastMessageID, &wire.GetLastMessageID{ConsumerID: 1, RequestID: r.id()})
		r.parse(r.want(wire.TypeGetLastMessageIDReply), &c)
		if !c.HasMark {
			t.Fatal("no mark-delete position")
		}
		return c
	}
	if c := ask(); !c.Last.Earliest() || !c.MarkDelete.Earliest() {
		t.Errorf("empty topic: %+v", c)
	}
	p := producerOf(t, b.client(t), batching("last"))
	sendBatch(t, p, "a", "b", "c")
	sendBatch(t, p, "d", "e")
	ledger := ledgerOf(b.Topic(t, "last", 0).Partition(0))
	if c := ask(); c.Last.Entry != 3 || c.Last.BatchIndex != 1 || c.Last.Ledger != ledger || int64(c.MarkDelete.Entry) != -1 || c.MarkDelete.Ledger != ledger {
		t.Errorf("nothing read: %+v", c)
	}
	r.flow(1, 10)
	r.message()
	m := r.message()
	r.ackWithResponse(1, wire.AckCumulative, m.ID)
	eventually(t, "the mark moves", func() bool { return b.mark(t, "last", "sub", 0) == 5 })
	if c := ask(); c.MarkDelete.Entry != c.Last.Entry || c.MarkDelete.Ledger != c.Last.Ledger {
		t.Errorf("all read: %+v", c)
	}
}
