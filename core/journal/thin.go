package journal

import (
	"fmt"

	"isthmus/core"
)

// Thin appends to dst the block b with nothing but what keep keeps, and tells how many extents that is: with none, the
// block as a whole is held by nobody. An answer of keep that was not cut out of the extent is an error.
func (b Block) Thin(dst []byte, keep Keep) (block []byte, extents int, err error) {
	var held []Extent
	for x := range b.Extents() {
		n := len(held)
		held = keep(held, x)
		if err := x.covers(held[n:]); err != nil {
			return dst, 0, err
		}
	}
	if len(held) == 0 {
		return dst, 0, nil
	}
	return AppendBlock(dst, b.Epoch, b.Time, held...), len(held), nil
}

// covers checks that runs lie in e, one behind the other.
func (e Extent) covers(runs []Extent) error {
	at, room := e.First, len(e.Data)
	for _, r := range runs {
		if r.Partition != e.Partition || r.Count == 0 || r.First < at || r.Next() > e.Next() || len(r.Data) > room {
			return fmt.Errorf("thin: [%d, %d) of partition number %d does not lie in [%d, %d): %w",
				r.First, r.Next(), r.Partition, e.First, e.Next(), core.ErrInvalid)
		}
		at, room = r.Next(), room-len(r.Data)
	}
	return nil
}
