package core

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func TestParseTopicName(t *testing.T) {
	for in, want := range map[string]string{
		"event":                          "persistent://public/out/event",
		"acme/out/event":                 "persistent://acme/out/event",
		"persistent://acme/out/event":    "persistent://acme/out/event",
		"non-persistent://acme/out/e":    "non-persistent://acme/out/e",
		"persistent://acme/out/a/b":      "persistent://acme/out/a/b",
		"%RETRY%group":                   "persistent://public/out/%RETRY%group",
		"foo://t/n/x":                    "",
		"persistent://t/x":               "",
		"persistent:///n/x":              "",
		"persistent://t//x":              "",
		"persistent://t/n/":              "",
		"t/x":                            "",
		"":                               "",
		"persistent://te nant/n/x":       "",
		"persistent://acme/out/\x00":     "",
		"persistent://acme/out/\xff\xfe": "",
	} {
		got, err := ParseTopicName(in, "public", "out")
		if want == "" {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("ParseTopicName(%q) = %v, %v; want ErrInvalid", in, got, err)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("ParseTopicName(%q) = %v, %v; want %s", in, got, err, want)
		}
	}
}

func sampleEntry() Entry {
	return Entry{
		Count: 3, Format: FormatPulsar, Flags: FlagHasKey | FlagQoS1, PublishTime: 1700000000123, Expiry: 9,
		Key: []byte("dev-1"), OrderingKey: []byte("o"), Producer: []byte("p"), Handle: -1, SeqLow: 5, SeqHigh: 7,
		AddressHash: 0xdeadbeef, Data: []byte("payload"),
	}
}

func TestEntryRoundTrip(t *testing.T) {
	e := sampleEntry()
	b := AppendEntry([]byte{}, &e)
	if len(b) != EntrySize(&e) {
		t.Fatalf("EntrySize = %d, encoded %d", EntrySize(&e), len(b))
	}
	var got Entry
	rest, err := ParseEntry(append(b, 1, 2), 42, &got)
	if err != nil || len(rest) != 2 {
		t.Fatalf("rest %d, err %v", len(rest), err)
	}
	e.Base = 42
	if !reflect.DeepEqual(got, e) {
		t.Fatalf("got  %+v\nwant %+v", got, e)
	}
	for i := range b {
		if _, err := ParseEntry(b[:i], 0, &got); err == nil {
			t.Fatalf("an entry cut at byte %d was accepted", i)
		}
	}
}

func TestNeutralRoundTrip(t *testing.T) {
	m := Message{
		Key: []byte("k"), HasKey: true, Tag: "tag", EventTime: -5, Address: "devices/1/telemetry",
		Properties: []Property{{"a", "1"}, {"a", "2"}}, Routed: []Property{{"deviceId", "1"}}, Body: []byte("{}"),
	}
	e := Entry{Count: 1, Flags: FlagHasKey, Key: m.Key, Data: m.AppendNeutral(nil)}
	ms, err := DecodeNeutral(&e, nil)
	if err != nil || !reflect.DeepEqual(ms[0], m) {
		t.Fatalf("got %+v, %v\nwant %+v", ms, err, m)
	}
	if a := NeutralAddress(&e); string(a) != m.Address {
		t.Fatalf("address %q", a)
	}
	full := e.Data
	for i := range len(full) - len(m.Body) {
		e.Data = full[:i]
		if _, err := DecodeNeutral(&e, nil); err == nil {
			t.Fatalf("a message cut at byte %d was accepted", i)
		}
	}
}

func FuzzEntry(f *testing.F) {
	e := sampleEntry()
	f.Add(AppendEntry(nil, &e))
	m := Message{Tag: "t", Properties: []Property{{"a", "b"}}}
	f.Add(AppendEntry(nil, &Entry{Count: 1, Data: m.AppendNeutral(nil)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Entry
		if _, err := ParseEntry(b, 0, &e); err != nil {
			return
		}
		again := AppendEntry(nil, &e)
		var e2 Entry
		if _, err := ParseEntry(again, 0, &e2); err != nil || !bytes.Equal(e2.Data, e.Data) {
			t.Fatalf("an accepted entry does not survive: %v", err)
		}
		if e.Format == FormatNeutral {
			_, _ = DecodeNeutral(&e, nil)
			NeutralAddress(&e)
		}
	})
}
