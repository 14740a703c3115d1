package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"isthmus/core"
)

// Seq numbers the blocks of one journal: dense, the first block has Seq 1.
type Seq uint64

// Store opens journals by name.
type Store interface {
	// Open creates the journal if it is not there, and fences it: from now on no lower epoch can
	// open it or append to it, and an older handle of the same journal is fenced too.
	//
	// durable is the highest Seq that the caller knows to have been durable (0: none). Blocks up to
	// it must be there and whole, else ErrDamaged; a torn tail beyond it is cut.
	Open(ctx context.Context, name string, epoch uint64, durable Seq) (Journal, error)
}

// Journal is one ordered log of blocks.
type Journal interface {
	// Append writes one block; it is durable on return. One goroutine appends. The error is
	// core.ErrFenced, core.ErrClosed, or fatal: then every later Append fails too, and whether the
	// block is there is known only after the journal was opened again. ctx counts until writing
	// has begun.
	Append(ctx context.Context, block []byte) (Seq, error)

	// Read yields the blocks from Seq from on (or from the first one that is left) in order, up to
	// the end as it was when Read was called, or further. It may be called by any goroutine, beside
	// Append and Trim. Record.Block is valid until the next step, or for ever with Hint.Keep. An error ends the sequence.
	Read(ctx context.Context, from Seq, hint Hint) iter.Seq2[Record, error]

	// Trim allows the journal to forget the blocks before the given Seq. It may keep more.
	Trim(ctx context.Context, before Seq) error

	// Bounds tells the first Seq that is left, the next one to be given, and the bytes in between.
	Bounds(ctx context.Context) (first, next Seq, bytes int64, err error)

	// Close ends the handle; what was appended stays.
	Close() error
}

// Syncer is what a tenant offers, by type assertion, whose Append may return before the block is on
// the disk. Whoever records a Seq as durable calls Sync first.
type Syncer interface {
	// Deferred tells whether Append does return before.
	Deferred() bool

	// Sync returns when every block appended before is on the disk. An error is fatal, as of Append.
	Sync(ctx context.Context) error
}

// Remover is what a store offers, by type assertion, that can forget a whole journal.
type Remover interface {
	// Remove forgets everything of a journal that nobody has open, and whatever lies beside it. When it fails, or the
	// process ends on the way, some of it may be left: it may be called again. One that is not there is no error.
	Remove(ctx context.Context, name string) error
}

// Thinner is what a tenant offers, by type assertion, that can take entries out of the middle.
type Thinner interface {
	// Thin forgets, of the blocks in [from, before), what keep does not keep, and tells how many bytes that freed. Seq
	// and time of a block stay, and offsets; a block that holds nothing any more is not yielded by Read. Like Trim it
	// may keep more: whatever it was not worth rewriting for. Readers under way see the old blocks or the new ones. What
	// was appended before keep was asked is on the disk before anything goes.
	Thin(ctx context.Context, from, before Seq, keep Keep) (freed int64, err error)

	// Thinned tells whether that ever took anything out of what is left.
	Thinned() bool
}

// Keep tells what of an extent is still held: it appends to dst the runs of whole entries, cut out of x.Data, in their
// order, with the offsets that they have. It may be asked more than once, and answer no where it answered yes.
type Keep func(dst []Extent, x Extent) []Extent

// Record is one block as Read yields it.
type Record struct {
	Seq   Seq
	Time  int64 // commit time, unix ms
	Block []byte
}

// Hint lets a tenant skip blocks that cannot matter. The zero Hint means everything; a tenant may
// yield more than the hint asks for, never less.
type Hint struct {
	Partition    uint32
	HasPartition bool
	From         core.Offset // first offset wanted of Partition
	Since        int64       // unix ms: blocks committed at or after
	Hashes       []uint32    // entries that have one of these hashes, if the tenant was told how to hash; empty: all
	Keep         bool        // Record.Block stays valid for ever: the tenant reads into memory that it does not use again
}

// Skips tells whether some blocks may not matter.
func (h Hint) Skips() bool { return h.HasPartition || h.Since != 0 || len(h.Hashes) > 0 }

// Wants tells whether the block can matter to a reader with this hint.
func (h Hint) Wants(b Block) bool {
	if b.Time < h.Since {
		return false
	}
	if !h.HasPartition {
		return true
	}
	for i := range b.Len() {
		if e := b.meta(i); e.Partition == h.Partition && e.Next() > h.From {
			return true
		}
	}
	return false
}

// ErrDamaged says that a block which must be there is missing or broken. It is never cut away
// silently: somebody has to decide.
var ErrDamaged = errors.New("journal damaged")

// Damage is an ErrDamaged that names the place.
type Damage struct {
	Where    string // file, stream or block
	Position int64  // byte position in it
	Seq      Seq    // the block that cannot be had, 0: unknown
	Why      string
}

func (d *Damage) Error() string {
	at := fmt.Sprintf("%v: %s at byte %d", ErrDamaged, d.Where, d.Position)
	if d.Seq != 0 {
		at += fmt.Sprintf(", block %d", d.Seq)
	}
	return at + ": " + d.Why
}

func (d *Damage) Unwrap() error { return ErrDamaged }
