package core

import "encoding/binary"

// HashKey is the hash by which an index finds entries of a key. It is never 0.
func HashKey(key []byte) uint32 { return max(Murmur3_32(key), 1) }

// AppendHashes appends what an index may find these encoded entries by: of each the hash of its MQTT topic, and that of its
// key. Whatever follows the first entry that cannot be read adds nothing.
func AppendHashes(dst []uint32, entries []byte) []uint32 {
	for len(entries) >= entryFixed {
		size := binary.LittleEndian.Uint32(entries)
		if size < entryFixed || uint64(size) > uint64(len(entries)) {
			break
		}
		e := entries[:size]
		entries = entries[size:]
		if h := binary.LittleEndian.Uint32(e[52:]); h != 0 {
			dst = append(dst, h)
		}
		if Flags(binary.LittleEndian.Uint16(e[6:]))&FlagHasKey == 0 {
			continue
		}
		if n, k := binary.Uvarint(e[entryFixed:]); k > 0 && n <= uint64(len(e)-entryFixed-k) {
			dst = append(dst, HashKey(e[entryFixed+k:][:n]))
		}
	}
	return dst
}
