package wire

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

var goldens = []string{"send", "batch", "pull", "commit", "heartbeat", "lock", "route", "members"}

func FuzzFrame(f *testing.F) {
	for _, name := range goldens {
		f.Add(frame(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		fr, n, err := Next(b, 1<<20)
		if err != nil || n == 0 {
			return
		}
		if n > len(b) || len(fr.Header)+len(fr.Body)+8 != n {
			t.Fatal(n, len(fr.Header), len(fr.Body))
		}
		var h Header
		if fr.Parse(&h) == nil {
			ParseSend(&h, new(Send))
			ParsePull(&h, new(Pull))
			ParseCommit(&h, new(Commit))
		}
	})
}

// Whatever encoding/json takes as a header of plain members, the scanner takes too, with the same texts.
func FuzzJSONHeader(f *testing.F) {
	for _, name := range goldens {
		fr, _, _ := Next(frame(f, name), MaxFrame)
		f.Add(fr.Header)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var want struct {
			Ext map[string]string `json:"extFields"`
		}
		var loose map[string]json.RawMessage
		agrees := utf8.Valid(b) && json.Unmarshal(b, &want) == nil && json.Unmarshal(b, &loose) == nil && len(loose) == 1 && loose["extFields"] != nil
		var h Header
		fr := Frame{Header: bytes.Clone(b)}
		err := fr.Parse(&h)
		if !agrees || bytes.Count(b, []byte("extFields")) != 1 || len(want.Ext) > maxExt || bytes.Contains(b, []byte("null")) {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		got := map[string]string{}
		for _, e := range h.Ext {
			got[string(e.Key)] = string(e.Value)
		}
		for k, v := range want.Ext {
			if got[k] != v {
				t.Fatalf("%q: %q is %q, want %q", b, k, got[k], v)
			}
		}
	})
}

func FuzzBinaryHeader(f *testing.F) {
	for _, name := range goldens {
		_, h := parse(f, frame(f, name))
		f.Add(h.AppendBinary(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again Header
		fr := Frame{Type: TypeBinary, Header: b}
		if fr.Parse(&h) != nil {
			return
		}
		fr.Header = h.AppendBinary(nil)
		if err := fr.Parse(&again); err != nil || again.Code != h.Code || len(again.Ext) != len(h.Ext) {
			t.Fatal(err, h, again)
		}
	})
}

func FuzzBatch(f *testing.F) {
	fr, _, _ := Next(frame(f, "batch"), MaxFrame)
	f.Add(fr.Body)
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			_, rest, err := NextBatchEntry(b)
			if err != nil {
				return
			}
			if len(rest) >= len(b) {
				t.Fatal("no progress")
			}
			b = rest
		}
	})
}

func FuzzStored(f *testing.F) {
	for _, host := range hosts {
		m := stored(host)
		f.Add(m.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, rest, err := NextStored(b)
		if err != nil {
			return
		}
		if m.BornHost.Addr().Is4In6() || m.StoreHost.Addr().Is4In6() || (len(m.Topic) > 127) != (b[7] == 0xAB) {
			return // forms that we read and would write otherwise
		}
		if again, _, err := NextStored(m.Append(nil)); err != nil || again.PhysOffset != m.PhysOffset || !bytes.Equal(again.Properties, m.Properties) {
			t.Fatal(err, len(rest))
		}
	})
}

func FuzzProperties(f *testing.F) {
	f.Add([]byte("a\x01b\x02c\x01d"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		for in := b; ; {
			n, v, rest, ok := NextProperty(in)
			if !ok {
				break
			}
			again, in = AppendProperty(again, n, v), rest
		}
		if len(again) > len(b)+1 {
			t.Fatalf("%q grew to %q", b, again)
		}
	})
}

func FuzzBodies(f *testing.F) {
	for _, name := range []string{"heartbeat", "lock"} {
		fr, _, _ := Next(frame(f, name), MaxFrame)
		f.Add(fr.Body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ParseHeartbeat(b)
		ParseLocks(b)
		ParseClientConfig(b)
	})
}

func FuzzMessageID(f *testing.F) {
	f.Add("C0000207000000002A9F00002800000009")
	f.Fuzz(func(t *testing.T, s string) {
		host, phys, err := ParseMessageID(s)
		if err != nil || host.Addr().Is4In6() {
			return
		}
		if h, p, err := ParseMessageID(string(AppendMessageID(nil, host, phys))); err != nil || h != host || p != phys {
			t.Fatal(s, host, phys, err)
		}
	})
}
