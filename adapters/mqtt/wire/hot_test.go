package wire

import (
	"bytes"
	"testing"
)

func hotPublish() []byte {
	var p Publish
	p.QoS, p.ID, p.Topic = 1, 7, []byte("devices/vdevo170000000001/telem")
	p.Payload = bytes.Repeat([]byte("x"), 128)
	p.Properties.SetNum(MessageExpiry, 60)
	p.Properties.SetText(ContentType, []byte("application/json"))
	p.Properties.User = append(p.Properties.User, Pair{[]byte("k"), []byte("v")})
	return p.Append(nil, V5)
}

func TestHotPathAllocatesNothing(t *testing.T) {
	packet, ack := hotPublish(), AppendAck(nil, PUBACK, 7, Success, V5)
	var p Publish
	var a Ack
	dst := make([]byte, 0, 1024)
	m := Message{Topic: "a/b", Props: []byte{0x03, 0, 1, 'x'}, Payload: []byte("body"), Expires: true, Expiry: 9}
	f := Forward{QoS: 1, ID: 3, SubscriptionIDs: []uint32{1, 200}}
	if n := testing.AllocsPerRun(200, func() {
		h, body, _, _ := Split(packet, V5, 1<<20)
		if err := p.Parse(h.Flags, body, V5, &limits); err != nil {
			t.Fatal(err)
		}
		dst = AppendAck(dst[:0], PUBACK, p.ID, Success, V5)
		_, body, _, _ = Split(ack, V5, 1<<20)
		if err := a.Parse(PUBACK, body, V5, &limits); err != nil {
			t.Fatal(err)
		}
		dst = AppendForward(dst[:0], &m, &f, V5)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
	if len(dst) != ForwardSize(&m, &f, V5) {
		t.Fatal("ForwardSize is wrong")
	}
}

// A forwarded message reads back as it was meant.
func TestForward(t *testing.T) {
	m := Message{Topic: "a/b", Props: []byte{0x03, 0, 1, 'x'}, Payload: []byte("body"), Expires: true, Expiry: 9}
	f := Forward{QoS: 1, ID: 3, Retain: true, SubscriptionIDs: []uint32{1, 200}}
	for _, v := range []Version{V311, V5} {
		b := AppendForward(nil, &m, &f, v)
		h, body, n, err := Split(b, v, 0)
		if err != nil || n != len(b) {
			t.Fatal(n, err)
		}
		var p Publish
		if err := p.Parse(h.Flags, body, v, &limits); err != nil {
			t.Fatal(err)
		}
		if string(p.Topic) != "a/b" || p.ID != 3 || !p.Retain || string(p.Payload) != "body" {
			t.Fatalf("%+v", p)
		}
		if v == V5 && (p.Properties.Num(MessageExpiry, 0) != 9 || string(p.Properties.Text(ContentType)) != "x" ||
			len(p.Properties.SubscriptionIDs) != 2 || p.Properties.SubscriptionIDs[1] != 200) {
			t.Fatalf("%+v", p.Properties)
		}
	}
}

func BenchmarkPublishParse(b *testing.B) {
	packet := hotPublish()
	var p Publish
	b.SetBytes(int64(len(packet)))
	b.ReportAllocs()
	for b.Loop() {
		h, body, _, _ := Split(packet, V5, 1<<20)
		if err := p.Parse(h.Flags, body, V5, &limits); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForward(b *testing.B) {
	m := Message{Topic: "devices/42/telemetry", Payload: bytes.Repeat([]byte("x"), 128)}
	f := Forward{QoS: 1, ID: 3}
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendForward(dst[:0], &m, &f, V5)
	}
}
