package disk

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"isthmus/core/journal"
)

// SyncMode says what durable means to Append.
type SyncMode uint8

const (
	Fsync    SyncMode = iota // on the disk when Append returns
	Interval                 // written when Append returns, on the disk at most Options.Interval later
)

// Options of a store. The zero value of each field but Dir is its default.
type Options struct {
	Dir        string        // one directory per journal below it
	Log        *slog.Logger  // repairs and cuts; default: discarded
	Sync       SyncMode      // default Fsync
	Interval   time.Duration // of mode Interval; default 100ms
	SegmentMin int64         // bytes of the first segment, default 1 MiB; each next one has twice the size,
	SegmentMax int64         // up to this, default 64 MiB
	FS         FS            // default: the operating system

	// Hashes appends the hashes that a reader may ask an entry of this extent for, at most one for each 28 bytes. With
	// it, journal.Hint.Hashes skips what holds none of the wanted; default: nothing is skipped.
	Hashes func(dst []uint32, x journal.Extent) []uint32
}

const (
	smallestSegment = 4 << 10
	freeSegments    = 2 // kept for recycling; what is trimmed beyond that is deleted
)

// reusable tells whether a file of this size can be a segment once more.
func (o Options) reusable(size int64) bool { return size >= o.SegmentMin && size <= o.SegmentMax }

func (o Options) withDefaults() (Options, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Interval == 0 {
		o.Interval = 100 * time.Millisecond
	}
	if o.SegmentMin == 0 {
		o.SegmentMin = 1 << 20
	}
	if o.SegmentMax == 0 {
		o.SegmentMax = max(64<<20, o.SegmentMin)
	}
	if o.FS == nil {
		o.FS = osFS{}
	}
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("dir: empty"))
	}
	if o.Sync > Interval {
		errs = append(errs, fmt.Errorf("sync: unknown mode %d", o.Sync))
	}
	if o.Interval < 0 {
		errs = append(errs, fmt.Errorf("interval: %v is negative", o.Interval))
	}
	if o.SegmentMin < smallestSegment || o.SegmentMax < o.SegmentMin {
		errs = append(errs, fmt.Errorf("segments: %d to %d bytes, want at least %d and ascending", o.SegmentMin, o.SegmentMax, smallestSegment))
	}
	return o, errors.Join(errs...)
}
