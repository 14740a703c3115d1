package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

// FuzzOpenThinned is FuzzOpen for a segment that was thinned, with its neighbour behind it.
func FuzzOpenThinned(f *testing.F) {
	const n = 200
	o := Options{FS: &faultFS{}, Hashes: hashEntries}
	j, o := cells(f, o, n)
	thin(f, j, func(p uint32, o core.Offset) bool { return o%100 < 3 })
	s := j.mu.segments[0]
	j.Close()
	if !s.thin || s.capacity > 1<<16 {
		f.Fatalf("thinned: %v, %d bytes", s.thin, s.capacity)
	}
	good, err := os.ReadFile(s.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), []byte{0})
	f.Add(uint16(40), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(uint16(headerSize+8), []byte{9})
	f.Add(uint16(s.end), good[headerSize:headerSize+200])
	f.Add(uint16(s.end+sectionHeader), []byte{0xFF, 0xFF, 0xFF, 0xFF})
	f.Add(uint16(s.capacity-footerSize), good[:footerSize])
	f.Add(uint16(s.capacity-footerSize+16), []byte{0xFF})
	f.Fuzz(func(t *testing.T, pos uint16, patch []byte) {
		bad := bytes.Clone(good)
		copy(bad[min(int(pos), len(bad)):], patch)
		if err := os.WriteFile(s.path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := newStore(t, o).Open(t.Context(), "j", 3, n)
		if err == nil {
			defer j.Close()
			for _, h := range []journal.Hint{{}, {Partition: 1, HasPartition: true, From: 200}, {Hashes: []uint32{1}}} {
				rs, readErr := journaltest.Collect(j, 1, h)
				err = errors.Join(err, readErr)
				for _, r := range rs {
					if r.Seq > n || r.Time != 1000*int64(r.Seq) {
						t.Fatalf("block %d was never written so", r.Seq)
					}
				}
			}
		}
		if err != nil && !errors.Is(err, journal.ErrDamaged) {
			t.Fatalf("not named as damage: %v", err)
		}
	})
}

// FuzzOpen: whatever became of a segment file, Open and Read say damage or give true blocks; nothing
// panics, hangs or grows.
func FuzzOpen(f *testing.F) {
	const n = 10
	_, segs := filled(f, Options{SegmentMin: 4 << 10, SegmentMax: 4 << 10, FS: &faultFS{}}, n)
	good, err := os.ReadFile(segs[0].path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), []byte{0})
	f.Add(uint16(headerSize), []byte{1, 2, 3, 4})
	f.Add(uint16(headerSize+4), []byte{0xFF, 0xFF, 0xFF, 0xFF})
	f.Add(uint16(segs[0].end), good[headerSize:headerSize+400])
	f.Add(uint16(4<<10-footerSize), good[:footerSize])
	f.Fuzz(func(t *testing.T, pos uint16, patch []byte) {
		bad := bytes.Clone(good)
		copy(bad[min(int(pos), len(bad)):], patch)
		root := t.TempDir()
		path := filepath.Join(root, "j", filepath.Base(segs[0].path))
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, bad, 0o600)); err != nil {
			t.Fatal(err)
		}
		j, err := newStore(t, Options{Dir: root, FS: &faultFS{}}).Open(t.Context(), "j", 1, 0)
		if err == nil {
			defer j.Close()
			var rs []journal.Record
			rs, err = journaltest.Collect(j, 1, journal.Hint{})
			for _, r := range rs {
				if r.Seq > n || !bytes.Equal(r.Block, journaltest.Numbered(int(r.Seq))) {
					t.Fatalf("block %d was never written so", r.Seq)
				}
			}
		}
		if err != nil && !errors.Is(err, journal.ErrDamaged) {
			t.Fatalf("not named as damage: %v", err)
		}
	})
}
