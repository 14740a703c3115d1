package parked

import (
	"encoding/binary"
	"fmt"

	"isthmus/core"
)

// Kind says what a record tells. The numbers are on disk.
type Kind uint8

// The kinds.
const (
	Delay   Kind = 1 // a message waits for its time
	Half    Kind = 2 // a message waits for the word of its producer
	Done    Kind = 3 // one of them is no longer parked: released, cancelled, rolled back or given up
	Checked Kind = 4 // the producer of a half message was asked
)

// Record is the content of one entry of the internal partition.
type Record struct {
	Kind   Kind
	Target uint32      // Delay, Half: number of the partition it goes to
	Due    int64       // unix ms. Delay: released then; Half: not before, once committed; Done: of the Delay that it ends, else 0
	Wait   int64       // Half: ms between commit and release
	Check  int64       // unix ms. Half: when to ask first; Checked: when to ask again
	Of     core.Offset // Done, Checked: whose
	Checks uint32      // Checked: how often it was asked by now
	Entry  []byte      // Delay, Half: the entry as core.AppendEntry encodes it
}

// Append appends the encoding: the kind, its numbers as varints in the order of the fields, the entry to the end.
func (r *Record) Append(dst []byte) []byte {
	dst = append(dst, byte(r.Kind))
	switch r.Kind {
	case Delay:
		dst = binary.AppendUvarint(dst, uint64(r.Target))
		dst = binary.AppendVarint(dst, r.Due)
	case Half:
		dst = binary.AppendUvarint(dst, uint64(r.Target))
		dst = binary.AppendVarint(dst, r.Due)
		dst = binary.AppendVarint(dst, r.Wait)
		dst = binary.AppendVarint(dst, r.Check)
	case Done:
		dst = binary.AppendVarint(dst, r.Due)
		dst = binary.AppendUvarint(dst, uint64(r.Of))
	case Checked:
		dst = binary.AppendVarint(dst, r.Check)
		dst = binary.AppendUvarint(dst, uint64(r.Of))
		dst = binary.AppendUvarint(dst, uint64(r.Checks))
	}
	return append(dst, r.Entry...)
}

// Parse reads a record; its Entry is a view into b.
func (r *Record) Parse(b []byte) error { return r.parse(b, true) }

func (r *Record) parse(b []byte, whole bool) error {
	if len(b) == 0 {
		return fmt.Errorf("parked record: empty: %w", core.ErrInvalid)
	}
	*r = Record{Kind: Kind(b[0])}
	d := decoder{b: b[1:]}
	switch r.Kind {
	case Delay:
		r.Target, r.Due = uint32(d.uvarint(maxTarget)), d.varint()
	case Half:
		r.Target, r.Due, r.Wait, r.Check = uint32(d.uvarint(maxTarget)), d.varint(), d.varint(), d.varint()
	case Done:
		r.Due, r.Of = d.varint(), core.Offset(d.uvarint(maxOffset))
	case Checked:
		r.Check, r.Of, r.Checks = d.varint(), core.Offset(d.uvarint(maxOffset)), uint32(d.uvarint(1<<31))
	default:
		return fmt.Errorf("parked record of kind %d: %w", b[0], core.ErrUnsupported)
	}
	holds := whole && (r.Kind == Delay || r.Kind == Half)
	if d.bad || !holds && len(d.b) > 0 || holds && len(d.b) == 0 {
		return fmt.Errorf("parked record of kind %d in %d bytes: %w", r.Kind, len(b), core.ErrInvalid)
	}
	if holds {
		r.Entry = d.b
	}
	return nil
}

// decoder takes numbers off the front of b; after the first fault everything is zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > limit {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}
