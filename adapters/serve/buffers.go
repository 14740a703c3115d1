package serve

import "sync"

// Two sizes: what most flushes need, and what a burst needs. Larger ones go to the collector, so that one
// large packet does not stay in a pool for ever.
const (
	smallBuf = 4 << 10
	largeBuf = 64 << 10
)

var (
	smalls = sync.Pool{New: func() any { return new([smallBuf]byte) }}
	larges = sync.Pool{New: func() any { return new([largeBuf]byte) }}
)

// GetBuffer borrows an empty buffer of 4 KiB.
func GetBuffer() []byte { return smalls.Get().(*[smallBuf]byte)[:0] }

// GetLarge borrows an empty buffer of 64 KiB, for a burst.
func GetLarge() []byte { return larges.Get().(*[largeBuf]byte)[:0] }

// PutBuffer gives back a borrowed buffer; of any other slice it takes no notice.
func PutBuffer(b []byte) {
	switch cap(b) {
	case smallBuf:
		smalls.Put((*[smallBuf]byte)(b[:smallBuf]))
	case largeBuf:
		larges.Put((*[largeBuf]byte)(b[:largeBuf]))
	}
}

// roomy moves a small buffer that is nearly full to a large one, instead of letting append double it twice.
func roomy(b []byte) []byte {
	if cap(b) != smallBuf || cap(b)-len(b) >= smallBuf/4 {
		return b
	}
	large := append(GetLarge(), b...)
	PutBuffer(b)
	return large
}
