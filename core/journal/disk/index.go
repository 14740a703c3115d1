package disk

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"

	"isthmus/core"
	"isthmus/core/journal"
)

// The sparse index cuts a segment into stretches of at least stretchSize bytes (or one larger block).
// On disk it is a row of sections, each with a header of 16 bytes: kind u32, CRC32C of the content
// u32, length u64.
const (
	stretchSize   = 64 << 10
	sectionHeader = 16
	kindSparse    = 1 // u32 stretches, u32 marks; per stretch Seq, position, time, u32 first mark; per mark u32 partition, next offset
	kindHashes    = 2 // see filter.go; empty when nobody hashes
	stretchBytes  = 28
	markBytes     = 12
)

// stretch is a run of whole records.
type stretch struct {
	seq   journal.Seq // of its first record
	pos   int64       // of its first record
	time  int64       // greatest commit time
	marks int         // its marks begin here
	words int         // its filter begins here
}

// mark: what a stretch holds of the partition ends before next.
type mark struct {
	partition uint32
	next      core.Offset
}

// index has no pointers and only grows, so that a reader may go on with the slices it has seen.
type index struct {
	stretches []stretch
	marks     []mark   // of one stretch: sorted by partition
	words     []uint64 // filters of hashes
	hashed    bool     // they are there
}

// size is the number of bytes of encode, with room for one more stretch of n marks and so many hashes.
func (x *index) size(n, hashes int) int64 {
	size := 2*sectionHeader + 8 + stretchBytes*(len(x.stretches)+1) + markBytes*(len(x.marks)+n)
	if x.hashed {
		size += 8 + filterBytes*(len(x.stretches)+1) + 8*(len(x.words)+filterWords(hashes))
	}
	return int64(size)
}

func (x *index) marksOf(i int) []mark {
	if i+1 < len(x.stretches) {
		return x.marks[x.stretches[i].marks:x.stretches[i+1].marks]
	}
	return x.marks[x.stretches[i].marks:]
}

// find returns the stretch that holds seq.
func (x *index) find(seq journal.Seq) int {
	i, ok := slices.BinarySearchFunc(x.stretches, seq, func(s stretch, q journal.Seq) int { return cmp.Compare(s.seq, q) })
	if !ok {
		i--
	}
	return max(i, 0)
}

// wanted tells whether stretch i can matter.
func (x *index) wanted(i int, h journal.Hint) bool {
	return x.stretches[i].time >= h.Since && marksWanted(x.marksOf(i), h) && x.hashWanted(i, h)
}

func marksWanted(ms []mark, h journal.Hint) bool {
	if !h.HasPartition {
		return true
	}
	i, ok := slices.BinarySearchFunc(ms, h.Partition, func(m mark, p uint32) int { return cmp.Compare(m.partition, p) })
	return ok && ms[i].next > h.From
}

// summary merges the marks of all stretches.
func (x *index) summary() []mark {
	next := map[uint32]core.Offset{}
	for _, m := range x.marks {
		next[m.partition] = max(next[m.partition], m.next)
	}
	ms := make([]mark, 0, len(next))
	for p, n := range next {
		ms = append(ms, mark{p, n})
	}
	sortMarks(ms)
	return ms
}

func sortMarks(ms []mark) {
	slices.SortFunc(ms, func(a, b mark) int { return cmp.Compare(a.partition, b.partition) })
}

func (x *index) encode() []byte {
	b := make([]byte, sectionHeader, x.size(0, 0))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(x.stretches)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(x.marks)))
	for _, s := range x.stretches {
		b = binary.LittleEndian.AppendUint64(b, uint64(s.seq))
		b = binary.LittleEndian.AppendUint64(b, uint64(s.pos))
		b = binary.LittleEndian.AppendUint64(b, uint64(s.time))
		b = binary.LittleEndian.AppendUint32(b, uint32(s.marks))
	}
	for _, m := range x.marks {
		b = binary.LittleEndian.AppendUint32(b, m.partition)
		b = binary.LittleEndian.AppendUint64(b, uint64(m.next))
	}
	putSection(b, kindSparse)
	return append(b, x.encodeFilters()...)
}

func putSection(b []byte, kind uint32) {
	binary.LittleEndian.PutUint32(b, kind)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[sectionHeader:], castagnoli))
	binary.LittleEndian.PutUint64(b[8:], uint64(len(b)-sectionHeader))
}

// decodeIndex finds the sparse section among all; false when it is not there or not whole. Without good filters it is good
// all the same.
func decodeIndex(b []byte, v *view) (x *index, ok bool) {
	for len(b) >= sectionHeader {
		kind, crc := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		size := binary.LittleEndian.Uint64(b[8:])
		b = b[sectionHeader:]
		if size > uint64(len(b)) {
			return x, ok
		}
		whole := crc32.Checksum(b[:size], castagnoli) == crc
		switch {
		case kind == kindSparse && whole && x == nil:
			x, ok = decodeSparse(b[:size], v)
		case kind == kindHashes && whole && ok && !x.hashed:
			x.decodeFilters(b[:size])
		}
		b = b[size:]
	}
	return x, ok
}

func decodeSparse(b []byte, v *view) (*index, bool) {
	if len(b) < 8 {
		return nil, false
	}
	n, m := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	b = b[8:]
	if n*stretchBytes+m*markBytes != uint64(len(b)) {
		return nil, false
	}
	x := &index{stretches: make([]stretch, n), marks: make([]mark, m)}
	for i := range x.stretches {
		x.stretches[i] = stretch{
			seq:   journal.Seq(binary.LittleEndian.Uint64(b)),
			pos:   int64(binary.LittleEndian.Uint64(b[8:])),
			time:  int64(binary.LittleEndian.Uint64(b[16:])),
			marks: int(binary.LittleEndian.Uint32(b[24:])),
		}
		b = b[stretchBytes:]
	}
	for i := range x.marks {
		x.marks[i] = mark{binary.LittleEndian.Uint32(b), int64(binary.LittleEndian.Uint64(b[4:]))}
		b = b[markBytes:]
	}
	return x, x.sane(v)
}

// sane holds every number to its bounds: a reader uses them without asking again.
func (x *index) sane(v *view) bool {
	last := stretch{seq: v.seg.base - 1, pos: headerSize - 1}
	for i, st := range x.stretches {
		if st.seq <= last.seq || st.seq >= v.next || st.pos <= last.pos || st.pos >= v.end || st.pos%8 != 0 ||
			st.marks < last.marks || st.marks > len(x.marks) {
			return false
		}
		if i == 0 && (st.seq != v.seg.base && !v.seg.thin || st.pos != headerSize || st.marks != 0) {
			return false
		}
		last = st
	}
	return len(x.stretches) > 0 || v.end == headerSize
}

// indexBuilder builds the index of the segment being written. Owned by the writer.
type indexBuilder struct {
	index index
	tail  stretch // not complete yet
	begun bool
	time  int64                  // greatest of the segment
	marks map[uint32]core.Offset // of tail
	hashes
}

func newIndexBuilder(hash func([]uint32, journal.Extent) []uint32) *indexBuilder {
	b := &indexBuilder{time: math.MinInt64, marks: map[uint32]core.Offset{}}
	b.hash, b.index.hashed = hash, hash != nil
	return b
}

// add notes a block at pos.
func (b *indexBuilder) add(seq journal.Seq, pos int64, block journal.Block) {
	if b.begun && pos-b.tail.pos >= stretchSize {
		b.flush()
	}
	if !b.begun {
		b.begun, b.tail = true, stretch{seq: seq, pos: pos, time: block.Time}
	}
	b.tail.time = max(b.tail.time, block.Time)
	b.time = max(b.time, block.Time)
	for e := range block.Extents() {
		b.marks[e.Partition] = max(b.marks[e.Partition], e.Next())
		b.hashes.add(e)
	}
}

// flush completes the stretch that was begun.
func (b *indexBuilder) flush() {
	if !b.begun {
		return
	}
	b.begun = false
	b.tail.marks, b.tail.words = len(b.index.marks), len(b.index.words)
	b.index.words = b.hashes.flush(b.index.words)
	for p, n := range b.marks {
		b.index.marks = append(b.index.marks, mark{p, n})
	}
	clear(b.marks)
	sortMarks(b.index.marks[b.tail.marks:])
	b.index.stretches = append(b.index.stretches, b.tail)
}

// size is what the index will take once this block is in it.
func (b *indexBuilder) size(block journal.Block) int64 {
	return b.index.size(len(b.marks)+block.Len(), len(b.list)+len(block.Bytes())/hashBytes+1) + stretchBytes + filterBytes + 8
}
