package wire

import (
	"bytes"
	"testing"
)

// Whatever arrives, nothing panics, nothing is read beyond its frame, and what is understood can be written and
// understood again.
func FuzzFrame(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for {
			fr, n, err := Split(b, 64<<10)
			if err != nil || n == 0 {
				return
			}
			command(t, fr)
			payload(fr.Payload)
			b = b[n:]
		}
	})
}

func command(t *testing.T, fr Frame) {
	for _, s := range samples() {
		if s.t != fr.Type {
			continue
		}
		v := s.fresh()
		if s.parse(fr.Command, v) != nil {
			return
		}
		c, ok := v.(Command)
		if !ok {
			return
		}
		first := Append(nil, fr.Type, c)
		again, _, err := Split(first, 1<<20)
		if err != nil {
			t.Fatalf("%v: %v", fr.Type, err)
		}
		w := s.fresh()
		if err := s.parse(again.Command, w); err != nil {
			t.Fatalf("%v %+v does not survive: %v", fr.Type, v, err)
		}
		if second := Append(nil, fr.Type, w.(Command)); !bytes.Equal(first, second) {
			t.Fatalf("%v: %x and %x", fr.Type, first, second)
		}
	}
}

func payload(b []byte) {
	p, err := ParsePayload(b)
	if err != nil {
		return
	}
	var m Metadata
	if m.Parse(p.Metadata) != nil {
		return
	}
	_ = MetadataProperties(p.Metadata, func(KeyValue) {})
	body, err := Decompress(m.Compression, p.Body, m.UncompressedSize, 1<<20)
	if err != nil || !m.Batch {
		return
	}
	for range m.NumMessages {
		var s Single
		if body, err = s.Next(body); err != nil {
			return
		}
		_ = SingleProperties(s.Raw, func(KeyValue) {})
	}
}
