package rocketmq

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// Spec: RocketMQ RequestCode.SEND_MESSAGE=10, PULL_MESSAGE=11
func TestSendThenPull(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	props := "TAGS\x01a\x02KEYS\x01k1\x02UNIQ_KEY\x01U1\x02WAIT\x01true\x02p\x01ü\x02"
	r := c.send(wire.Success, "T", 2, props, "hello")
	part := g.Topic(t, "T", 0).Partition(2)
	if _, phys, err := wire.ParseMessageID(r.ext["msgId"]); err != nil || phys != physOffset(part.Number(), 0) || r.int("queueId") != 2 || r.int("queueOffset") != 0 {
		t.Errorf("send result %q %v", r.ext, err)
	}
	c.heartbeat("g", "T", "*", "")
	r = c.pull(wire.Success, "g", "T", 2, 0)
	ms := r.messages(t)
	if len(ms) != 1 || r.int("nextBeginOffset") != 1 || r.int("minOffset") != 0 || r.int("maxOffset") != 1 {
		t.Fatalf("%q %+v", r.ext, ms)
	}
	m := ms[0]
	if string(m.Body) != "hello" || string(m.Properties) != props || m.Flag != 5 || m.Topic != "T" || m.QueueID != 2 || m.Born != 1796075311183 ||
		m.BornHost.String() != c.c.LocalAddr().String() || m.StoreHost.String() != g.addr || m.PhysOffset != physOffset(part.Number(), 0) {
		t.Errorf("message %+v", m)
	}
	if age := time.Since(time.UnixMilli(m.StoreTime)); age < 0 || age > time.Minute {
		t.Errorf("stored %v ago", age)
	}
}

// One-letter names, the binary header form, and a call that wants no answer.
// Spec: RocketMQ RequestCode.SEND_MESSAGE_V2=310; RocketMQSerializable
func TestSendForms(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	short := []string{"a", "pg", "b", "T", "e", "0", "f", "0", "g", "1", "h", "0", "i", "", "j", "0"}
	c.call(wire.Success, wire.SendMessageV2, []byte("v2"), short...)
	h := wire.Header{Code: wire.SendMessageV2, Opaque: 77}
	for i := 0; i < len(short); i += 2 {
		h.Ext = append(h.Ext, wire.Field{Key: []byte(short[i]), Value: []byte(short[i+1])})
	}
	for _, flag := range []int32{wire.FlagOneway, 0} {
		h.Flag = flag
		header := h.AppendBinary(nil)
		b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+1))
		b = binary.BigEndian.AppendUint32(b, 1<<24|uint32(len(header)))
		if _, err := c.c.Write(append(append(b, header...), 'x')); err != nil {
			t.Fatal(err)
		}
	}
	if r := c.answer(77); r.code != wire.Success || r.int("queueOffset") != 2 {
		t.Errorf("%+v", r)
	}
}

func batchBody(bodies ...string) []byte {
	var out []byte
	for _, body := range bodies {
		out = appendBatch(out, body, "TAGS\x01t\x02")
	}
	return out
}

func appendBatch(out []byte, body, props string) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(22+len(body)+len(props)))
	out = append(out, make([]byte, 12)...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	out = append(out, body...)
	out = binary.BigEndian.AppendUint16(out, uint16(len(props)))
	return append(out, props...)
}

// Spec: RocketMQ RequestCode.SEND_BATCH_MESSAGE=320
func TestBatchIsSingleMessages(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	ext := append(sendExt("T", 1, ""), "batch", "true")
	r := c.call(wire.Success, wire.SendBatch, batchBody("a", "b", "c"), ext...)
	if ids := strings.Split(r.ext["msgId"], ","); len(ids) != 3 || r.int("queueOffset") != 0 || r.int("queueId") != 1 {
		t.Errorf("%q", r.ext)
	}
	c.heartbeat("g", "T", "t", "")
	ms := c.pull(wire.Success, "g", "T", 1, 0).messages(t)
	if len(ms) != 3 || string(ms[2].Body) != "c" || ms[2].QueueOffset != 2 {
		t.Fatalf("%+v", ms)
	}
	ids := map[string]bool{}
	for _, m := range ms {
		ids[string(wire.FindProperty(m.Properties, wire.PropUniqKey))] = true
	}
	if len(ids) != 3 || ids[""] {
		t.Errorf("ids %v: the Go client gives batch entries none, so each needs one of ours", ids)
	}
	good := batchBody("a", "b")
	for n := 1; n < len(good); n++ {
		if n != len(batchBody("a")) {
			c.call(wire.MessageIllegal, wire.SendBatch, good[:n], ext...)
		}
	}
	c.call(wire.MessageIllegal, wire.SendBatch, nil, ext...)
	c.call(wire.MessageIllegal, wire.SendBatch, good, append(sendExt("%RETRY%g", 0, ""), "batch", "true")...)
	if _, next := g.Topic(t, "T", 0).Partition(1).Bounds(); next != 3 {
		t.Errorf("%d messages: a malformed batch is refused whole", next)
	}
}

// Spec: RocketMQ SendMessageProcessor (checks)
func TestSendChecks(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	for _, x := range []struct {
		what  string
		code  wire.Code
		topic string
		queue int
		props string
		body  string
	}{
		{"empty topic", wire.InvalidParameter, "", 0, "", "x"},
		{"long topic", wire.InvalidParameter, strings.Repeat("t", 128), 0, "", "x"},
		{"bad characters", wire.InvalidParameter, "a/b", 0, "", "x"},
		{"system topic", wire.NoPermission, "SCHEDULE_TOPIC_XXXX", 0, "", "x"},
		{"template topic", wire.NoPermission, "TBW102", 0, "", "x"},
		{"no such queue", wire.InvalidParameter, "T", 8, "", "x"},
		{"long body", wire.MessageIllegal, "T", 0, "", strings.Repeat("x", 4<<20+1)},
		{"long properties", wire.MessageIllegal, "T", 0, "p\x01" + strings.Repeat("x", 32768) + "\x02", "x"},
		{"level 0 is no delay", wire.Success, "T", 0, "DELAY\x010\x02", "x"},
		{"server picks", wire.Success, "T", -1, "", "x"},
		{"empty body", wire.Success, "T", 0, "", ""},
		{"trace", wire.Success, "RMQ_SYS_TRACE_TOPIC", 0, "", "x"},
		{"retry of a consumer", wire.Success, "%RETRY%g", 0, "", "x"},
	} {
		t.Run(x.what, func(t *testing.T) { c.t = t; c.send(x.code, x.topic, x.queue, x.props, x.body) })
	}
	c.t = t
	c.call(wire.SystemError, wire.SendMessage, nil, "topic", "T")
	c.call(wire.NotSupported, wire.SendMessage, nil, append(sendExt("T", 0, ""), "sysFlag", "4")...)
	c.call(wire.NotSupported, 999, nil)
	c.call(wire.NotSupported, 200050, nil)
}

// A producer's own key stays where the producer put it, and the keyless are dealt out by the engine when asked to.
func TestPlacement(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	want := int64(core.Murmur3_32([]byte("k")) & 0x7fffffff % 8)
	if r := c.send(wire.Success, "T", -1, "KEYS\x01k\x02", "x"); r.int("queueId") != want {
		t.Errorf("queue %s, want %d", r.ext["queueId"], want)
	}
	if r := c.send(wire.Success, "T", 3, "KEYS\x01k\x02", "x"); r.int("queueId") != 3 {
		t.Errorf("queue %s", r.ext["queueId"])
	}
	seen := map[int64]bool{}
	for range 8 {
		seen[c.send(wire.Success, "T", -1, "", "x").int("queueId")] = true
	}
	if len(seen) != 8 {
		t.Errorf("queues %v", seen)
	}
}

// In a topic with placement by key, each keyed message of a batch lies where its key belongs, as single messages do.
func TestBatchIsPlacedByKey(t *testing.T) {
	g := newGateway(t, nil)
	n, err := core.ParseTopicName("T", "public", "default")
	if err != nil {
		t.Fatal(err)
	}
	topic, err := g.Engine.DeclareTopic(n, engine.TopicSpec{Partitions: 8, ByKey: true})
	if err != nil {
		t.Fatal(err)
	}
	var body []byte
	want := map[int32]int64{}
	for _, key := range []string{"", "a", "b", "c", "a"} {
		props := ""
		queue := int32(3)
		if key != "" {
			props = "KEYS\x01" + key + "\x02"
			queue = int32(core.Murmur3_32([]byte(key)) & 0x7fffffff % 8)
		}
		want[queue]++
		body = appendBatch(body, "x", props)
	}
	c := g.dial(t)
	r := c.call(wire.Success, wire.SendBatch, body, append(sendExt("T", 3, ""), "batch", "true")...)
	if ids := strings.Split(r.ext["msgId"], ","); len(ids) != 5 || r.int("queueId") != 3 {
		t.Errorf("%q", r.ext)
	}
	for i := range topic.Logs() {
		if _, next := topic.Partition(i).Bounds(); next != want[i] {
			t.Errorf("queue %d holds %d, want %d", i, next, want[i])
		}
	}
}

// Pipelined sends are answered all, in one go or more, each with its own offset.
func TestPipelinedSends(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	const n = 500
	var out bytes.Buffer
	for i := range n {
		h := wire.Header{Code: wire.SendMessage, Opaque: int32(1000 + i)}
		ext := sendExt("T", 0, "")
		for j := 0; j < len(ext); j += 2 {
			h.Ext = append(h.Ext, wire.Field{Key: []byte(ext[j]), Value: []byte(ext[j+1])})
		}
		out.Write(wire.AppendFrame(nil, &h, fmt.Append(nil, i)))
	}
	if _, err := c.c.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	for range n {
		r, err := c.next()
		if err != nil || r.code != wire.Success || r.int("queueOffset") != int64(r.opaque-1000) {
			t.Fatalf("%v %+v", err, r)
		}
	}
}

func TestAutoCreateOff(t *testing.T) {
	g := newGateway(t, nil)
	g.Bed.Stop(t)
	g.Config.Defaults.AutoCreate = false
	g.Bed.Start(t)
	g.serve(t, Config{Bind: "127.0.0.1:0"})
	c := g.dial(t)
	c.send(wire.TopicNotExist, "T", 0, "", "x")
	c.call(wire.TopicNotExist, wire.GetRoute, nil, "topic", "T")
	c.call(wire.NoPermission, wire.GetRoute, nil, "topic", "TBW102")
}
