package wire_test

import (
	"bytes"
	"testing"

	"isthmus/adapters/pulsar/wire"
	"isthmus/adapters/pulsar/wire/wiretest"
)

// Whatever arrives, nothing panics, nothing is read beyond its frame, and what is understood can be written and
// understood again.
func FuzzFrame(f *testing.F) {
	for _, s := range wiretest.Samples() {
		f.Add(s.Frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for {
			fr, n, err := wire.Split(b, 64<<10)
			if err != nil || n == 0 {
				return
			}
			command(t, fr)
			payload(fr.Payload)
			b = b[n:]
		}
	})
}

func command(t *testing.T, fr wire.Frame) {
	for _, s := range wiretest.Samples() {
		if s.Type != fr.Type {
			continue
		}
		v := s.Fresh()
		if s.Parse(fr.Command, v) != nil {
			return
		}
		c, ok := v.(wire.Command)
		if !ok {
			return
		}
		first := wire.Append(nil, fr.Type, c)
		again, _, err := wire.Split(first, 1<<20)
		if err != nil {
			t.Fatalf("%v: %v", fr.Type, err)
		}
		w := s.Fresh()
		if err := s.Parse(again.Command, w); err != nil {
			t.Fatalf("%v %+v does not survive: %v", fr.Type, v, err)
		}
		if second := wire.Append(nil, fr.Type, w.(wire.Command)); !bytes.Equal(first, second) {
			t.Fatalf("%v: %x and %x", fr.Type, first, second)
		}
	}
}

func payload(b []byte) {
	p, err := wire.ParsePayload(b)
	if err != nil {
		return
	}
	var m wire.Metadata
	if m.Parse(p.Metadata) != nil {
		return
	}
	_ = wire.MetadataProperties(p.Metadata, func(wire.KeyValue) {})
	body, err := wire.Decompress(m.Compression, p.Body, m.UncompressedSize, 1<<20)
	if err != nil || !m.Batch {
		return
	}
	for range m.NumMessages {
		var s wire.Single
		if body, err = s.Next(body); err != nil {
			return
		}
		_ = wire.SingleProperties(s.Raw, func(wire.KeyValue) {})
	}
}
