package disk

import (
	"testing"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

func newStore(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuite(t *testing.T) {
	for name, o := range map[string]Options{
		"fsync":    {},
		"small":    {SegmentMin: 4 << 10, SegmentMax: 8 << 10, FS: &faultFS{}},
		"medium":   {SegmentMin: 64 << 10, SegmentMax: 1 << 20, FS: &faultFS{}},
		"interval": {Sync: Interval, SegmentMin: 4 << 10, SegmentMax: 16 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T) (journal.Store, func() journal.Store) {
				o := o
				o.Dir = t.TempDir()
				return newStore(t, o), func() journal.Store { return newStore(t, o) }
			})
		})
	}
}

func TestModel(t *testing.T) {
	for name, o := range map[string]Options{
		"small segments": {SegmentMin: 4 << 10, SegmentMax: 8 << 10},
		"doubling":       {SegmentMin: 64 << 10, SegmentMax: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := o
			o.Dir, o.FS = t.TempDir(), &faultFS{}
			journaltest.Model(t, newStore(t, o), func() journal.Store { return newStore(t, o) })
		})
	}
}
