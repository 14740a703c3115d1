package engine

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/parked"
)

// dedupView makes a view of the partitions' producer sequences. It is not live: the committer counts what appenders have
// noted in the buffer, once per producer and block.
//
// File: version 1; then per partition uvarint number, since, sources; per source, the longest silent first, uvarint-led
// name, varint handle, highest sequence and commit time in unix ms.
type dedupView struct{ log *log }

const (
	dedupVersion = 1
	maxSource    = 1 << 20 // bytes of a name
)

func (v *dedupView) kind() string       { return "dedup" }
func (v *dedupView) live() bool         { return false }
func (v *dedupView) floor() journal.Seq { return 0 }

func (v *dedupView) wants(p *Partition) bool {
	v.log.buf.Lock()
	defer v.log.buf.Unlock()
	return p.dedup != nil || p.internal
}

func (v *dedupView) apply(p *Partition, seq journal.Seq, e *core.Entry) error {
	if p.internal {
		return v.applyParked(seq, e)
	}
	v.log.buf.Lock()
	defer v.log.buf.Unlock()
	if d := p.dedup; d != nil && e.Base >= d.since && numbered(e) {
		d.replay(e, seq)
	}
	return nil
}

// applyParked counts a message where it was going to when it was parked.
func (v *dedupView) applyParked(seq journal.Seq, e *core.Entry) error {
	if !numbered(e) {
		return nil
	}
	var r parked.Record
	if err := r.Parse(e.Data); err != nil {
		return err
	}
	p := v.log.part(r.Target)
	if p == nil {
		return nil
	}
	v.log.buf.Lock()
	defer v.log.buf.Unlock()
	if d := p.dedup; d != nil && e.Commit >= d.begun {
		d.replay(e, seq)
	}
	return nil
}

func (v *dedupView) partitions() []*Partition {
	v.log.tail.RLock()
	defer v.log.tail.RUnlock()
	ps := make([]*Partition, 0, len(v.log.tail.parts))
	for _, p := range v.log.tail.parts {
		ps = append(ps, p)
	}
	slices.SortFunc(ps, func(a, b *Partition) int { return cmp.Compare(a.number, b.number) })
	return ps
}

func (v *dedupView) capture(since journal.Seq) func(io.Writer) error {
	var b []byte
	for _, p := range v.partitions() {
		b = v.capturePartition(b, p, since)
	}
	if len(b) == 0 {
		return nil
	}
	return func(w io.Writer) error {
		if _, err := w.Write([]byte{dedupVersion}); err != nil {
			return err
		}
		_, err := w.Write(b)
		return err
	}
}

// capturePartition appends the sources that have stored something after a block.
func (v *dedupView) capturePartition(b []byte, p *Partition, since journal.Seq) []byte {
	v.log.buf.Lock()
	defer v.log.buf.Unlock()
	if p.dedup == nil {
		return b
	}
	silent, n := &p.dedup.silent, uint64(0)
	s := silent.prev
	for ; s != silent && (since == 0 || s.seq > since); s = s.prev {
		n++
	}
	if n == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(p.number))
	b = binary.AppendUvarint(b, uint64(p.dedup.since))
	b = binary.AppendUvarint(b, n)
	for s = s.next; s != silent; s = s.next {
		b = binary.AppendUvarint(b, uint64(len(s.name)))
		b = append(b, s.name...)
		b = binary.AppendVarint(b, int64(s.handle))
		b = binary.AppendVarint(b, s.durable)
		b = binary.AppendVarint(b, s.seen)
	}
	return b
}

func (v *dedupView) restore(from io.Reader) error {
	r := &fields{r: bufio.NewReader(from)}
	if version, err := r.r.ReadByte(); err != nil || version != dedupVersion {
		return fmt.Errorf("layout version %d: %w", version, errors.Join(core.ErrUnsupported, err))
	}
	parts := map[uint32]*Partition{}
	for _, p := range v.partitions() {
		parts[p.number] = p
	}
	for r.more() {
		p, since := parts[uint32(r.uvarint())], core.Offset(r.uvarint())
		for range r.uvarint() {
			of := source{r.text(maxSource), int32(r.varint())}
			high, seen := r.varint(), r.varint()
			if r.err != nil {
				return r.err
			}
			v.put(p, since, of, high, seen)
		}
	}
	return r.err
}

// put restores one source, unless its partition is gone or counts anew since.
func (v *dedupView) put(p *Partition, since core.Offset, of source, high, seen int64) {
	if p == nil {
		return
	}
	v.log.buf.Lock()
	defer v.log.buf.Unlock()
	if p.dedup != nil && p.dedup.since == since {
		p.dedup.put(of, high, 0, seen)
	}
}

func (v *dedupView) reset() {
	for _, p := range v.partitions() {
		v.log.buf.Lock()
		if p.dedup != nil {
			p.dedup = newDedup(p.dedup.since, p.dedup.begun)
		}
		v.log.buf.Unlock()
	}
}

// fields reads what binary.Append wrote. The first error stays.
type fields struct {
	r   *bufio.Reader
	err error
}

func (f *fields) more() bool {
	if f.err != nil {
		return false
	}
	_, err := f.r.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return err == nil
}

func (f *fields) uvarint() uint64 { return field(f, binary.ReadUvarint) }
func (f *fields) varint() int64   { return field(f, binary.ReadVarint) }

func field[T any](f *fields, read func(io.ByteReader) (T, error)) (v T) {
	if f.err == nil {
		if v, f.err = read(f.r); errors.Is(f.err, io.EOF) {
			f.err = io.ErrUnexpectedEOF
		}
	}
	return v
}

func (f *fields) text(limit uint64) string {
	n := f.uvarint()
	if f.err == nil && n > limit {
		f.err = fmt.Errorf("a name of %d bytes: %w", n, core.ErrInvalid)
	}
	if f.err != nil {
		return ""
	}
	var b []byte
	for rest := int(n); rest > 0 && f.err == nil; { // grows by what is there, not by what is said
		piece := slices.Grow(b, min(rest, 4096))[:len(b)+min(rest, 4096)]
		_, f.err = io.ReadFull(f.r, piece[len(b):])
		rest -= len(piece) - len(b)
		b = piece
	}
	return string(b)
}
