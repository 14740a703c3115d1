package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// frame loads a frame that rocketmq-client-go v2 sent (v2.1.3 pre-release, 2025-12).
func frame(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "frames", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, b []byte) (Frame, *Header) {
	t.Helper()
	f, n, err := Next(b, MaxFrame)
	if err != nil || n != len(b) {
		t.Fatalf("took %d of %d bytes: %v", n, len(b), err)
	}
	h := new(Header)
	if err := f.Parse(h); err != nil {
		t.Fatal(err)
	}
	return f, h
}

func ext(h *Header) map[string]string {
	m := make(map[string]string)
	for _, f := range h.Ext {
		m[string(f.Key)] = string(f.Value)
	}
	return m
}

func TestGoldenSend(t *testing.T) {
	f, h := parse(t, frame(t, "send"))
	if h.Code != SendMessage || h.Language != Go || h.Version != 317 || h.Flag != 0 || h.Opaque == 0 {
		t.Errorf("header %+v", h)
	}
	var s Send
	if err := ParseSend(h, &s); err != nil {
		t.Fatal(err)
	}
	if string(s.Group) != "pg" || string(s.Topic) != "TopicA" || string(s.DefaultTopic) != TemplateTopic || s.DefaultQueues != 4 ||
		s.QueueID != 0 || s.SysFlag != 0 || s.Born < 1e12 || s.Batch || string(f.Body) != "hello" {
		t.Errorf("send %+v body %q", s, f.Body)
	}
	got := map[string]string{}
	for b := s.Properties; ; {
		n, v, rest, ok := NextProperty(b)
		if !ok {
			break
		}
		got[string(n)], b = string(v), rest
	}
	delete(got, PropUniqKey)
	want := map[string]string{PropTags: "tagA", PropKeys: "k1", PropShardingKeyGo: "s1", `naïve "q"`: "v\\ü\n"}
	if !maps.Equal(got, want) {
		t.Errorf("properties %q", got)
	}
}

func TestGoldenBatch(t *testing.T) {
	f, h := parse(t, frame(t, "batch"))
	var s Send
	if err := ParseSend(h, &s); err != nil || h.Code != SendBatch || !s.Batch || string(s.Topic) != "TopicA" {
		t.Fatalf("%v %+v", err, s)
	}
	e, rest, err := NextBatchEntry(f.Body)
	if err != nil || string(e.Body) != "b1" || string(FindProperty(e.Properties, PropTags)) != "x" {
		t.Fatalf("%v %+v", err, e)
	}
	e, rest, err = NextBatchEntry(rest)
	if err != nil || string(e.Body) != "b2" || len(rest) != 0 {
		t.Fatalf("%v %+v rest %d", err, e, len(rest))
	}
}

func TestGoldenOthers(t *testing.T) {
	_, h := parse(t, frame(t, "pull"))
	var p Pull
	if err := ParsePull(h, &p); err != nil || string(p.Group) != "cg" || p.MaxMessages != 32 || p.SysFlag != PullSuspend ||
		p.SuspendMillis != 20000 || p.Commit != -1 || len(p.Subscription) != 0 {
		t.Errorf("pull %v %+v", err, p)
	}
	_, h = parse(t, frame(t, "commit"))
	var c Commit
	if err := ParseCommit(h, &c); err != nil || string(c.Group) != "cg" || string(c.Topic) != "TopicA" || c.Offset != 0 {
		t.Errorf("commit %v %+v", err, c)
	}
	f, _ := parse(t, frame(t, "heartbeat"))
	hb, err := ParseHeartbeat(f.Body)
	if err != nil || hb.ClientID != "192.0.2.2@inst" || len(hb.Consumers) != 1 {
		t.Fatalf("heartbeat %v %+v", err, hb)
	}
	d := hb.Consumers[0]
	if d.Group != "cg" || len(d.Subscriptions) != 2 || d.Subscriptions[0].Expression != "tagA || b" || d.Subscriptions[0].Version == 0 {
		t.Errorf("consumer %+v", d)
	}
	for _, name := range []string{"lock", "unlock"} {
		f, _ = parse(t, frame(t, name))
		l, err := ParseLocks(f.Body)
		if err != nil || l.Group != "cg" || l.ClientID != "192.0.2.2@inst" || len(l.Queues) == 0 || l.Queues[0].BrokerName != "b" {
			t.Errorf("%s %v %+v", name, err, l)
		}
	}
	for name, want := range map[string]map[string]string{
		"route":        {"topic": "TopicA"},
		"members":      {"consumerGroup": "cg"},
		"max-offset":   {"topic": "TopicA", "queueId": "0", "bname": "b"},
		"query-offset": {"consumerGroup": "cg", "topic": "TopicA", "queueId": "0", "bname": "b"},
	} {
		if _, h = parse(t, frame(t, name)); !maps.Equal(ext(h), want) {
			t.Errorf("%s %q", name, ext(h))
		}
	}
}

// A frame cut at any byte is "not yet"; one whose inner lengths are cut is malformed, never a panic.
func TestTruncation(t *testing.T) {
	names, err := filepath.Glob("testdata/frames/*.hex")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		b := frame(t, strings.TrimSuffix(filepath.Base(name), ".hex"))
		for n := range len(b) {
			if _, took, err := Next(b[:n], MaxFrame); took != 0 || err != nil {
				t.Fatalf("%s cut at %d: %d %v", name, n, took, err)
			}
		}
		f, _, _ := Next(b, MaxFrame)
		for n := range len(f.Header) {
			var h Header
			short := Frame{Header: bytes.Clone(f.Header[:n])}
			if err := short.Parse(&h); !errors.Is(err, ErrMalformed) {
				t.Fatalf("%s header cut at %d: %v", name, n, err)
			}
		}
	}
}

func TestFrameLimits(t *testing.T) {
	for name, b := range map[string][]byte{
		"2 GiB":        {0x7F, 0xFF, 0xFF, 0xFF},
		"negative":     {0xFF, 0xFF, 0xFF, 0xFF},
		"too short":    {0, 0, 0, 3},
		"over limit":   {1, 0, 0, 1},
		"header first": {0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 0},
	} {
		if _, n, err := Next(b, MaxFrame); n != 0 || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %d %v", name, n, err)
		}
	}
	if _, n, err := Next([]byte{0, 0, 0, 4, 9, 0, 0, 0}, MaxFrame); n != 8 || err != nil {
		t.Errorf("empty header: %d %v", n, err)
	}
	f := Frame{Type: 9}
	if err := f.Parse(new(Header)); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}

// Both header forms carry the same; what one writes the other's reader agrees with.
func TestHeaderForms(t *testing.T) {
	_, want := parse(t, frame(t, "send"))
	var got Header
	for name, f := range map[string]Frame{
		"json":   {Type: TypeJSON, Header: want.AppendJSON(nil)},
		"binary": {Type: TypeBinary, Header: want.AppendBinary(nil)},
	} {
		if err := f.Parse(&got); err != nil {
			t.Fatal(name, err)
		}
		if got.Code != want.Code || got.Opaque != want.Opaque || got.Language != want.Language || got.Version != want.Version || !maps.Equal(ext(&got), ext(want)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	b := want.AppendBinary(nil)
	for n := range len(b) {
		f := Frame{Type: TypeBinary, Header: b[:n]}
		if err := f.Parse(&got); !errors.Is(err, ErrMalformed) {
			t.Fatalf("binary header cut at %d: %v", n, err)
		}
	}
}

// The hot commands cost no allocation, as the budget of a send asks.
func TestHotPathAllocatesNothing(t *testing.T) {
	for _, name := range []string{"send", "batch", "pull", "commit"} {
		golden := frame(t, name)
		b := make([]byte, len(golden))
		h, s, p, c := new(Header), new(Send), new(Pull), new(Commit)
		allocs := testing.AllocsPerRun(100, func() {
			copy(b, golden)
			f, _, err := Next(b, MaxFrame)
			if err == nil {
				err = f.Parse(h)
			}
			switch name {
			case "send", "batch":
				err = errors.Join(err, ParseSend(h, s))
			case "pull":
				err = errors.Join(err, ParsePull(h, p))
			case "commit":
				err = errors.Join(err, ParseCommit(h, c))
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func BenchmarkParseSend(b *testing.B) {
	golden := frame(b, "send")
	buf := make([]byte, len(golden))
	var h Header
	var s Send
	b.ReportAllocs()
	for b.Loop() {
		copy(buf, golden)
		f, _, _ := Next(buf, MaxFrame)
		if f.Parse(&h) != nil || ParseSend(&h, &s) != nil {
			b.Fatal("bad frame")
		}
	}
}
