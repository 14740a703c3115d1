package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

func compressed(t testing.TB, kind int32, b []byte) []byte {
	var buf bytes.Buffer
	switch kind {
	case CompressionLZ4:
		out := make([]byte, lz4.CompressBlockBound(len(b)))
		n, err := lz4.CompressBlock(b, out, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out[:n]
	case CompressionZLIB:
		w := zlib.NewWriter(&buf)
		w.Write(b)
		w.Close()
	case CompressionZSTD:
		w, _ := zstd.NewWriter(&buf)
		w.Write(b)
		w.Close()
	case CompressionSnappy:
		return snappy.Encode(nil, b)
	}
	return buf.Bytes()
}

func TestDecompress(t *testing.T) {
	want := []byte(strings.Repeat("temperature 21.5 ", 200))
	for kind := CompressionLZ4; kind <= CompressionSnappy; kind++ {
		c := compressed(t, kind, want)
		got, err := Decompress(kind, c, uint32(len(want)), 1<<20)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("type %d: %d bytes, %v", kind, len(got), err)
		}
		if _, err := Decompress(kind, c, uint32(len(want)-1), 1<<20); !errors.Is(err, ErrMalformed) {
			t.Errorf("type %d, one byte less promised: %v", kind, err)
		}
		if _, err := Decompress(kind, c, uint32(len(want)+1), 1<<20); !errors.Is(err, ErrMalformed) {
			t.Errorf("type %d, one byte more promised: %v", kind, err)
		}
		for i := range c {
			if _, err := Decompress(kind, c[:i], uint32(len(want)), 1<<20); err == nil && kind != CompressionZLIB {
				t.Errorf("type %d cut at %d of %d is whole", kind, i, len(c))
			}
		}
		if _, err := Decompress(kind, c, 1<<31, 1<<20); !errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("type %d, 2 GiB promised: %v", kind, err)
		}
	}
	if _, err := Decompress(9, want, 1, 1<<20); !errors.Is(err, ErrMalformed) {
		t.Errorf("unknown type: %v", err)
	}
	if got, err := Decompress(CompressionLZ4, nil, 0, 1<<20); err != nil || len(got) != 0 {
		t.Errorf("empty body: %v %v", got, err)
	}
}
