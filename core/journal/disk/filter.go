package disk

import (
	"encoding/binary"

	"isthmus/core/journal"
)

// The filters are Bloom filters, one for each stretch: which hashes of entries it may hold. Their section is empty, or
//
//	u32 stretches, u32 words; per stretch u32 first word; the words of 64 bits
//
// A hash takes 10 bits and sets 4 of them, so one stretch in a hundred is read in vain. A filter of no words holds nothing.
const (
	filterBytes = 4
	filterBits  = 10
	hashBytes   = 28 // of an extent, for each hash that may be taken of it
)

func filterWords(hashes int) int { return (hashes*filterBits + 63) / 64 }

// probe yields the four bits of a hash in a filter of n words.
func probe(hash uint32, n int) (bits [4]uint64) {
	h := uint64(hash) * 0x9E3779B97F4A7C15
	step := h>>32 | 1
	for i := range bits {
		bits[i] = (h >> 16 & 0xFFFFFFFF) * uint64(n*64) >> 32
		h += step << 16
	}
	return bits
}

func (x *index) filterOf(i int) []uint64 {
	if i+1 < len(x.stretches) {
		return x.words[x.stretches[i].words:x.stretches[i+1].words]
	}
	return x.words[x.stretches[i].words:]
}

// hashWanted tells whether stretch i may hold one of the hashes.
func (x *index) hashWanted(i int, h journal.Hint) bool {
	if len(h.Hashes) == 0 || !x.hashed {
		return true
	}
	f := x.filterOf(i)
	for _, hash := range h.Hashes {
		if filterHas(f, hash) {
			return true
		}
	}
	return false
}

func filterHas(f []uint64, hash uint32) bool {
	if len(f) == 0 {
		return false
	}
	for _, b := range probe(hash, len(f)) {
		if f[b/64]&(1<<(b%64)) == 0 {
			return false
		}
	}
	return true
}

func (x *index) encodeFilters() []byte {
	b := make([]byte, sectionHeader)
	if x.hashed {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(x.stretches)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(x.words)))
		for _, s := range x.stretches {
			b = binary.LittleEndian.AppendUint32(b, uint32(s.words))
		}
		for _, w := range x.words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
	}
	putSection(b, kindHashes)
	return b
}

// decodeFilters leaves the index without filters when they do not fit to it: more is read then.
func (x *index) decodeFilters(b []byte) {
	if len(b) < 8 {
		return
	}
	n, m := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	b = b[8:]
	if n != uint64(len(x.stretches)) || n*filterBytes+m*8 != uint64(len(b)) {
		return
	}
	last := uint32(0)
	for i := range x.stretches {
		at := binary.LittleEndian.Uint32(b[filterBytes*i:])
		if at < last || uint64(at) > m || i == 0 && at != 0 {
			return
		}
		last = at
	}
	for i := range x.stretches {
		x.stretches[i].words = int(binary.LittleEndian.Uint32(b[filterBytes*i:]))
	}
	b = b[filterBytes*n:]
	x.words, x.hashed = make([]uint64, m), true
	for i := range x.words {
		x.words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
}

// hashes collects those of one stretch. Owned by the indexBuilder.
type hashes struct {
	hash   func([]uint32, journal.Extent) []uint32 // nil: nobody hashes
	list   []uint32
	recent [256]uint32 // a cache: few topics make small filters
	all    bool        // more than there is room for: the filter lets everything through
}

func (h *hashes) add(x journal.Extent) {
	if h.hash == nil {
		return
	}
	before := len(h.list)
	h.list = h.hash(h.list, x)
	if len(h.list)-before > len(x.Data)/hashBytes {
		h.all, h.list = true, h.list[:before]
		return
	}
	kept := h.list[:before]
	for _, v := range h.list[before:] {
		if r := &h.recent[v%256]; *r != v || v == 0 {
			*r = v
			kept = append(kept, v)
		}
	}
	h.list = kept
}

// flush appends the filter of what was collected.
func (h *hashes) flush(words []uint64) []uint64 {
	if h.hash == nil {
		return words
	}
	if h.all {
		words = append(words, ^uint64(0))
	} else {
		start := len(words)
		words = append(words, make([]uint64, filterWords(len(h.list)))...)
		f := words[start:]
		for _, v := range h.list {
			for _, b := range probe(v, len(f)) {
				f[b/64] |= 1 << (b % 64)
			}
		}
	}
	h.list, h.all = h.list[:0], false
	clear(h.recent[:])
	return words
}
