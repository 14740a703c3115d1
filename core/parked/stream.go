package parked

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"isthmus/core"
)

// maxStreamed bounds the encoding of one record without an entry.
const maxStreamed = 64

// AppendStream appends a record without its entry, and its offset: what an index needs to know of it.
func AppendStream(dst []byte, off core.Offset, r *Record) []byte {
	var room [maxStreamed]byte
	bare := *r
	bare.Entry = nil
	b := bare.Append(binary.AppendUvarint(room[:0], uint64(off)))
	return append(append(dst, byte(len(b))), b...)
}

// ReadStream calls f with each record of a stream.
func ReadStream(r io.Reader, f func(core.Offset, *Record)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var room [maxStreamed]byte
	for {
		n, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n > maxStreamed {
			return fmt.Errorf("stream of parked records: %d bytes for one: %w", n, core.ErrInvalid)
		}
		b := room[:n]
		if _, err := io.ReadFull(in, b); err != nil {
			return fmt.Errorf("stream of parked records: %w", err)
		}
		d := decoder{b: b}
		off := core.Offset(d.uvarint(maxOffset))
		var rec Record
		if err := rec.parse(d.b, false); d.bad || err != nil {
			return fmt.Errorf("stream of parked records: %w", errors.Join(core.ErrInvalid, err))
		}
		f(off, &rec)
	}
}
