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
	off   int64       // of buf in the file
	chunk int64       // bytes to read at once
	limit int64       // nothing is read beyond
	seq   journal.Seq // of the record found last
	keep  bool        // somebody keeps what get returned: each piece has memory of its own
	head  [frameHeader]byte
}

// get returns n bytes at pos, valid until the next call unless w.keep. The caller has checked pos+n against limit.
func (w *window) get(pos, n int64) ([]byte, error) {
	if pos < w.off || pos+n > w.off+int64(len(w.buf)) {
		if err := w.load(pos, min(max(n, w.chunk), w.limit-pos)); err != nil {
			return nil, err
		}
	}
	return w.buf[pos-w.off:][:n:n], nil
}

// header returns the frame header at pos. A window that is kept does not move for it: its next piece is as large as the
// record, and made once.
func (w *window) header(pos int64) ([]byte, error) {
	if !w.keep || pos >= w.off && pos+frameHeader <= w.off+int64(len(w.buf)) {
		return w.get(pos, frameHeader)
	}
	_, err := w.f.ReadAt(w.head[:], pos)
	return w.head[:], err
}

// load moves the window. What it has of the new piece is not read again.
func (w *window) load(pos, size int64) error {
	var have []byte
	if pos >= w.off && pos < w.off+int64(len(w.buf)) {
		have = w.buf[pos-w.off:]
	}
	next := w.buf
	if w.keep || int64(cap(next)) < size {
		next = make([]byte, size)
	}
	next = next[:size]
	n := copy(next, have)
	w.buf, w.off = next, pos
	if m, err := w.f.ReadAt(next[n:], pos+int64(n)); m < len(next)-n {
		w.buf = w.buf[:0]
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// Why a record cannot be had.
const (
	whyNothing = "no record"
	whyLength  = "impossible length"
	whyBroken  = "wrong checksum"
)

// record returns the block seq at pos, of a thinned segment that or a later one, and the size of its record. why is empty
// when it is whole.
func (w *window) record(s *segment, pos int64, seq journal.Seq) (block []byte, size int64, why string, err error) {
	if pos+frameHeader > w.limit {
		return nil, 0, whyNothing, nil
	}
	b, err := w.header(pos)
	if err != nil {
		return nil, 0, "", err
	}
	f := parseFrame(b)
	if f.generation != s.generation || f.seq != seq && (!s.thin || f.seq < seq || f.seq >= s.next) {
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
	w.seq = f.seq
	return b[frameHeader:][:f.length], size, "", nil
}
