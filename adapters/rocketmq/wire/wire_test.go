package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

var hosts = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.7:10911"), netip.MustParseAddrPort("[2001:db8::1]:9")}

func stored(host netip.AddrPort) Stored {
	return Stored{QueueID: 3, Flag: 7, QueueOffset: 1 << 40, PhysOffset: 5<<43 | 9, SysFlag: SysCompressed, Born: 1796075311183, BornHost: host,
		StoreTime: 1796075311200, StoreHost: host, Reconsume: 2, PreparedOffset: 1, Body: []byte("body"), Topic: "TopicA",
		Properties: AppendProperty(nil, PropTags, "a")}
}

func TestStoredRoundTrip(t *testing.T) {
	for _, host := range hosts {
		for _, topic := range []string{"T", strings.Repeat("x", 127), strings.Repeat("y", 200)} {
			want := stored(host)
			want.Topic = topic
			b := want.Append(nil)
			got, rest, err := NextStored(append(b, 1, 2))
			if err != nil || len(rest) != 2 {
				t.Fatal(err, len(rest))
			}
			if again := got.Append(nil); !bytes.Equal(again, b) {
				t.Errorf("%s %s: %+v", host, topic, got)
			}
			for n := range len(b) {
				if _, _, err := NextStored(b[:n]); !errors.Is(err, ErrMalformed) {
					t.Fatalf("cut at %d: %v", n, err)
				}
			}
		}
	}
}

func TestStoredGolden(t *testing.T) {
	m := Stored{QueueID: 1, QueueOffset: 2, PhysOffset: 3, Born: 4, StoreTime: 5, StoreHost: hosts[0], Body: []byte("b"), Topic: "T",
		Properties: []byte("k\x01v\x02")}
	want := "\x00\x00\x00\x61" + "\xda\xa3\x20\xa7" + "\x71\xbe\xef\xf9" + // size, magic, crc32("b")
		"\x00\x00\x00\x01" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x02" + "\x00\x00\x00\x00\x00\x00\x00\x03" + // queue, flag, offsets
		"\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x04" + "\x00\x00\x00\x00\x00\x00\x00\x00" + // sysFlag, born, born host
		"\x00\x00\x00\x00\x00\x00\x00\x05" + "\xc0\x00\x02\x07\x00\x00\x2a\x9f" + // store time, store host
		"\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + // reconsume, prepared
		"\x00\x00\x00\x01b" + "\x01T" + "\x00\x04k\x01v\x02"
	if got := m.Append(nil); string(got) != want {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestMessageID(t *testing.T) {
	for i, want := range []string{"C00002070000" + "2A9F" + "0000280000000009", "20010DB800000000000000000000000100000009" + "0000280000000009"} {
		id := string(AppendMessageID(nil, hosts[i], 5<<43|9))
		host, phys, err := ParseMessageID(id)
		if id != want || host != hosts[i] || phys != 5<<43|9 || err != nil {
			t.Errorf("%s %v %d %v", id, host, phys, err)
		}
	}
	for _, bad := range []string{"", "zz", strings.Repeat("0", 31), strings.Repeat("0", 34)} {
		if _, _, err := ParseMessageID(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestProperties(t *testing.T) {
	for text, want := range map[string]string{
		"a\x01b\x02c\x01d":          "a=b c=d",
		"a\x01b\x02\x02\x01x\x02c":  "a=b",
		"\x01v\x02k\x01\x02":        "k=",
		"a\x01b\x01c\x02":           "a=b\x01c",
		"":                          "",
		strings.Repeat("\x02", 100): "",
	} {
		var got []string
		for b := []byte(text); ; {
			n, v, rest, ok := NextProperty(b)
			if !ok {
				break
			}
			got, b = append(got, string(n)+"="+string(v)), rest
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %q, want %q", text, s, want)
		}
	}
}

func TestJSONHeader(t *testing.T) {
	for text, want := range map[string]string{
		`{"code":11,"extFields":{"a":"\u00fc\u0001\"\\\/\b\f\n\r\t","b":"\ud83d\ude00","c":"\ud83d"}}`: "a=ü\x01\"\\/\b\f\n\r\t b=😀 c=\uFFFD",
		` { "extFields" : { "n" : 7 , "t" : true , "z" : null , "s":"" } , "x":[1,{"y":[]},"]"] } `:    "n=7 t=true s=",
		`{"extFields":null,"remark":null,"code":1}`:                                                    "",
	} {
		var h Header
		f := Frame{Header: []byte(text)}
		if err := f.Parse(&h); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, e := range h.Ext {
			got = append(got, string(e.Key)+"="+string(e.Value))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q", text, s)
		}
	}
	for _, text := range []string{``, `{`, `[]`, `{"code":"x"}`, `{"code":1e3}`, `{"code":99999999999}`, `{"code":1}x`, `{"a":"\q"}`, `{"a":"\u12"}`,
		`{"a":"\`, `{"a":{"b":1`, `{"a" 1}`, `{"extFields":{"a":{}}}`, `{"x":` + strings.Repeat("[", 1000)} {
		f := Frame{Header: []byte(text)}
		if err := f.Parse(new(Header)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAnswer(t *testing.T) {
	a := Begin([]byte("x"), PullNotFound, -5, `re"mark`)
	a.Int("minOffset", 7)
	a.Str("msgId", "A")
	a.Body()
	a.Dst = append(a.Dst, "body"...)
	b := a.End()[1:]
	f, h := parse(t, b)
	if h.Code != PullNotFound || h.Opaque != -5 || !h.Response() || string(h.Remark) != `re"mark` || h.Version != BrokerVersion ||
		h.String("minOffset") != "7" || h.String("msgId") != "A" || string(f.Body) != "body" {
		t.Errorf("%+v %q", h, f.Body)
	}
	a = Begin(nil, 0, 1, "")
	a.Body()
	if f, _ = parse(t, a.End()); !json.Valid(f.Header) || !strings.Contains(string(f.Header), `"extFields":{}`) {
		t.Errorf("%s", f.Header)
	}
}

// Spec: RocketMQ MessageDecoder.encodeMessages@5.x
func TestBatchEntries(t *testing.T) {
	f, _ := parse(t, frame(t, "batch"))
	_, rest, _ := NextBatchEntry(f.Body)
	one := f.Body[:len(f.Body)-len(rest)]
	for n := range len(one) {
		if _, _, err := NextBatchEntry(one[:n]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestLenientBodies(t *testing.T) {
	hb, err := ParseHeartbeat([]byte(`{"clientID":"c","extra":{"a":[1]},"producerDataSet":null,"consumerDataSet":[{"groupName":"g","unitMode":"x",
		"subscriptionDataSet":[{"topic":"T","subString":"*","tagsSet":null,"codeSet":[1],"subVersion":"17"},{"topic":5}]}]}`))
	if err != nil || hb.ClientID != "c" || len(hb.Consumers) != 1 || len(hb.Consumers[0].Subscriptions) != 2 || hb.Consumers[0].Subscriptions[0].Version != 17 {
		t.Errorf("%v %+v", err, hb)
	}
	for _, bad := range []string{"", "{", "{]", strings.Repeat(" ", MaxJSONBody+1)} {
		if _, err := ParseHeartbeat([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	c, err := ParseClientConfig([]byte(`{"clientId":"c","group":"g","subscriptionData":{"topic":"T","expressionType":"SQL92"}}`))
	if err != nil || c.Group != "g" || c.Subscription.ExpressionType != ExpressionSQL {
		t.Errorf("%v %+v", err, c)
	}
}

func TestRouteText(t *testing.T) {
	r := Route{Broker: Broker{Cluster: "C", Name: "b", Address: "192.0.2.7:10911", BareKeys: true}, Queues: 8, Perm: 6}
	want := `{"brokerDatas":[{"brokerAddrs":{0:"192.0.2.7:10911"},"brokerName":"b","cluster":"C","enableActingMaster":false}],"filterServerTable":{},` +
		`"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}`
	if got := string(r.Append(nil)); got != want {
		t.Errorf("%s", got)
	}
	r.BareKeys = false
	for _, b := range [][]byte{r.Append(nil), r.AppendCluster(nil), AppendStrings(nil, "x", []string{"a", `"`}), AppendLockOK(nil, []Queue{{"T", "b", 1}, {"U", "b", 2}})} {
		if !json.Valid(b) {
			t.Errorf("%s", b)
		}
	}
}
