package pulsar

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// Rule 1: a batch is an opaque entry; what a consumer gets is what the producer sent, to the bit, unknown fields and all.
func TestI5_Rule01_BytesSurvive(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.subscribe(subscription("bits", "sub"))
	r.flow(1, 100)
	r.producer("bits", "")
	meta := wire.OutMetadata{Producer: "odd", PublishTime: 5, Batch: true}
	single := meta.AppendSingle(nil)
	m := append(meta.Append(nil, nil), 0xc2, 0x3e, 3, 'x', 'y', 'z') // field 1000, not known to anybody
	checked := append(append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...), single...)
	c := wire.Send{ProducerID: 1, SequenceID: 9, NumMessages: 1}
	r.bytes(c.Append(nil, wire.Checksum(checked), checked))
	r.receipt()
	got := r.message()
	if !bytes.Equal(got.payload.Checked, checked) {
		t.Errorf("\n got %x\nwant %x", got.payload.Checked, checked)
	}
}

// Rule 2: no client is sent a command that it does not know. REACHED_END_OF_TOPIC and the watchers have no writer at all.
func TestRule02_OnlyKnownCommands(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	for typ, c := range map[wire.Type]wire.Command{
		wire.TypeWatchTopicList: &wire.Request{RequestID: 1}, wire.TypeNewTxn: &wire.Request{RequestID: 2},
		wire.TypeTcClientConnect: &wire.Request{RequestID: 3}, wire.TypeConsumerStats: &wire.ConsumerStats{RequestID: 4, ConsumerID: 9},
		wire.TypeAddPartitionToTxn: &wire.Request{RequestID: 5}, wire.TypeEndTxn: &wire.Request{RequestID: 6},
		wire.TypeGetSchema:           &wire.GetSchema{RequestID: 7, Topic: "x"},
		wire.TypeGetOrCreateSchema:   &wire.GetOrCreateSchema{RequestID: 8, Topic: "foo://x"},
		wire.TypeWatchTopicListClose: &wire.Request{RequestID: 9}, wire.TypeAddSubscriptionToTxn: &wire.Request{RequestID: 10},
	} {
		want := map[wire.Type]wire.Type{
			wire.TypeWatchTopicList: wire.TypeError, wire.TypeWatchTopicListClose: wire.TypeError, wire.TypeNewTxn: wire.TypeNewTxnReply,
			wire.TypeTcClientConnect: wire.TypeTcClientConnectReply, wire.TypeConsumerStats: wire.TypeConsumerStatsReply,
			wire.TypeAddPartitionToTxn: wire.TypeAddPartitionToTxnReply, wire.TypeEndTxn: wire.TypeEndTxnReply,
			wire.TypeGetSchema: wire.TypeGetSchemaReply, wire.TypeGetOrCreateSchema: wire.TypeGetOrCreateSchemaReply,
			wire.TypeAddSubscriptionToTxn: wire.TypeAddSubscriptionToTxnReply,
		}[typ]
		r.send(typ, c)
		r.want(want) // never silence
	}
	r.send(wire.TypeWatchTopicUpdate, nil)
	r.closed(patience)
}

// Rule 3: receipts leave in the order of sending, with the sequence ids as they came.
func TestRule03_ReceiptsEchoSequenceIDs(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.producer("echo", "")
	var out []byte
	seqs := []uint64{7, 8, 100, 5, 1 << 40}
	for _, s := range seqs {
		c := wire.Send{ProducerID: 1, SequenceID: s, NumMessages: 1, Highest: s + 1, HasHighest: s == 100}
		out = c.Append(out, wire.Checksum(body("x")), body("x"))
	}
	r.bytes(out)
	for i, s := range seqs {
		got := r.receipt()
		if got.SequenceID != s || got.HasHighest != (s == 100) || s == 100 && got.Highest != 101 || got.ID.Entry != uint64(i) {
			t.Errorf("receipt %d: %+v", i, got)
		}
	}
}

// The ring gives answers in order whatever order the committers have, and swallows everything after a failure.
func TestRule03_RingKeepsOrder(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.producer("ring", "n")
	p := b.srv.holder(t, "persistent://public/default/ring", "n")
	part := b.Topic(t, "ring", 0).Partition(0)
	var tokens []uint64
	for s := range uint64(40) {
		token, ok := p.ring.reserve(&wire.Send{SequenceID: s})
		if !ok {
			t.Fatal("closed")
		}
		tokens = append(tokens, token)
	}
	settle := func(i int, err error) {
		p.ring.done([]engine.Receipt{{Token: tokens[i], Partition: part, Base: core.Offset(i), Err: err}})
	}
	for i := 29; i >= 0; i-- {
		settle(i, nil)
	}
	for s := range uint64(30) {
		if got := r.receipt(); got.SequenceID != s || got.ID.Entry != s {
			t.Fatalf("receipt %+v, want %d", got, s)
		}
	}
	settle(31, nil)
	settle(30, core.ErrUnavailable)
	r.want(wire.TypeCloseProducer)
	settle(32, nil)
	if _, ok := p.ring.reserve(&wire.Send{}); ok {
		t.Error("a closed producer accepts")
	}
	r.pong()
	r.silence()
}

func (s *Server) holder(t *testing.T, topic, name string) *producer {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mu.producers[producerKey{topic, name}]
	if p == nil {
		t.Fatalf("no producer %s on %s", name, topic)
	}
	return p
}

// Rule 5: whoever holds a subscription or a name is probed before another client is told that it is busy, and thrown out
// when it does not answer.
func TestRule05_DeadHoldersAreThrownOut(t *testing.T) {
	b := newBed(t, setup{server: func(c *Config) { c.Probe = 100 * time.Millisecond }})
	dead, live := dial(t, b), dial(t, b)
	dead.subscribe(subscription("probe", "sub"))
	dead.producer("probe", "name")

	live.subscribe(subscription("probe", "sub"))
	if p := live.producer("probe", "name"); p.Name != "name" {
		t.Errorf("%+v", p)
	}
	dead.closed(patience)

	// This holder answers, so the third client is refused.
	third := dial(t, b)
	for typ, c := range map[wire.Type]wire.Command{
		wire.TypeSubscribe: subscription("probe", "sub"),
		wire.TypeProducer:  &wire.Producer{Topic: "probe", ProducerID: 1, RequestID: 77, Name: "name", UserProvidedName: true},
	} {
		if q, ok := c.(*wire.Subscribe); ok {
			q.RequestID = 77
		}
		third.next = 77
		third.send(typ, c)
		live.want(wire.TypePing)
		live.send(wire.TypePong, nil)
		want := map[wire.Type]wire.ServerError{wire.TypeSubscribe: wire.ConsumerBusy, wire.TypeProducer: wire.ProducerBusy}[typ]
		if e := third.refused(); e.Code != want {
			t.Errorf("%v: %+v", typ, e)
		}
	}
	live.pong()
}

// A request that waits for a probe is cancelled by CLOSE.
func TestCloseCancelsAWaitingRequest(t *testing.T) {
	b := newBed(t, setup{})
	holder, waiting := dial(t, b), dial(t, b)
	holder.subscribe(subscription("cancel", "sub"))
	q := subscription("cancel", "sub")
	q.RequestID = waiting.id()
	waiting.send(wire.TypeSubscribe, q)
	holder.want(wire.TypePing)
	waiting.send(wire.TypeSubscribe, q) // twice
	if e := waiting.refused(); e.Code != wire.ServiceNotReady {
		t.Errorf("%+v", e)
	}
	waiting.send(wire.TypeCloseConsumer, &wire.Close{ID: 1, RequestID: waiting.id()})
	waiting.success()
	holder.close()
	eventually(t, "nobody is subscribed", func() bool {
		g, err := b.group(t, "cancel", "sub")
		return err == nil && len(g.Consumers()) == 0
	})
}

// Rule 6: permits count messages; a batch overshoots; a new SUBSCRIBE starts from 0.
func TestRule06_PermitsCountMessages(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	q := subscription("permits", "sub")
	r.subscribe(q)
	p := producerOf(t, b.client(t), batching("permits"))
	for i := range 3 {
		sendBatch(t, p, numbered(fmt.Sprint(i, "-"), 0, 10)...)
	}
	r.pong()
	r.silence() // no permits, no messages
	r.flow(1, 5)
	if m := r.message(); m.ID.Entry != 0 {
		t.Errorf("%+v", m.ID)
	}
	r.silence()
	r.flow(1, 5) // the overshoot is paid back
	r.pong()
	r.silence()
	r.flow(1, 1)
	r.message()
	r.send(wire.TypeCloseConsumer, &wire.Close{ID: 1, RequestID: r.id()})
	r.success()
	r.subscribe(q)
	r.pong()
	r.silence()
	r.flow(1, 1)
	if m := r.message(); m.ID.Entry != 0 || m.Redelivery != 0 {
		t.Errorf("%+v", m)
	}
}

// Rule 7: lookups fail inside their response, with the response field, and never with ServiceNotReady.
func TestRule07_LookupsFailInside(t *testing.T) {
	b := newBed(t, setup{engine: func(c *engine.Config) { c.Defaults.AutoCreate = false }, access: deny{auth.Lookup, auth.Produce, auth.Consume}})
	r := dial(t, b)
	if c := r.lookup("x"); c.Response != wire.LookupFailed || c.Code != uint64(wire.AuthorizationError) || c.Message == "" {
		t.Errorf("%+v", c)
	}
	if c := r.partitions("x", true); c.Response != wire.MetadataFailed || c.Code != uint64(wire.AuthorizationError) {
		t.Errorf("%+v", c)
	}
	b = newBed(t, setup{engine: func(c *engine.Config) { c.Defaults.AutoCreate = false }})
	r = dial(t, b)
	if c := r.partitions("x", false); c.Code != uint64(wire.TopicNotFound) || c.Message != "" {
		t.Errorf("%+v", c)
	}
	for _, row := range table {
		if row.lookup == wire.ServiceNotReady {
			t.Errorf("%v is answered with ServiceNotReady", row.err)
		}
	}
}

// A probe creates nothing.
func TestMetadataCreatesNothing(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	if c := r.partitions("probe-DLQ", true); c.Response != wire.MetadataSuccess || c.Partitions != 0 {
		t.Errorf("%+v", c)
	}
	if c := r.partitions("probe-DLQ", false); c.Response != wire.MetadataFailed || c.Code != uint64(wire.TopicNotFound) {
		t.Errorf("%+v", c)
	}
	r.lookup("probe-DLQ")
	if ts := b.Engine.Topics(); len(ts) != 0 {
		t.Errorf("%d topics", len(ts))
	}
	b = newBed(t, setup{engine: func(c *engine.Config) { c.Defaults.Partitions = 3 }})
	if c := dial(t, b).partitions("made", true); c.Partitions != 3 {
		t.Errorf("%+v", c)
	}
}

type deny []auth.Action

func (d deny) Allow(_ auth.Principal, a auth.Action, _ string) error {
	for _, x := range d {
		if a == x {
			return core.ErrForbidden
		}
	}
	return nil
}

type nobody struct{}

func (nobody) Authenticate(context.Context, auth.Credentials) (auth.Principal, error) {
	return auth.Principal{}, fmt.Errorf("wrong secret: %w", core.ErrUnauthenticated)
}

// Rule 8: CONNECT is answered by CONNECTED or ERROR.
func TestRule08_ConnectIsAnsweredOnce(t *testing.T) {
	b := newBed(t, setup{})
	r := dialSilent(t, b)
	r.send(wire.TypeConnect, &wire.Connect{ClientVersion: "x", ProtocolVersion: 15, AuthMethodName: "token", AuthData: []byte("secret")})
	var c wire.Connected
	r.parse(r.want(wire.TypeConnected), &c)
	if c.ProtocolVersion != 15 || c.ServerVersion == "" || c.MaxMessageSize != 5<<20 || !c.Features.MetadataWithoutCreation {
		t.Errorf("%+v", c)
	}
	r.send(wire.TypeConnect, &wire.Connect{ClientVersion: "x"}) // a second one
	r.closed(patience)

	b = newBed(t, setup{auth: nobody{}})
	r = dialSilent(t, b)
	r.send(wire.TypeConnect, &wire.Connect{ClientVersion: "x", ProtocolVersion: 20})
	var e wire.Error
	r.parse(r.want(wire.TypeError), &e)
	if e.Code != wire.AuthenticationError || e.RequestID != wire.NoRequest || e.Message != "Failed to authenticate" {
		t.Errorf("%+v", e)
	}
	r.closed(patience)

	r = dialSilent(t, b)
	r.send(wire.TypeLookup, &wire.Lookup{Topic: "x", RequestID: 1}) // before CONNECT
	r.closed(patience)
}

// Rule 9: a failed ACK_RESPONSE has a message.
func TestRule09_AckFailureHasAMessage(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.subscribe(subscription("txnack", "sub"))
	a := wire.Ack{ConsumerID: 1, IDs: []wire.MessageID{{Ledger: 1, Partition: -1, BatchIndex: -1}}, HasRequestID: true, RequestID: r.id()}
	frame := a.Append(nil)
	// Name a transaction: field 6 of the command, which has to be last in its frame.
	frame = append(frame, 0x30, 1)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	binary.BigEndian.PutUint32(frame[4:], uint32(len(frame)-8))
	frame[11] += 2
	r.bytes(frame)
	var c wire.AckResponse
	r.parse(r.want(wire.TypeAckResponse), &c)
	if !c.HasCode || c.Message == "" {
		t.Errorf("%+v", c)
	}
}

// Ids that mean nothing are acknowledged in silence.
func TestAcksOfNothing(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.subscribe(subscription("nothing", "sub"))
	ledger := ledgerOf(b.Topic(t, "nothing", 0).Partition(0))
	ids := []wire.MessageID{
		{Ledger: ledger, Entry: 5}, {Ledger: ledger, Entry: wire.NoRequest}, {Ledger: 999, Entry: 0}, {Ledger: wire.NoRequest, Entry: wire.NoRequest},
		{Ledger: ledger, Entry: 0, AckSet: []int64{0}}, {Ledger: 1<<63 - 1, Entry: 1<<63 - 1},
	}
	for _, id := range ids {
		for _, kind := range []int32{wire.AckIndividual, wire.AckCumulative} {
			if c := r.ackWithResponse(1, kind, id); c.HasCode {
				t.Errorf("%+v: %+v", id, c)
			}
		}
	}
	r.bytes((&wire.Ack{ConsumerID: 55, HasRequestID: true, RequestID: 9}).Append(nil)) // unknown consumer: silence
	r.pong()
	r.silence()
	if got := b.mark(t, "nothing", "sub", 0); got != 0 {
		t.Errorf("mark %d", got)
	}
}

// Rule 10: every MESSAGE has the checksum section, also when the producer sent none, and of another protocol's messages.
// (raw.message checks it.)
func TestRule10_ChecksumAlways(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.subscribe(subscription("sum", "sub"))
	r.flow(1, 10)
	r.producer("sum", "")
	checked := body("old client")
	c := wire.Send{ProducerID: 1, NumMessages: 1}
	frame := c.Append(nil, 0, nil)
	frame = append(frame[:len(frame)-6], checked...) // without magic and sum
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	r.bytes(frame)
	r.receipt()
	if m := r.message(); string(m.payload.Body) != "old client" {
		t.Errorf("%q", m.payload.Body)
	}
	b.neutral(t, "sum", &core.Message{Body: []byte("from mqtt")})
	if m := r.message(); string(m.payload.Body) != "from mqtt" {
		t.Errorf("%q", m.payload.Body)
	}
}

// neutral publishes a message as another protocol does.
func (b *bed) neutral(t testing.TB, topic string, m *core.Message) {
	t.Helper()
	done := make(chan error, 1)
	p := b.Engine.NewProducer("mqtt", func(rs []engine.Receipt) { done <- rs[0].Err })
	defer p.Close()
	e := core.Entry{
		Count: 1, Key: m.Key, OrderingKey: m.OrderingKey, PublishTime: m.PublishTime, Producer: []byte(m.Producer), SeqLow: m.Sequence,
		SeqHigh: m.Sequence, Data: m.AppendNeutral(nil),
	}
	if m.HasKey {
		e.Flags |= core.FlagHasKey
	}
	if m.NullBody {
		e.Flags |= core.FlagNullBody
	}
	if err := p.Publish(b.Topic(t, topic, 0).Partition(0), &e, 1); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Rule 11: a Go client gets no SEND_ERROR that would leave its producer dead; others get the error of the one message.
func TestRule11_SendErrors(t *testing.T) {
	b := newBed(t, setup{})
	for version, want := range map[string]wire.Type{"Pulsar-Go-0.19.0": wire.TypeCloseProducer, "Pulsar-Java-v3.0.0": wire.TypeSendError} {
		r := dialSilent(t, b)
		r.send(wire.TypeConnect, &wire.Connect{ClientVersion: version, ProtocolVersion: 20})
		r.want(wire.TypeConnected)
		r.producer("deny", "")
		c := wire.Send{ProducerID: 1, SequenceID: 3, NumMessages: 1}
		frame := c.Append(nil, wire.Checksum(body("x")), body("x"))
		at := 12 + int(frame[11]) // the end of the command: add a message id, which is for replication
		frame = append(frame[:at:at], append([]byte{0x4a, 0}, frame[at:]...)...)
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
		binary.BigEndian.PutUint32(frame[4:], uint32(at-8+2))
		frame[11] += 2
		r.bytes(frame)
		f := r.want(want)
		if want == wire.TypeSendError {
			var e wire.SendError
			r.parse(f, &e)
			if e.SequenceID != 3 || e.Code != wire.NotAllowedError {
				t.Errorf("%+v", e)
			}
			r.publish(4, "next")
			r.receipt()
			continue
		}
		r.publish(4, "swallowed")
		r.pong()
		r.silence()
		r.producer("deny", "") // comes back under the same id
		r.publish(4, "again")
		r.receipt()
	}
}

func TestChecksumMismatch(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	r.producer("crc", "")
	c := wire.Send{ProducerID: 1, SequenceID: 1, NumMessages: 1}
	r.publish(0, "fine")
	r.bytes(c.Append(nil, 12345, body("broken")))
	r.publish(2, "fine")
	r.receipt()
	var e wire.SendError
	r.parse(r.want(wire.TypeSendError), &e)
	if e.Code != wire.ChecksumError || e.SequenceID != 1 {
		t.Errorf("%+v", e)
	}
	if got := r.receipt(); got.SequenceID != 2 || got.ID.Entry != 1 {
		t.Errorf("%+v", got)
	}
}

func TestProducerNames(t *testing.T) {
	b := newBed(t, setup{})
	r, other := dial(t, b), dial(t, b)
	p := r.producer("names", "")
	if p.Name == "" || p.LastSequenceID != -1 {
		t.Errorf("%+v", p)
	}
	if again := r.producer("names", ""); again.Name != p.Name { // the same id: the same answer
		t.Errorf("%+v", again)
	}
	if q := other.producer("names", ""); q.Name == p.Name {
		t.Errorf("%q twice", q.Name)
	}
	r.send(wire.TypeProducer, &wire.Producer{Topic: "names", ProducerID: 2, RequestID: r.id(), Name: p.Name})
	if e := r.refused(); e.Code != wire.ProducerBusy {
		t.Errorf("%+v", e)
	}
	r.publish(1, "x")
	r.send(wire.TypeCloseProducer, &wire.Close{ID: 1, RequestID: r.id()})
	r.receipt() // before the SUCCESS
	r.success()
	r.publish(2, "late") // swallowed
	r.send(wire.TypeCloseProducer, &wire.Close{ID: 77, RequestID: r.id()})
	r.success() // unknown is fine
	r.send(wire.TypeProducer, &wire.Producer{Topic: "names", ProducerID: 3, RequestID: r.id(), Name: p.Name, AccessMode: wire.AccessExclusive})
	if e := r.refused(); e.Code != wire.NotAllowedError {
		t.Errorf("%+v", e)
	}
	c := wire.Send{ProducerID: 500, NumMessages: 1}
	r.bytes(c.Append(nil, wire.Checksum(body("")), body("")))
	r.closed(patience)
}

// Keep-alive: PING after a quiet interval, the end after another; CONNECT within one.
func TestKeepAlive(t *testing.T) {
	b := newBed(t, setup{server: func(c *Config) { c.KeepAlive = 100 * time.Millisecond }})
	r := dial(t, b)
	silent := dialSilent(t, b)
	for range 3 {
		f, err := r.frame(patience)
		if err != nil || f.Type != wire.TypePing {
			t.Fatalf("%v %v", f.Type, err)
		}
		r.send(wire.TypePong, nil)
	}
	r.closed(patience)
	silent.closed(patience)
	if len(silent.held) != 0 {
		t.Errorf("a silent connection was told %v", silent.held[0].Type)
	}
}

// At shutdown clients are told, and what they sent has its receipt.
func TestGoodbye(t *testing.T) {
	b := newBed(t, setup{})
	ctx, stop := context.WithCancel(context.Background())
	cfg := NewConfig()
	cfg.Bind = "127.0.0.1:0"
	srv := New(cfg, b.Engine, auth.Anonymous{}, auth.Anonymous{}, nil)
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	r := dial(t, &bed{Bed: b.Bed, srv: srv})
	r.subscribe(subscription("bye", "sub"))
	r.producer("bye", "")
	r.publish(1, "x")
	r.receipt()
	stop()
	r.want(wire.TypeCloseConsumer)
	r.want(wire.TypeCloseProducer)
	r.closed(patience)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestErrorTableIsComplete(t *testing.T) {
	for _, err := range core.Errors() {
		if code := codeOf(fmt.Errorf("wrapped: %w", err)); code == wire.UnknownError || code > wire.ProducerFenced {
			t.Errorf("%v has code %d", err, code)
		}
		if code := lookupCodeOf(err); code == wire.UnknownError {
			t.Errorf("%v has no lookup code", err)
		}
	}
	if codeOf(errors.New("something else")) != wire.UnknownError {
		t.Error("what is not in the table is unknown")
	}
}

// The epoch of a Java consumer comes back in its messages: the client drops those of before its REDELIVER.
func TestConsumerEpoch(t *testing.T) {
	b := newBed(t, setup{})
	r := dial(t, b)
	q := subscription("epoch", "sub")
	q.HasConsumerEpoch, q.ConsumerEpoch = true, 0
	r.subscribe(q)
	r.flow(1, 10)
	r.producer("epoch", "")
	r.publish(1, "x")
	if m := r.message(); !m.HasEpoch || m.Epoch != 0 {
		t.Errorf("%+v", m.Message)
	}
	r.send(wire.TypeRedeliver, &wire.Redeliver{ConsumerID: 1, HasEpoch: true, Epoch: 1})
	if m := r.message(); !m.HasEpoch || m.Epoch != 1 || m.Redelivery != 0 {
		t.Errorf("%+v", m.Message)
	}
}

// A client may send its first large message together with CONNECT.
func TestLargeFrameRightAfterConnect(t *testing.T) {
	b := newBed(t, setup{})
	r := dialSilent(t, b)
	out := wire.Append(nil, wire.TypeConnect, &wire.Connect{ClientVersion: "Pulsar-Java", ProtocolVersion: 20})
	out = wire.Append(out, wire.TypeProducer, &wire.Producer{Topic: "large", ProducerID: 1, RequestID: 1})
	large := body(string(make([]byte, 5<<20-100)))
	c := wire.Send{ProducerID: 1, NumMessages: 1}
	out = c.Append(out, wire.Checksum(large), large)
	r.bytes(out)
	r.want(wire.TypeConnected)
	r.want(wire.TypeProducerSuccess)
	r.receipt()
}
