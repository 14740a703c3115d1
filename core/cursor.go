package core

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Cursor is a group's place in one partition: everything below Next is acknowledged (the mark-delete), and so is what lies
// in Acked. Acked is sorted, its ranges neither touch each other nor Next, so one state has one form.
//
// The zero Cursor stands at the beginning. A copy shares the ranges: use Clone to keep one while the other goes on.
type Cursor struct {
	Next  Offset
	Acked []Range
}

// Ack acknowledges r, whatever of it was acknowledged before, and tells whether that changed anything.
// Amortized cost is constant at the end and at the front; in the middle of n holes a search and a move of the shorter side.
func (c *Cursor) Ack(r Range) bool {
	r.From = max(r.From, c.Next)
	if r.From >= r.To {
		return false
	}
	if r.From == c.Next {
		return c.AckThrough(r.To)
	}
	if n := len(c.Acked); n == 0 || c.Acked[n-1].To < r.From {
		c.Acked = append(c.Acked, r)
		return true
	}
	i := c.search(r.From - 1) // the first range that touches r or lies beyond it
	if i < len(c.Acked) && c.Acked[i].From <= r.From && c.Acked[i].To >= r.To {
		return false
	}
	j := i
	for j < len(c.Acked) && c.Acked[j].From <= r.To {
		r.From = min(r.From, c.Acked[j].From)
		r.To = max(r.To, c.Acked[j].To)
		j++
	}
	if i == j {
		c.Acked = slices.Insert(c.Acked, i, r)
		return true
	}
	c.Acked[i] = r
	c.drop(i+1, j)
	return true
}

// AckThrough acknowledges everything below next and tells whether that changed anything.
func (c *Cursor) AckThrough(next Offset) bool {
	if next <= c.Next {
		return false
	}
	i := 0
	if len(c.Acked) > 0 && c.Acked[0].From <= next {
		i = sort.Search(len(c.Acked), func(k int) bool { return c.Acked[k].From > next })
		next = max(next, c.Acked[i-1].To)
	}
	c.Next = next
	c.drop(0, i)
	return true
}

// Covers tells whether o is acknowledged.
func (c *Cursor) Covers(o Offset) bool { return c.NextUnacked(o) != o }

// NextUnacked returns the first offset at or after o that is not acknowledged.
func (c *Cursor) NextUnacked(o Offset) Offset {
	o = max(o, c.Next)
	if i := c.search(o); i < len(c.Acked) && c.Acked[i].From <= o {
		return c.Acked[i].To
	}
	return o
}

// Unacked counts the offsets of r that are not acknowledged.
func (c *Cursor) Unacked(r Range) int64 {
	r.From = max(r.From, c.Next)
	if r.From >= r.To {
		return 0
	}
	n := r.To - r.From
	for i := c.search(r.From); i < len(c.Acked) && c.Acked[i].From < r.To; i++ {
		n -= min(c.Acked[i].To, r.To) - max(c.Acked[i].From, r.From)
	}
	return n
}

// AppendAcked appends the acknowledged parts of r to dst, in order.
func (c *Cursor) AppendAcked(dst []Range, r Range) []Range {
	if r.From >= r.To {
		return dst
	}
	if r.From < c.Next {
		dst = append(dst, Range{r.From, min(r.To, c.Next)})
	}
	for i := c.search(r.From); i < len(c.Acked) && c.Acked[i].From < r.To; i++ {
		dst = append(dst, Range{max(c.Acked[i].From, r.From), min(c.Acked[i].To, r.To)})
	}
	return dst
}

// Clone returns a copy that shares nothing with c.
func (c *Cursor) Clone() Cursor { return Cursor{Next: c.Next, Acked: slices.Clone(c.Acked)} }

// Equal tells whether both stand at the same place.
func (c *Cursor) Equal(d Cursor) bool { return c.Next == d.Next && slices.Equal(c.Acked, d.Acked) }

// search returns the index of the first range that ends after o.
func (c *Cursor) search(o Offset) int {
	if n := len(c.Acked); n == 0 || c.Acked[n-1].To <= o {
		return n
	}
	if c.Acked[0].To > o {
		return 0
	}
	return sort.Search(len(c.Acked), func(i int) bool { return c.Acked[i].To > o })
}

// drop removes Acked[i:j] and moves the shorter side. At the front it costs nothing until half of a long list is gone;
// short lists are moved down at once, so that a group at work does not allocate.
func (c *Cursor) drop(i, j int) {
	const short = 64
	n := len(c.Acked)
	switch rest := n - j; {
	case i == j:
	case rest > short && i < rest:
		copy(c.Acked[j-i:j], c.Acked[:i])
		c.Acked = c.Acked[j-i:]
	default:
		copy(c.Acked[i:], c.Acked[j:])
		c.Acked = c.Acked[:n-(j-i)]
	}
}

const cursorVersion = 1

// AppendBinary appends the stored form: a version byte, Next, the number of ranges, and for each one its distance from the
// end of what precedes it and its length, all as unsigned varints.
func (c *Cursor) AppendBinary(dst []byte) []byte {
	dst = append(dst, cursorVersion)
	dst = binary.AppendUvarint(dst, uint64(c.Next))
	dst = binary.AppendUvarint(dst, uint64(len(c.Acked)))
	end := c.Next
	for _, r := range c.Acked {
		dst = binary.AppendUvarint(dst, uint64(r.From-end))
		dst = binary.AppendUvarint(dst, uint64(r.To-r.From))
		end = r.To
	}
	return dst
}

// ParseCursor reads what AppendBinary wrote, and nothing else: all of b, well-formed, else an error that wraps ErrInvalid.
// It allocates no more than eight bytes for each byte of b.
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
	if n > 0 {
		c.Acked = make([]Range, n)
	}
	end := c.Next
	for i := range c.Acked {
		from := d.advance(end, 1)
		end = d.advance(from, 1)
		c.Acked[i] = Range{from, end}
	}
	if d.bad || len(d.rest) > 0 {
		return Cursor{}, fmt.Errorf("cursor ranges: %w", ErrInvalid)
	}
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
