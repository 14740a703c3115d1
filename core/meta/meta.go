// Package meta is the metadata seam: small things that are not derived from messages, kept in one transactional store.
//
// Words: a Bucket is a kind of record, a Write is one record set or deleted, Apply is one transaction. The engine applies
// at most one batch per tick; the publish path never waits for it.
//
// The engine is the only writer. Records are encoded here (records.go), so that every tenant of the seam stores the same
// bytes.
package meta

// Bucket is a kind of record.
type Bucket string

// The buckets.
const (
	Topics   Bucket = "topics"   // topic name → TopicRecord
	Groups   Bucket = "groups"   // topic name, NUL, group → GroupRecord
	Cursors  Bucket = "cursors"  // topic name, NUL, group, NUL, partition → CursorRecord
	Journals Bucket = "journals" // journal name → JournalRecord
	Marks    Bucket = "marks"    // journal name, NUL, Seq as 16 hex digits → MarkRecord
	Counters Bucket = "counters" // name → uint64, big endian
	Parked   Bucket = "parked"   // journal name → number of its partition of parked messages, uint32, big endian

	Limits Bucket = "limits" // journal name → LimitsRecord

	Checkpoints Bucket = "checkpoints" // journal name, NUL, kind of view → CheckpointRecord
)

// Buckets lists all of them.
func Buckets() []Bucket {
	return []Bucket{Topics, Groups, Cursors, Journals, Marks, Counters, Parked, Limits, Checkpoints}
}

// Write sets the record of a key; a nil Value deletes it.
type Write struct {
	Bucket Bucket
	Key    string
	Value  []byte
}

// Store keeps records. Apply is atomic and durable on return. Any goroutine may call Load, and so may Apply.
type Store interface {
	Load(b Bucket, each func(key string, value []byte) error) error // in key order; value is valid during the call
	Apply(ws []Write) error
	Close() error
}
