package rocketmq

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

func sample(host string) native {
	n := native{sysFlag: 1 << 8, flag: -7, reconsume: 2, properties: []byte("TAGS\x01a\x02"), body: []byte("body")}
	if host != "" {
		n.born = netip.MustParseAddrPort(host)
	}
	return n
}

// Spec: I5: the bytes that a producer sent survive.
func TestNativeRoundTrip(t *testing.T) {
	for _, host := range []string{"192.0.2.1:5", "[2001:db8::1]:65535", ""} {
		want := sample(host)
		b := want.append(nil)
		var got native
		if err := got.parse(b); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v %+v", host, err, got)
		}
		for n := range len(b) - len(want.body) {
			if err := got.parse(b[:n]); !errors.Is(err, core.ErrInvalid) {
				t.Fatalf("cut at %d: %v", n, err)
			}
		}
	}
}

func TestKeyOf(t *testing.T) {
	for props, want := range map[string]string{
		"":                                    "",
		"KEYS\x01one\x02":                     "one",
		"KEYS\x01one two\x02":                 "",
		"KEYS\x01k\x02__SHARDINGKEY\x01s\x02": "s",
		"SHARDING_KEY\x01a b\x02KEYS\x01k":    "a b",
		"__SHARDINGKEY\x01\x02KEYS\x01k\x02":  "k",
	} {
		key, has := keyOf([]byte(props))
		if string(key) != want || has != (want != "") {
			t.Errorf("%q: %q %v", props, key, has)
		}
	}
}

func compressed(t *testing.T, w io.WriteCloser, body []byte) {
	t.Helper()
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func decodeOne(n native) (core.Message, error) {
	e := core.Entry{Count: 1, Format: core.FormatRocketMQ, Data: n.append(nil), PublishTime: 7, Key: []byte("k"), Flags: core.FlagHasKey}
	ms, err := Decode(&e, nil)
	if err != nil {
		return core.Message{}, err
	}
	return ms[0], nil
}

// Spec: I10: key, tag, properties, body and time cross to other protocols.
func TestDecode(t *testing.T) {
	n := sample("")
	n.sysFlag = 0
	n.properties = []byte("TAGS\x01a\x02KEYS\x01k1 k2\x02WAIT\x01true\x02__SHARDINGKEY\x01k\x02p\x01v\x02UNIQ_KEY\x01U\x02")
	m, err := decodeOne(n)
	if err != nil || m.Tag != "a" || string(m.Key) != "k" || !m.HasKey || string(m.Body) != "body" || m.PublishTime != 7 {
		t.Errorf("%v %+v", err, m)
	}
	if got := fmt.Sprint(m.Properties); got != "[{KEYS k1 k2} {p v} {UNIQ_KEY U}]" {
		t.Errorf("%s", got)
	}
}

// Spec: RocketMQ MessageSysFlag, CompressionType@5.x
func TestDecodeCompressed(t *testing.T) {
	body := []byte(strings.Repeat("hello ", 1000))
	var z, l, s bytes.Buffer
	compressed(t, zlib.NewWriter(&z), body)
	compressed(t, lz4.NewWriter(&l), body)
	zw, err := zstd.NewWriter(&s)
	if err != nil {
		t.Fatal(err)
	}
	compressed(t, zw, body)
	for flag, data := range map[int32][]byte{0x001: z.Bytes(), 0x301: z.Bytes(), 0x101: l.Bytes(), 0x201: s.Bytes(), 0x000: body} {
		n := sample("")
		n.sysFlag, n.body = flag, data
		if m, err := decodeOne(n); err != nil || !bytes.Equal(m.Body, body) {
			t.Errorf("%#x: %v, %d bytes", flag, err, len(m.Body))
		}
		if flag == 0 {
			continue
		}
		n.body = data[:len(data)/2]
		if _, err := decodeOne(n); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%#x cut: %v", flag, err)
		}
	}
	n := sample("")
	n.sysFlag = 0x701
	if _, err := decodeOne(n); !errors.Is(err, core.ErrUnsupported) {
		t.Error(err)
	}
}

// A small frame must not become gigabytes.
func TestDecodeIsBounded(t *testing.T) {
	var z bytes.Buffer
	compressed(t, zlib.NewWriter(&z), make([]byte, maxInflated+1))
	n := sample("")
	n.sysFlag, n.body = wire.SysCompressed, z.Bytes()
	if _, err := decodeOne(n); !errors.Is(err, core.ErrTooLarge) {
		t.Error(err)
	}
}

func TestFillNative(t *testing.T) {
	uniq := "UNIQ_KEY\x01" + strings.Repeat("0", 31) + "9\x02"
	for props, want := range map[string]string{
		"UNIQ_KEY\x01U\x02":                      "UNIQ_KEY\x01U\x02",
		"":                                       uniq,
		"a\x01b":                                 "a\x01b\x02" + uniq,
		"UNIQ_KEY\x01U\x02SHARDING_KEY\x01s\x02": "UNIQ_KEY\x01U\x02SHARDING_KEY\x01s\x02__SHARDINGKEY\x01s\x02",
		"UNIQ_KEY\x01U\x02__SHARDINGKEY\x01s\x02":                  "UNIQ_KEY\x01U\x02__SHARDINGKEY\x01s\x02SHARDING_KEY\x01s\x02",
		"UNIQ_KEY\x01U\x02__SHARDINGKEY\x01s\x02SHARDING_KEY\x01s": "UNIQ_KEY\x01U\x02__SHARDINGKEY\x01s\x02SHARDING_KEY\x01s",
	} {
		n := native{properties: []byte(props)}
		st := wire.Stored{PhysOffset: 9}
		fillNative(&st, &n, nil)
		if string(st.Properties) != want {
			t.Errorf("%q: %q", props, st.Properties)
		}
	}
}

func TestForeignPropertiesAreBounded(t *testing.T) {
	m := core.Message{Properties: []core.Property{{Key: "a", Value: strings.Repeat("x", 30000)}, {Key: "b", Value: strings.Repeat("y", 30000)}, {Key: "c", Value: "z"}}}
	var st wire.Stored
	fillForeign(&st, &m, nil)
	if len(st.Properties) > wire.MaxProperties || wire.FindProperty(st.Properties, "b") != nil || string(wire.FindProperty(st.Properties, "c")) != "z" {
		t.Errorf("%d bytes", len(st.Properties))
	}
	// A key that would be read as another name's value never is.
	m = core.Message{Key: []byte("a\x02TAGS\x01b"), HasKey: true, Properties: []core.Property{{Key: "KEYS", Value: "mine"}}}
	fillForeign(&st, &m, nil)
	if wire.FindProperty(st.Properties, wire.PropTags) != nil || string(wire.FindProperty(st.Properties, wire.PropKeys)) != "mine" {
		t.Errorf("%q", st.Properties)
	}
}

func TestFilter(t *testing.T) {
	for text, want := range map[string]string{"": "a b ", "*": "a b ", "a": "a", "a||c": "a", " b || a ": "a b", "A": "", "null": "a b "} {
		f, err := parseFilter(wire.ExpressionTag, text)
		var got []string
		for _, tag := range []string{"a", "b", ""} {
			n := native{}
			if tag != "" {
				n.properties = wire.AppendProperty(nil, wire.PropTags, tag)
			}
			if f.wants(&core.Message{Tag: tag}) != f.wantsNative(&n) {
				t.Errorf("%q disagrees on %q", text, tag)
			}
			if f.wants(&core.Message{Tag: tag}) {
				got = append(got, tag)
			}
		}
		if s := strings.Join(got, " "); err != nil || s != want {
			t.Errorf("%q: %q %v", text, s, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	n := sample("192.0.2.1:5")
	f.Add(n.append(nil))
	n.sysFlag = wire.SysCompressed
	f.Add(n.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := core.Entry{Count: 1, Data: b}
		if ms, err := Decode(&e, nil); err == nil && len(ms) != 1 {
			t.Fatal(ms)
		}
	})
}
