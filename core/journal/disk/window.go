package disk

import (
	"errors"
	"io"

	"isthmus/core/journal"
)

const (
	scanChunk = 1 << 20
	readChunk = 256 << 10
	keepChunk = 1 << 20 // a larger buffer is not kept for the next reader
)

// window reads a file piece by piece into one buffer.
type window struct {
	f     File
	buf   []byte
	off   int64 // of buf in the file
	chunk int64 // bytes to read at once
	limit int64 // nothing is read beyond
}

// get returns n bytes at pos, valid until the next call. The caller has checked pos+n against limit.
func (w *window) get(pos, n int64) ([]byte, error) {
	if pos < w.off || pos+n > w.off+int64(len(w.buf)) {
		size := min(max(n, w.chunk), w.limit-pos)
		if int64(cap(w.buf)) < size {
			w.buf = make([]byte, size)
		}
		w.buf, w.off = w.buf[:size], pos
		if m, err := w.f.ReadAt(w.buf, pos); int64(m) < size {
			w.buf = w.buf[:0]
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return w.buf[pos-w.off:][:n], nil
}

// Why a record cannot be had.
const (
	whyNothing = "no record"
	whyLength  = "impossible length"
	whyBroken  = "wrong checksum"
)

// record returns the block seq at pos and the size of its record. why is empty when it is whole.
func (w *window) record(s *segment, pos int64, seq journal.Seq) (block []byte, size int64, why string, err error) {
	if pos+frameHeader > w.limit {
		return nil, 0, whyNothing, nil
	}
	b, err := w.get(pos, frameHeader)
	if err != nil {
		return nil, 0, "", err
	}
	f := parseFrame(b)
	if f.generation != s.generation || f.seq != seq {
		return nil, 0, whyNothing, nil
	}
	if size = f.size(); size > w.limit-pos {
		return nil, 0, whyLength, nil
	}
	if b, err = w.get(pos, size); err != nil {
		return nil, 0, "", err
	}
	if !f.whole(b) {
		return nil, 0, whyBroken, nil
	}
	return b[frameHeader:][:f.length], size, "", nil
}
