package engine

import (
	"cmp"
	"slices"
	"sync/atomic"
	"unsafe"

	"isthmus/core"
)

// Bounds of what is kept: for one partition of a key_shared group, and for all of the node. Beyond them messages are read
// again when their turn comes, one by one: from the tail that costs some microseconds each.
const (
	aheadBytes = 4 << 20
	aheadNode  = 64 << 20
)

// ahead keeps messages that a key_shared state was given and did not assign at once: their slot drains, or its owner has no
// credit. Where consumers set the pace that is most of them. They are copies, since a view would hold its whole block, and
// those of one turn share a buffer, which counts until all that is kept has moved out of it. Owned by the runner.
type ahead struct {
	node    *atomic.Int64 // bytes that all of the node keep
	entries []core.Entry  // in order; Count 0: assigned since
	live    int           // bytes of the others
	held    int           // bytes of memory, of what is assigned as well
}

const entrySize = int(unsafe.Sizeof(core.Entry{}))

func weight(e *core.Entry) int {
	return entrySize + len(e.Key) + len(e.OrderingKey) + len(e.Producer) + len(e.Data)
}

// take returns what was kept of a message that is assigned now. After a nack it comes again, and is read again.
func (a *ahead) take(base core.Offset, count int32) (e core.Entry, ok bool) {
	i, ok := search(a.entries, base)
	if !ok || a.entries[i].Count != count {
		return e, false
	}
	e = a.entries[i]
	a.entries[i] = core.Entry{Base: base}
	if a.live -= weight(&e); a.live == 0 {
		a.clear()
	}
	return e, true
}

// tidy lets go of everything when the group has passed it, or reads it again: it was reset, or its last member here left.
func (a *ahead) tidy(cur core.Cursor, next core.Offset) {
	if len(a.entries) == 0 {
		return
	}
	if last := &a.entries[len(a.entries)-1]; last.Base >= next || last.End() > next || last.End() <= cur.Next {
		a.clear()
	}
}

// keep takes over what of a turn's messages was not assigned (Count 0: it was), as long as there is room.
func (a *ahead) keep(es []core.Entry, mark core.Offset) {
	size := 0
	for i := range es {
		if es[i].Count > 0 {
			size += weight(&es[i])
		}
	}
	if size == 0 {
		return
	}
	if !a.fits(size) && a.live <= a.held/2 {
		a.compact(mark)
	}
	size, n := 0, 0
	for i := range es {
		if es[i].Count == 0 {
			continue
		}
		if w := weight(&es[i]); a.fits(size + w) {
			size += w
			n++
		} else {
			es[i].Count = 0
		}
	}
	a.entries = slices.Grow(a.entries, n)
	a.copy(es, size-n*entrySize)
	a.charge(size)
	a.live += size
}

func (a *ahead) fits(size int) bool {
	return a.held+size <= aheadBytes && a.node.Load()+int64(size) <= aheadNode
}

func (a *ahead) charge(size int) {
	a.held += size
	a.node.Add(int64(size))
}

// copy appends what of es is not assigned, with bytes of its own, of which there are so many. es may be where it appends.
func (a *ahead) copy(es []core.Entry, bytes int) {
	buf := make([]byte, 0, bytes)
	own := func(b []byte) []byte {
		at := len(buf)
		buf = append(buf, b...)
		return buf[at:len(buf):len(buf)]
	}
	for _, e := range es {
		if e.Count > 0 {
			e.Key, e.OrderingKey, e.Producer, e.Data = own(e.Key), own(e.OrderingKey), own(e.Producer), own(e.Data)
			a.entries = append(a.entries, e)
		}
	}
}

// compact moves what is still of use together. It is called when that is half at most, so each message moves about once.
func (a *ahead) compact(mark core.Offset) {
	was, live, n := a.entries, 0, 0
	for i := range was {
		if was[i].End() <= mark {
			was[i].Count = 0
		}
		if was[i].Count > 0 {
			live += weight(&was[i])
			n++
		}
	}
	a.entries = a.entries[:0]
	a.copy(was, live-n*entrySize)
	clear(was[n:])
	a.live = live
	a.charge(live - a.held)
}

func (a *ahead) clear() {
	clear(a.entries)
	a.entries, a.live = a.entries[:0], 0
	a.charge(-a.held)
}

// search finds an entry by its base in entries that are in order. Where each has one message and none is missing it is at
// its distance from the first.
func search(es []core.Entry, base core.Offset) (int, bool) {
	if len(es) == 0 || base < es[0].Base {
		return 0, false
	}
	if i := base - es[0].Base; i < core.Offset(len(es)) {
		if es[i].Base == base {
			return int(i), true
		}
		es = es[:i]
	}
	return slices.BinarySearchFunc(es, base, func(e core.Entry, o core.Offset) int { return cmp.Compare(e.Base, o) })
}
