package engine

import (
	"isthmus/core"
	"isthmus/core/journal"
)

// keepEntries makes of a decision about one entry what a journal.Thinner asks: the runs of adjacent entries that are held.
// An extent that cannot be read is kept as it is: whoever reads it will say so.
func keepEntries(held func(partition uint32, e *core.Entry) bool) journal.Keep {
	return func(dst []journal.Extent, x journal.Extent) []journal.Extent {
		start := len(dst)
		rest, next, open := x.Data, x.First, false
		for len(rest) > 0 {
			var e core.Entry
			after, err := core.ParseEntry(rest, next, &e)
			if err != nil || e.End() > x.Next() {
				return append(dst[:start], x)
			}
			size := len(rest) - len(after)
			switch keep := held(x.Partition, &e); {
			case keep && open:
				run := &dst[len(dst)-1]
				run.Count += uint32(e.Count)
				run.Data = run.Data[:len(run.Data)+size]
			case keep:
				dst = append(dst, journal.Extent{Partition: x.Partition, First: next, Count: uint32(e.Count), Data: rest[:size]})
				open = true
			default:
				open = false
			}
			rest, next = after, e.End()
		}
		return dst
	}
}
