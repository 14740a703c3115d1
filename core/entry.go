package core

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

// Format says how an entry's Data is read. Adapters supply a Decoder for the format that is native to them.
type Format uint8

// The formats. Their numbers are on disk.
const (
	FormatNeutral  Format = 0 // one message, see Message.AppendNeutral
	FormatPulsar   Format = 1 // CRC32C, metadata size, MessageMetadata and payload as the producer sent them
	FormatRocketMQ Format = 2 // what a send request carried of one message

	// Formats of the engine's internal partitions.
	FormatParked Format = 128 // a parked message, or what became of one
)

// String names the format for people.
func (f Format) String() string {
	switch f {
	case FormatNeutral:
		return "neutral"
	case FormatPulsar:
		return "pulsar"
	case FormatRocketMQ:
		return "rocketmq"
	case FormatParked:
		return "parked"
	}
	return "format-" + strconv.Itoa(int(f))
}

// Flags of an entry. Their bits are on disk.
type Flags uint16

const (
	FlagHasKey     Flags = 1 << iota // tells an empty key from none
	FlagRetain                       // MQTT RETAIN was set
	FlagQoS1                         // published at QoS 1
	FlagQoS2                         // published at QoS 2
	FlagNullBody                     // the body is null, not empty
	FlagChunk                        // one chunk of a larger Pulsar message
	FlagEncrypted                    // only the producer's own clients can read Data
	FlagSequenced                    // SeqLow and SeqHigh are the producer's count: de-duplication may go by them
	FlagMoreChunks                   // a chunk that is not the last one of its message
)

// Entry is what one producer submitted as a unit: Count messages that share the base offset Base.
//
// In an entry that was read, slices are views into an immutable block: keep them, never write to them. What is given to
// Publish is copied before Publish returns.
type Entry struct {
	Base            Offset // set by the engine
	Count           int32
	Format          Format
	Flags           Flags
	Commit          int64 // unix ms, set by the engine
	PublishTime     int64 // unix ms
	Expiry          int64 // unix ms; 0 = none
	Key             []byte
	OrderingKey     []byte
	Producer        []byte
	Handle          int32 // the partition the producer believed it wrote to
	SeqLow, SeqHigh int64
	AddressHash     uint32 // hash of the MQTT topic; 0 = none
	Data            []byte
}

// End is the offset after the last message of the entry.
func (e *Entry) End() Offset { return e.Base + int64(e.Count) }

// Decoder turns an entry of one format into its messages: it appends e.Count messages to dst. It is pure and may be
// called by any goroutine. What cannot be read (encrypted, broken) is an error.
type Decoder func(e *Entry, dst []Message) ([]Message, error)

// Encoded layout, little endian; Base and Commit are not stored: the block's extent gives them.
//
//	 0 u32 size of the whole encoding     20 i64 publish time
//	 4 u8  layout version                 28 i64 expiry
//	 5 u8  format                         36 i64 lowest sequence
//	 6 u16 flags                          44 i64 highest sequence
//	 8 u32 count                          52 u32 hash of the MQTT topic
//	12 i32 handle                         56 uvarint-led key, ordering key, producer; then data to the end
//	16 u32 reserved
const (
	entryFixed   = 56
	entryVersion = 1
	// MaxEntry bounds the encoding of one entry.
	MaxEntry = 64 << 20
)

// EntrySize is the number of bytes that AppendEntry will append.
func EntrySize(e *Entry) int {
	return entryFixed + ledSize(e.Key) + ledSize(e.OrderingKey) + ledSize(e.Producer) + len(e.Data)
}

func ledSize(b []byte) int {
	n := 1
	for v := uint(len(b)); v >= 0x80; v >>= 7 {
		n++
	}
	return n + len(b)
}

// AppendEntry appends the encoding of e, without its base offset. Every message that is stored passes here, under its log's
// mutex: one check for room, and stores at fixed places.
func AppendEntry(dst []byte, e *Entry) []byte {
	size, start := EntrySize(e), len(dst)
	dst = slices.Grow(dst, size)[:start+size]
	b, le := dst[start:], binary.LittleEndian
	h := b[:entryFixed]
	le.PutUint32(h, uint32(size))
	h[4], h[5] = entryVersion, byte(e.Format)
	le.PutUint16(h[6:], uint16(e.Flags))
	le.PutUint32(h[8:], uint32(e.Count))
	le.PutUint32(h[12:], uint32(e.Handle))
	le.PutUint32(h[16:], 0)
	le.PutUint64(h[20:], uint64(e.PublishTime))
	le.PutUint64(h[28:], uint64(e.Expiry))
	le.PutUint64(h[36:], uint64(e.SeqLow))
	le.PutUint64(h[44:], uint64(e.SeqHigh))
	le.PutUint32(h[52:], e.AddressHash)
	b = putLed(putLed(putLed(b[entryFixed:], e.Key), e.OrderingKey), e.Producer)
	copy(b, e.Data)
	return dst
}

// putLed writes v, led by its length, and returns what is behind it.
func putLed(b, v []byte) []byte {
	n := binary.PutUvarint(b, uint64(len(v)))
	return b[n+copy(b[n:], v):]
}

// PeekEntry tells how many messages the entry at the front of b has, and its size, without looking at the rest of it. Both
// are 0 when there is none; ParseEntry says why.
func PeekEntry(b []byte) (count int32, size int) {
	if len(b) < entryFixed {
		return 0, 0
	}
	size = int(binary.LittleEndian.Uint32(b))
	count = int32(binary.LittleEndian.Uint32(b[8:]))
	if size < entryFixed || size > len(b) || count <= 0 {
		return 0, 0
	}
	return count, size
}

// ParseEntry reads the entry at the front of b into e, sets its base offset, and returns what follows it. Nothing is
// copied.
func ParseEntry(b []byte, base Offset, e *Entry) (rest []byte, err error) {
	le := binary.LittleEndian
	if len(b) < entryFixed {
		return nil, fmt.Errorf("entry at offset %d: truncated: %w", base, ErrInvalid)
	}
	size := le.Uint32(b)
	if size < entryFixed || uint64(size) > uint64(len(b)) {
		return nil, fmt.Errorf("entry at offset %d: size %d of %d: %w", base, size, len(b), ErrInvalid)
	}
	if b[4] != entryVersion {
		return nil, fmt.Errorf("entry at offset %d: layout version %d: %w", base, b[4], ErrUnsupported)
	}
	*e = Entry{
		Base: base, Format: Format(b[5]), Flags: Flags(le.Uint16(b[6:])),
		Count: int32(le.Uint32(b[8:])), Handle: int32(le.Uint32(b[12:])),
		PublishTime: int64(le.Uint64(b[20:])), Expiry: int64(le.Uint64(b[28:])),
		SeqLow: int64(le.Uint64(b[36:])), SeqHigh: int64(le.Uint64(b[44:])), AddressHash: le.Uint32(b[52:]),
	}
	if e.Count <= 0 {
		return nil, fmt.Errorf("entry at offset %d: count %d: %w", base, e.Count, ErrInvalid)
	}
	r := reader{b: b[entryFixed:size:size]}
	e.Key, e.OrderingKey, e.Producer = r.bytes(), r.bytes(), r.bytes()
	if r.err != nil {
		return nil, fmt.Errorf("entry at offset %d: %w", base, r.err)
	}
	e.Data = r.b
	return b[size:], nil
}
