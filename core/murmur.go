package core

import (
	"encoding/binary"
	"math/bits"
)

// Murmur3_32 is MurmurHash3 x86 32 bit with seed 0: the hash of all placement by key, of the failover ring, and of key slots.
// Users mask the sign bit, as Pulsar does: Murmur3_32(key) & 0x7fffffff.
// Spec: Pulsar Murmur3_32Hash; ACCEPTANCE appendix A
func Murmur3_32(b []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h, n := uint32(0), uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := bits.RotateLeft32(binary.LittleEndian.Uint32(b)*c1, 15) * c2
		h = bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
	}
	var k uint32
	for i := len(b) - 1; i >= 0; i-- {
		k = k<<8 | uint32(b[i])
	}
	h ^= bits.RotateLeft32(k*c1, 15) * c2
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// KeySlots is how many hash slots the keys of a key_shared group fall into.
const KeySlots = 1 << 16

// KeySlot is the slot of a key: from 1 to KeySlots-1, so that 0 can say that there is no key.
// Spec: Pulsar StickyKeyConsumerSelector.makeStickyKeyHash; ACCEPTANCE appendix A
func KeySlot(key []byte) uint32 { return max(1, Murmur3_32(key)%KeySlots) }
