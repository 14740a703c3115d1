package wire

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Decompress returns the body that a producer compressed. size is what the metadata promises and is held against limit
// before anything is allocated; a body of another size is malformed.
// Spec: Pulsar CompressionType: LZ4 is the raw block format; size from uncompressed_size
func Decompress(kind int32, body []byte, size uint32, limit int) ([]byte, error) {
	if kind == CompressionNone || size == 0 {
		return body, nil
	}
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("body of %d bytes, at most %d: %w", size, limit, ErrFrameTooLarge)
	}
	out, err := inflate(kind, body, int(size))
	if err != nil {
		return nil, fmt.Errorf("compression %d: %w: %w", kind, err, ErrMalformed)
	}
	if len(out) != int(size) {
		return nil, fmt.Errorf("compression %d: %d bytes, promised %d: %w", kind, len(out), size, ErrMalformed)
	}
	return out, nil
}

func inflate(kind int32, body []byte, size int) ([]byte, error) {
	switch kind {
	case CompressionLZ4:
		out := make([]byte, size)
		n, err := lz4.UncompressBlock(body, out)
		return out[:max(n, 0)], err
	case CompressionZLIB:
		z, err := zlib.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return readExactly(z, size)
	case CompressionZSTD:
		z, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return readExactly(z, size)
	case CompressionSnappy:
		if n, err := snappy.DecodedLen(body); err != nil || n != size {
			return nil, fmt.Errorf("decoded length %d: %w", n, io.ErrUnexpectedEOF)
		}
		return snappy.Decode(nil, body)
	}
	return nil, fmt.Errorf("unknown type")
}

// readExactly reads size bytes and looks whether there are more.
func readExactly(r io.Reader, size int) ([]byte, error) {
	out := make([]byte, size)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, err
	}
	var one [1]byte
	if n, _ := r.Read(one[:]); n > 0 {
		return nil, fmt.Errorf("more than promised")
	}
	return out, nil
}
