package disk

import (
	"encoding/binary"

	"isthmus/core/journal"
)

// The filters are Bloom filters, one for each stretch: which hashes of entries it may hold. Their section is empty, or
//
//	u32 stretches, u32 words; per stretch u32 first word; the words of 64 bits
//
// A hash has a share of 12 bits and sets 4, all in one word: one stretch in fifty is read in vain. A filter of no words holds
// nothing.
const (
	filterBytes = 4
	filterBits  = 12
	hashBytes   = 28 // of an extent, for each hash that may be taken of it
)

func filterWords(hashes int) int { return (hashes*filterBits + 63) / 64 }

// probe returns the word of a hash in a filter of n, and its bits there.
func probe(hash uint32, n int) (word int, bits uint64) {
	h := uint64(hash) * 0x9E3779B97F4A7C15
	word = int(h >> 32 * uint64(n) >> 32)
	h = (h ^ h>>29) * 0xBF58476D1CE4E5B9 >> 40
	return word, 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63) | 1<<(h>>18&63)
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
	word, bits := probe(hash, len(f))
	return f[word]&bits == bits
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
			word, bits := probe(v, len(f))
			f[word] |= bits
		}
	}
	h.list, h.all = h.list[:0], false
	clear(h.recent[:])
	return words
}
