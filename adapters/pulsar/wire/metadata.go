package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Compression types.
const (
	CompressionNone int32 = iota
	CompressionLZ4
	CompressionZLIB
	CompressionZSTD
	CompressionSnappy
)

// Metadata is what the gateway wants to know of a MessageMetadata. Slices are views.
type Metadata struct {
	Producer         []byte
	Sequence         uint64
	PublishTime      uint64
	HasKey           bool
	Key              []byte // base64 text when KeyB64
	KeyB64           bool
	HasOrdering      bool
	OrderingKey      []byte
	Compression      int32
	UncompressedSize uint32
	Batch            bool // num_messages_in_batch is there, even if 1: the body is a batch
	NumMessages      int32
	EventTime        uint64
	Encrypted        bool
	Highest          uint64
	HasHighest       bool
	NullValue        bool
	HasChunk         bool
	ChunkID, Chunks  int32 // which one of how many
	Marker           bool
	DeliverAt        int64 // unix ms; 0: at once
}

// Parse reads the fields above without allocating.
// Spec: Pulsar MessageMetadata: presence of num_messages_in_batch, even 1, means that the body is a batch
func (m *Metadata) Parse(b []byte) error {
	*m = Metadata{NumMessages: 1}
	r := reader{b: b}
	seen := 0
	for {
		num, wt, ok := r.next()
		if !ok {
			break
		}
		switch num {
		case 1:
			m.Producer, seen = r.raw(wt), seen|1
		case 2:
			m.Sequence, seen = r.uint(wt), seen|2
		case 3:
			m.PublishTime, seen = r.uint(wt), seen|4
		default:
			m.field(&r, num, wt)
		}
	}
	if r.err == nil && seen != 7 {
		r.fail("producer name, sequence id or publish time missing")
	}
	if r.err == nil && m.NumMessages < 1 {
		r.fail("number of messages")
	}
	if r.err != nil {
		return fmt.Errorf("MessageMetadata: %w", r.err)
	}
	return nil
}

// field reads an optional one.
func (m *Metadata) field(r *reader, num, wt int) {
	switch num {
	case 6:
		m.Key, m.HasKey = r.raw(wt), true
	case 8:
		m.Compression = int32(r.uint(wt))
	case 9:
		m.UncompressedSize = uint32(r.uint(wt))
	case 11:
		n := r.uint(wt)
		m.NumMessages, m.Batch = int32(min(n, math.MaxInt32)), true
	case 12:
		m.EventTime = r.uint(wt)
	case 13:
		r.raw(wt)
		m.Encrypted = true
	case 17:
		m.KeyB64 = r.uint(wt) != 0
	case 18:
		m.OrderingKey, m.HasOrdering = r.raw(wt), true
	case 19:
		m.DeliverAt = int64(r.uint(wt))
	case 20:
		r.uint(wt)
		m.Marker = true
	case 24:
		m.Highest, m.HasHighest = r.uint(wt), true
	case 25:
		m.NullValue = r.uint(wt) != 0
	case 27:
		m.Chunks = int32(min(r.uint(wt), math.MaxInt32))
	case 29:
		m.ChunkID, m.HasChunk = int32(min(r.uint(wt), math.MaxInt32)), true
	default:
		r.skip(wt)
	}
}

// properties calls yield for each property in the metadata bytes b: field 4 of MessageMetadata, field 1 of
// SingleMessageMetadata.
func properties(b []byte, field int, yield func(KeyValue)) error {
	r := reader{b: b}
	for {
		num, wt, ok := r.next()
		if !ok {
			return r.err
		}
		if num != field {
			r.skip(wt)
			continue
		}
		var kv KeyValue
		if err := kv.parse(r.raw(wt)); err != nil && r.err == nil {
			r.err = err
		} else if r.err == nil {
			yield(kv)
		}
	}
}

func (c *KeyValue) parse(b []byte) error {
	r := reader{b: b}
	for {
		num, wt, ok := r.next()
		if !ok {
			return r.err
		}
		switch num {
		case 1:
			c.Key = string(r.raw(wt))
		case 2:
			c.Value = string(r.raw(wt))
		default:
			r.skip(wt)
		}
	}
}

// MetadataProperties yields the properties of a MessageMetadata.
func MetadataProperties(b []byte, yield func(KeyValue)) error { return properties(b, 4, yield) }

// SingleProperties yields the properties of a SingleMessageMetadata.
func SingleProperties(b []byte, yield func(KeyValue)) error { return properties(b, 1, yield) }

// OutMetadata is the metadata of a message that another protocol produced.
type OutMetadata struct {
	Producer    string
	Sequence    uint64
	PublishTime uint64
	HasKey      bool
	Key         []byte
	KeyB64      bool
	OrderingKey []byte
	EventTime   uint64
	NullValue   bool
	Batch       bool // of one message
}

// AppendSingle appends the one message of a batch, which has no body and no properties.
func (m *OutMetadata) AppendSingle(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if m.HasKey {
		dst = appendBytes(dst, 2, m.Key)
	}
	dst = appendUint(dst, 3, 0)
	if m.EventTime != 0 {
		dst = appendUint(dst, 5, m.EventTime)
	}
	if m.KeyB64 {
		dst = appendUint(dst, 6, 1)
	}
	if len(m.OrderingKey) > 0 {
		dst = appendBytes(dst, 7, m.OrderingKey)
	}
	dst = appendUint(dst, 8, m.Sequence)
	if m.NullValue {
		dst = appendUint(dst, 9, 1)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// AppendProperty appends one property of a MessageMetadata.
func AppendProperty(dst []byte, key, value string) []byte {
	dst, start := openNested(dst, 4)
	return closeNested(appendBytes(appendBytes(dst, 1, key), 2, value), start)
}

// Append appends MessageMetadata. properties, if not nil, appends those in their order. The same values always give the
// same bytes.
func (m *OutMetadata) Append(dst []byte, properties func(dst []byte) []byte) []byte {
	dst = appendBytes(dst, 1, m.Producer)
	dst = appendUint(dst, 2, m.Sequence)
	dst = appendUint(dst, 3, m.PublishTime)
	if properties != nil {
		dst = properties(dst)
	}
	if m.HasKey {
		dst = appendBytes(dst, 6, m.Key)
	}
	if m.Batch {
		dst = appendUint(dst, 11, 1)
	}
	if m.EventTime != 0 {
		dst = appendUint(dst, 12, m.EventTime)
	}
	if m.KeyB64 {
		dst = appendUint(dst, 17, 1)
	}
	if len(m.OrderingKey) > 0 {
		dst = appendBytes(dst, 18, m.OrderingKey)
	}
	if m.NullValue {
		dst = appendUint(dst, 25, 1)
	}
	return dst
}

// Single is one message of a batch. Slices are views.
type Single struct {
	Raw         []byte // its metadata
	Body        []byte
	HasKey      bool
	Key         []byte
	KeyB64      bool
	HasOrdering bool
	OrderingKey []byte
	EventTime   uint64
	Sequence    uint64
	HasSequence bool
	NullValue   bool
	Compacted   bool
}

// Next takes one message off the front of an uncompressed batch body and returns the rest.
// Spec: Pulsar batch body: repeated [metadata size u32][SingleMessageMetadata][payload_size bytes]
func (s *Single) Next(b []byte) (rest []byte, err error) {
	*s = Single{}
	if len(b) < 4 {
		return nil, fmt.Errorf("batch ends early: %w", ErrMalformed)
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, fmt.Errorf("metadata of %d bytes in a batch: %w", n, ErrMalformed)
	}
	s.Raw, b = b[4:4+n:4+n], b[4+n:]
	size, err := s.parse()
	if err != nil {
		return nil, err
	}
	if size > uint64(len(b)) {
		return nil, fmt.Errorf("message of %d bytes in a batch: %w", size, ErrMalformed)
	}
	s.Body = b[:size:size]
	return b[size:], nil
}

func (s *Single) parse() (size uint64, err error) {
	r := reader{b: s.Raw}
	hasSize := false
	for {
		num, wt, ok := r.next()
		if !ok {
			break
		}
		switch num {
		case 2:
			s.Key, s.HasKey = r.raw(wt), true
		case 3:
			size, hasSize = r.uint(wt), true
		case 4:
			s.Compacted = r.uint(wt) != 0
		case 5:
			s.EventTime = r.uint(wt)
		case 6:
			s.KeyB64 = r.uint(wt) != 0
		case 7:
			s.OrderingKey, s.HasOrdering = r.raw(wt), true
		case 8:
			s.Sequence, s.HasSequence = r.uint(wt), true
		case 9:
			s.NullValue = r.uint(wt) != 0
		default:
			r.skip(wt)
		}
	}
	if r.err == nil && !hasSize {
		r.fail("payload size missing")
	}
	if r.err != nil {
		return 0, fmt.Errorf("SingleMessageMetadata: %w", r.err)
	}
	return size, nil
}
