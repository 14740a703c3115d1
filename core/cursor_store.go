package core

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

const cursorVersion = 1

// AppendBinary appends the stored form: a version byte, Next, the number of ranges, and for each one its distance from the
// end of what precedes it and its length, all as unsigned varints.
func (c *Cursor) AppendBinary(dst []byte) []byte {
	dst = append(dst, cursorVersion)
	dst = binary.AppendUvarint(dst, uint64(c.Next))
	dst = binary.AppendUvarint(dst, uint64(c.count))
	dst = slices.Grow(dst, 3*c.count)
	end := c.Next
	for _, l := range c.leaves {
		for _, r := range l.ranges {
			gap, n := uint64(r.From-end), uint64(r.To-r.From)
			if gap|n < 0x80 { // nearly always
				dst = append(dst, byte(gap), byte(n))
			} else {
				dst = binary.AppendUvarint(binary.AppendUvarint(dst, gap), n)
			}
			end = r.To
		}
	}
	return dst
}

// ParseCursor reads what AppendBinary wrote, and nothing else: all of b, well-formed, else an error that wraps ErrInvalid.
// It allocates no more than ten bytes for each byte of b.
func ParseCursor(b []byte) (Cursor, error) {
	if len(b) == 0 || b[0] != cursorVersion {
		return Cursor{}, fmt.Errorf("cursor of an unknown version: %w", ErrInvalid)
	}
	d := cursorReader{rest: b[1:]}
	c := Cursor{Next: d.advance(0, 0)}
	n := d.uvarint()
	if n > uint64(len(d.rest)/2) { // a range takes two bytes at least
		d.bad = true
	}
	if d.bad {
		return Cursor{}, fmt.Errorf("cursor header: %w", ErrInvalid)
	}
	ranges := make([]Range, n)
	end := c.Next
	for i := range ranges {
		from := d.advance(end, 1)
		end = d.advance(from, 1)
		ranges[i] = Range{from, end}
	}
	if d.bad || len(d.rest) > 0 {
		return Cursor{}, fmt.Errorf("cursor ranges: %w", ErrInvalid)
	}
	for l := range slices.Chunk(ranges, leafMost) {
		c.leaves = append(c.leaves, &leaf{ranges: l})
	}
	c.count = int(n)
	return c, nil
}

// cursorReader keeps its first failure, so that the parser reads like the format.
type cursorReader struct {
	rest []byte
	bad  bool
}

func (d *cursorReader) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || d.bad {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// advance reads a step of at least least and returns from plus that step.
func (d *cursorReader) advance(from Offset, least uint64) Offset {
	v := d.uvarint()
	if d.bad || v < least || v > uint64(math.MaxInt64-from) {
		d.bad = true
		return from
	}
	return from + Offset(v)
}
