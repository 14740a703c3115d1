package meta

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"isthmus/core"
)

// TopicRecord describes a topic.
type TopicRecord struct {
	Partitions int32             `json:"partitions"` // 0 = unpartitioned
	Numbers    []uint32          `json:"numbers"`    // partition numbers, never reused
	Set        string            `json:"set"`        // which set of journals holds it
	Slots      int               `json:"slots"`      // how many journals the set has
	Placement  string            `json:"placement,omitempty"`
	Hash       string            `json:"hash,omitempty"` // function of key → partition, checked at boot
	Names      map[string]string `json:"names,omitempty"`
	Declared   bool              `json:"declared,omitempty"`

	Retention     time.Duration `json:"retention,omitempty"` // how long consumed data stays
	RetentionSize int64         `json:"retention_size,omitempty"`
	TTL           time.Duration `json:"ttl,omitempty"`
	BacklogAge    time.Duration `json:"backlog_age,omitempty"`
	BacklogSize   int64         `json:"backlog_size,omitempty"`
	WhenFull      string        `json:"when_full,omitempty"`
	GroupExpiry   time.Duration `json:"group_expiry,omitempty"`
	First         []core.Offset `json:"first,omitempty"` // by partition: what lies before was emptied
	Deduplicate   bool          `json:"deduplicate,omitempty"`
	DedupSince    []core.Offset `json:"dedup_since,omitempty"` // per partition, from which offset on; 0 where it is missing
	DedupBegun    int64         `json:"dedup_begun,omitempty"` // and from which commit time on, unix ms
}

// GroupRecord describes a durable group.
type GroupRecord struct {
	Mode    uint8         `json:"mode"`
	Members []string      `json:"members,omitempty"`
	Idle    time.Duration `json:"idle,omitempty"` // for how long nobody has used it, while the gateway ran
}

// JournalRecord is what start-up must know of a journal before it reads it: nothing up to Durable may be missing, and
// replay begins after Durable with these next offsets.
type JournalRecord struct {
	Epoch   uint64
	Durable uint64
	Time    int64 // commit time of block Durable, unix ms: commit times never go back
	Next    []PartitionOffset
	Bytes   []PartitionOffset // that each partition has written so far
}

// MarkRecord is a place in a journal to start reading from: at Seq, the next offsets were these.
type MarkRecord struct {
	Time  int64 // commit time of the block at Seq, unix ms
	Next  []PartitionOffset
	Bytes []PartitionOffset // that each partition had written
}

// CheckpointRecord is where the replay of one view of a journal begins: its state after block Seq is in Files. The first is
// a snapshot, each further one holds what changed since the one before; without files the view was empty.
type CheckpointRecord struct {
	Epoch uint64           `json:"epoch"` // of the owner that wrote it
	Seq   uint64           `json:"seq"`
	Files []CheckpointFile `json:"files,omitempty"`
}

// CheckpointFile names a file beside the journal.
type CheckpointFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc"` // CRC32C of all of it
}

// LimitsRecord says which offsets of a journal may have been given.
type LimitsRecord struct {
	Lossy  bool              // some may have been given to messages that are lost: go on at the limits
	Limits []PartitionOffset // none at or beyond was given
	Floors []PartitionOffset // none below is given any more
}

// PartitionOffset is an offset of a partition, by its number.
type PartitionOffset struct {
	Partition uint32
	Offset    core.Offset
}

// CursorRecord is how far a group has come in one partition.
type CursorRecord struct {
	Committed bool // a queue-based client has committed, or a message was acknowledged
	Cursor    core.Cursor
}

// EncodeJSON encodes a TopicRecord, GroupRecord or CheckpointRecord.
func EncodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own plain structs
	}
	return b
}

// DecodeJSON decodes into a TopicRecord, GroupRecord or CheckpointRecord.
func DecodeJSON(b []byte, v any) error { return json.Unmarshal(b, v) }

// Encode encodes the record.
func (r *JournalRecord) Encode() []byte {
	b := binary.AppendUvarint(nil, r.Epoch)
	b = binary.AppendUvarint(b, r.Durable)
	b = binary.AppendVarint(b, r.Time)
	return appendOffsets(appendOffsets(b, r.Next), r.Bytes)
}

// DecodeJournal decodes a JournalRecord.
func DecodeJournal(b []byte) (r JournalRecord, err error) {
	d := decoder{b: b}
	r.Epoch, r.Durable, r.Time = d.uvarint(), d.uvarint(), d.varint()
	r.Next = d.offsets()
	r.Bytes = d.more()
	return r, d.err
}

// Encode encodes the record.
func (r *LimitsRecord) Encode() []byte {
	b := []byte{0}
	if r.Lossy {
		b[0] = 1
	}
	return appendOffsets(appendOffsets(b, r.Limits), r.Floors)
}

// DecodeLimits decodes a LimitsRecord.
func DecodeLimits(b []byte) (r LimitsRecord, err error) {
	if len(b) == 0 || b[0] > 1 {
		return r, fmt.Errorf("limits record: %w", core.ErrInvalid)
	}
	d := decoder{b: b[1:]}
	r.Lossy, r.Limits, r.Floors = b[0] == 1, d.offsets(), d.offsets()
	return r, d.err
}

// Encode encodes the record.
func (r *MarkRecord) Encode() []byte {
	return appendOffsets(appendOffsets(binary.AppendVarint(nil, r.Time), r.Next), r.Bytes)
}

// DecodeMark decodes a MarkRecord.
func DecodeMark(b []byte) (r MarkRecord, err error) {
	d := decoder{b: b}
	r.Time = d.varint()
	r.Next = d.offsets()
	r.Bytes = d.more()
	return r, d.err
}

// Encode encodes the record.
func (r *CursorRecord) Encode() []byte {
	b := []byte{0}
	if r.Committed {
		b[0] = 1
	}
	return r.Cursor.AppendBinary(b)
}

// DecodeCursor decodes a CursorRecord.
func DecodeCursor(b []byte) (r CursorRecord, err error) {
	if len(b) == 0 {
		return r, fmt.Errorf("cursor record: empty: %w", core.ErrInvalid)
	}
	r.Committed = b[0] == 1
	r.Cursor, err = core.ParseCursor(b[1:])
	return r, err
}

func appendOffsets(b []byte, ps []PartitionOffset) []byte {
	b = binary.AppendUvarint(b, uint64(len(ps)))
	for _, p := range ps {
		b = binary.AppendUvarint(b, uint64(p.Partition))
		b = binary.AppendUvarint(b, uint64(p.Offset))
	}
	return b
}

type decoder struct {
	b   []byte
	err error
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	return take(d, v, n)
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	return take(d, v, n)
}

func take[T any](d *decoder, v T, n int) T {
	if n <= 0 {
		d.err, d.b = fmt.Errorf("metadata record: truncated: %w", core.ErrInvalid), nil
		var zero T
		return zero
	}
	d.b = d.b[n:]
	return v
}

// more reads a list that records of before do not have.
func (d *decoder) more() []PartitionOffset {
	if d.err != nil || len(d.b) == 0 {
		return nil
	}
	return d.offsets()
}

func (d *decoder) offsets() []PartitionOffset {
	n := d.uvarint()
	if n > uint64(len(d.b))/2 {
		d.err = fmt.Errorf("metadata record: %d offsets in %d bytes: %w", n, len(d.b), core.ErrInvalid)
		return nil
	}
	ps := make([]PartitionOffset, 0, n)
	for range n {
		ps = append(ps, PartitionOffset{uint32(d.uvarint()), core.Offset(d.uvarint())})
	}
	return ps
}
