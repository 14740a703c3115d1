package pulsar

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
)

// What other protocols publish arrives at a stock client, whatever they leave out.
func TestForeignMessagesAtAStockClient(t *testing.T) {
	b := newBed(t, setup{})
	c := b.client(t)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "foreign", Type: stock.Shared, AckWithResponse: true})
	binary := []byte{0xff, 0x00, 0xfe}
	event := time.UnixMilli(1700000000123)
	for _, m := range []core.Message{
		{Body: []byte("plain")},
		{Key: []byte("device-7"), HasKey: true, OrderingKey: []byte("o"), Body: []byte("keyed"), Producer: "sensor", PublishTime: event.UnixMilli(), EventTime: event.UnixMilli()},
		{Key: binary, HasKey: true, Body: []byte("binary key")},
		{Key: []byte{}, HasKey: true, Body: []byte("empty key")},
		{Body: nil},
		{Key: []byte("k"), HasKey: true, Body: []byte{}, NullBody: true},
		{Properties: []core.Property{{Key: "a", Value: "1"}, {Key: "b", Value: "ü"}}, Routed: []core.Property{{Key: "site", Value: "x"}}, Tag: "t", Body: nil},
		{Body: bytes.Repeat([]byte("x"), 300<<10)},
	} {
		b.neutral(t, "foreign", &m)
		got := receive(t, k)
		want := map[string]string{}
		for _, p := range append(m.Properties, m.Routed...) {
			want[p.Key] = p.Value
		}
		if m.Tag != "" {
			want["TAGS"] = m.Tag
		}
		producer := m.Producer
		if producer == "" {
			producer = "isthmus"
		}
		key := string(m.Key)
		if bytes.Equal(m.Key, binary) {
			key = base64.StdEncoding.EncodeToString(binary)
		}
		if !bytes.Equal(got.Payload(), m.Body) || got.Key() != key || got.ProducerName() != producer || got.OrderingKey() != string(m.OrderingKey) {
			t.Errorf("%+v: body %q key %q order %q by %q", m, got.Payload(), got.Key(), got.OrderingKey(), got.ProducerName())
		}
		if props := got.Properties(); len(props)+len(want) > 0 && !reflect.DeepEqual(props, want) {
			t.Errorf("properties %v, want %v", props, want)
		}
		if m.EventTime != 0 && (!got.EventTime().Equal(event) || !got.PublishTime().Equal(event)) {
			t.Errorf("times %v %v", got.EventTime(), got.PublishTime())
		}
		if err := k.Ack(got); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "every message is acknowledged", func() bool { return b.mark(t, "foreign", "sub", 0) == 8 })
}

// The same message always has the same bytes: they are a promise to clients that compare what they got twice.
func TestEncodingIsStable(t *testing.T) {
	m := core.Message{
		Key: []byte("k"), HasKey: true, OrderingKey: []byte("o"), Tag: "t", Properties: []core.Property{{Key: "a", Value: "1"}},
		Body: []byte("body"), PublishTime: 1700000000000, EventTime: 1700000000001, Producer: "p", Sequence: 5,
	}
	want := "0000002d" + // size of the metadata
		"0a0170" + "1005" + "1880d095ffbc31" + // producer, sequence, publish time
		"22060a0161120131" + "22090a0454414753120174" + // properties a=1, TAGS=t
		"32016b" + "6081d095ffbc31" + "9201016f" + // key, event time, ordering key
		"626f6479"
	if got := hex.EncodeToString(encode(nil, &m)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	empty := core.Message{Producer: "p", Key: []byte("k"), HasKey: true, NullBody: true}
	want = "0000000f" + "0a0170" + "1000" + "1800" + "32016b" + "5801" + "c80101" + // a batch of one, null
		"00000009" + "12016b" + "1800" + "4000" + "4801" // its message, without a body
	if got := hex.EncodeToString(encode(nil, &empty)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// What the gateway encodes it can decode: nothing is lost on the way through Pulsar's form.
func TestEncodeDecode(t *testing.T) {
	for _, m := range []core.Message{
		{Body: []byte("x"), Producer: "p", Sequence: 3, PublishTime: 4, EventTime: 5},
		{Key: []byte{0xff}, HasKey: true, OrderingKey: []byte("o"), Body: []byte("x"), Producer: "p", Tag: "t", Properties: []core.Property{{Key: "a", Value: ""}, {Key: "a", Value: "2"}}},
		{Key: []byte("k"), HasKey: true, Producer: "p", NullBody: true, Body: []byte{}, Sequence: 9},
		{Producer: "p", Body: []byte{}},
	} {
		checked := encode(nil, &m)
		e := core.Entry{Count: 1, Format: core.FormatPulsar, Data: append([]byte{0, 0, 0, 0}, checked...)}
		got, err := Decode(&e, nil)
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], m) {
			t.Errorf("%v\n got %+v\nwant %+v", err, got, m)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := encode(nil, &core.Message{Body: []byte("body"), Producer: "p"})
	sum := []byte{0, 0, 0, 0}
	for i := range len(good) - 4 { // the last bytes are body, which may be shorter
		e := core.Entry{Count: 1, Format: core.FormatPulsar, Data: append(sum, good[:i]...)}
		if got, err := Decode(&e, nil); err == nil || len(got) != 0 {
			t.Errorf("cut at %d is read as %v", i, got)
		}
	}
	meta := wire.OutMetadata{Producer: "p"}
	for name, extra := range map[string][]byte{"encrypted": {0x6a, 0}, "a chunk": {0xe8, 1, 0}, "compressed": {0x40, 3, 0x48, 9}} {
		b := append(meta.Append(nil, nil), extra...)
		e := core.Entry{Count: 1, Format: core.FormatPulsar, Data: append(append(append([]byte{}, sum...), 0, 0, 0, byte(len(b))), append(b, "junk"...)...)}
		if got, err := Decode(&e, nil); err == nil || len(got) != 0 {
			t.Errorf("%s is read as %v", name, got)
		}
	}
}

func TestHeld(t *testing.T) {
	var h held
	for i := range int64(200) {
		h.add(i*10, 10)
	}
	for i := range int64(200) {
		if i%50 != 7 {
			h.drop(i * 10)
		}
	}
	if len(h.queue) > 100 {
		t.Errorf("%d in the queue for 4", len(h.queue))
	}
	if h.count(70) != 10 || h.count(80) != 0 || h.count(75) != 0 {
		t.Error("counts")
	}
	if s, ok := h.covering(75); !ok || s.base != 70 {
		t.Errorf("covering %v %v", s, ok)
	}
	if _, ok := h.covering(80); ok {
		t.Error("covering what is gone")
	}
	h.add(100, 5) // comes again, out of order
	if h.count(100) != 5 {
		t.Error("out of order")
	}
	h.drop(100)
	h.dropBelow(1000)
	if h.count(70) != 0 || h.count(1070) != 10 || h.count(100) != 0 {
		t.Error("below")
	}
	h.dropBelow(1 << 40)
	if len(h.queue) != 0 || h.gone != 0 {
		t.Errorf("%+v", h)
	}
}

func TestConfig(t *testing.T) {
	if err := NewConfig().Validate(); err != nil {
		t.Error(err)
	}
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("zero values are defaults: %v", err)
	}
	c := Config{Bind: "x", Advertise: "y", MaxMessageSize: 1, KeepAlive: 1, Probe: -1, Connections: -1, Pending: -1, OutBytes: 1, Grace: -1}
	err := c.Validate()
	if err == nil || bytes.Count([]byte(err.Error()), []byte("\n")) != 8 {
		t.Errorf("%v", err)
	}
}

func TestSplitPartition(t *testing.T) {
	for in, want := range map[string]string{
		"x-partition-3": "x 3 true", "x-partition-03": "x-partition-03 0 false", "x-partition-": "x-partition- 0 false",
		"a-partition-1-partition-2": "a-partition-1 2 true", "-partition-1": "-partition-1 0 false", "x-partition--1": "x-partition--1 0 false",
		"x-partition-99999999999": "x-partition-99999999999 0 false", "x": "x 0 false",
	} {
		base, index, ok := splitPartition(in)
		if got := fmt.Sprint(base, " ", index, " ", ok); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestTopicsHash(t *testing.T) {
	// Guava's crc32c of "123456789" is printed in little endian order.
	if got := topicsHash([]string{"123456789"}); got != "839206e3" {
		t.Errorf("%s", got)
	}
	if topicsHash([]string{"b", "a"}) != topicsHash([]string{"a", "b"}) {
		t.Error("order matters")
	}
}
