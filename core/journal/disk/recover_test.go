package disk

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

// segments lists the segment files of journal "j", oldest first.
func segments(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "j", "*"+segmentExt))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

// filled makes journal "j" of n numbered blocks and returns it closed: its directory, and the view of
// its segments.
func filled(t testing.TB, o Options, n int) (dir string, segs []*segment) {
	t.Helper()
	o.Dir = t.TempDir()
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0).(*Journal)
	journaltest.Fill(t, j, 1, n)
	segs = j.mu.segments
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return o.Dir, segs
}

// patch changes a file in place and returns how to undo it.
func patch(t testing.TB, path string, pos int64, change func([]byte), n int64) (undo func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := make([]byte, n)
	if _, err := f.ReadAt(old, pos); err != nil {
		t.Fatal(err)
	}
	b := bytes.Clone(old)
	change(b)
	if _, err := f.WriteAt(b, pos); err != nil {
		t.Fatal(err)
	}
	return func() { patch(t, path, pos, func(b []byte) { copy(b, old) }, n) }
}

func flip(b []byte) { b[0] ^= 0x10 }

// I7: power fails in the middle of the last write, at any byte of it.
func TestTornAtEveryByte(t *testing.T) {
	const n = 5
	dir, segs := filled(t, Options{SegmentMin: 4 << 10, SegmentMax: 4 << 10}, n)
	s := segs[0]
	last := frameSize(len(journaltest.Numbered(n)))
	start := s.end - last
	for cut := range last {
		undo := patch(t, s.path, start+cut, func(b []byte) { clear(b) }, last-cut)
		if cut == last-1 || allZero(journaltest.Numbered(n), cut-frameHeader) {
			undo() // what is missing was zero: the record is whole
			continue
		}
		open := func(durable journal.Seq) (journal.Journal, error) {
			return newStore(t, Options{Dir: dir}).Open(context.Background(), "j", 1, durable)
		}
		if _, err := open(n); !errors.Is(err, journal.ErrDamaged) {
			t.Fatalf("cut at byte %d of a durable block: %v", cut, err)
		}
		j, err := open(n - 1)
		if err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		journaltest.WantBounds(t, j, 1, n)
		journaltest.Fill(t, j, n, n) // writes the very record again
		journaltest.WantNumbered(t, j, 1, n)
		j.Close()
		wantSameLife(t, s)
	}
}

func allZero(b []byte, from int64) bool {
	return from >= 0 && (from >= int64(len(b)) || len(bytes.Trim(b[from:], "\x00")) == 0)
}

// wantSameLife checks that the file still is the segment that the test began with.
func wantSameLife(t testing.TB, s *segment) {
	t.Helper()
	f, err := osFS{}.Open(s.path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := loadSegment(f, s.path, s.base); err != nil || got.generation != s.generation {
		t.Fatalf("segment changed: %v", err)
	}
}

// Each region of the files, one bit wrong: it is named, by file and position, and nothing is lost.
func TestFlippedBytes(t *testing.T) {
	const n = 120
	o := Options{SegmentMin: 4 << 10, SegmentMax: 4 << 10, FS: &faultFS{}}
	dir, segs := filled(t, o, n)
	o.Dir = dir
	if len(segs) < 3 {
		t.Fatalf("only %d segments", len(segs))
	}
	first, last := segs[0], segs[len(segs)-1]
	for name, c := range map[string]struct {
		path     string
		pos      int64
		open     bool // Open says it
		repaired bool // it is only logged
	}{
		"segment header":                {first.path, 8, true, false},
		"header padding":                {first.path, 50, true, false},
		"sealed: checksum of a record":  {first.path, headerSize, false, false},
		"sealed: length of a record":    {first.path, headerSize + 4, false, false},
		"sealed: seq of a record":       {first.path, headerSize + 8, false, false},
		"sealed: generation":            {first.path, headerSize + 16, false, false},
		"sealed: block header":          {first.path, headerSize + frameHeader + 1, false, false},
		"sealed: block":                 {first.path, headerSize + frameHeader + 70, false, false},
		"sealed: index":                 {first.path, first.end + sectionHeader + 9, false, true},
		"sealed: footer":                {first.path, first.capacity - footerSize + 17, true, true},
		"open segment: first record":    {last.path, headerSize + 30, true, false},
		"open segment: last record":     {last.path, last.end - 20, true, false},
		"open segment: last generation": {last.path, last.end - frameSize(len(journaltest.Numbered(n))) + 16, true, false},
		"fence":                         {filepath.Join(dir, "j", fenceName), 9, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			defer patch(t, c.path, c.pos, flip, 1)()
			var logged bytes.Buffer
			o := o
			o.Log = slog.New(slog.NewTextHandler(&logged, nil))
			j, err := newStore(t, o).Open(context.Background(), "j", 1, n)
			if err == nil {
				defer j.Close()
			}
			if err == nil && (!c.open || c.repaired) {
				_, err = journaltest.Collect(j, 1, journal.Hint{})
			} else if err == nil {
				t.Fatal("opened")
			}
			if c.repaired {
				journaltest.WantNumbered(t, j, 1, n)
				if err != nil || !strings.Contains(logged.String(), c.path) {
					t.Fatalf("error %v, log %q", err, logged.String())
				}
				return
			}
			var d *journal.Damage
			if !errors.As(err, &d) || d.Where != c.path {
				t.Fatalf("got %v", err)
			}
			if d.Position > c.pos || d.Position+300 < c.pos {
				t.Fatalf("position %d named, byte %d is broken", d.Position, c.pos)
			}
		})
	}
}

// A broken block is a torn tail only if nothing whole comes after it.
func TestBrokenBeforeWhole(t *testing.T) {
	const n = 10
	dir, segs := filled(t, Options{}, n)
	s := segs[0]
	pos := s.end - frameSize(len(journaltest.Numbered(n))) - frameSize(len(journaltest.Numbered(n-1)))
	for _, region := range []int64{0, 5, 9, 17, frameHeader, frameHeader + 60} {
		undo := patch(t, s.path, pos+region, flip, 1)
		_, err := newStore(t, Options{Dir: dir}).Open(context.Background(), "j", 1, 0)
		var d *journal.Damage
		if !errors.As(err, &d) || d.Where != s.path || d.Position != pos || d.Seq != n-1 {
			t.Fatalf("byte %d of a record: %v", region, err)
		}
		undo()
	}
}

// In mode Interval that is what a power loss may leave beyond the last sync: it is cut, and logged, and
// the whole blocks behind never come back.
func TestPowerLossInIntervalMode(t *testing.T) {
	const n = 10
	dir, segs := filled(t, Options{Sync: Interval}, n)
	s := segs[0]
	pos := s.end - frameSize(len(journaltest.Numbered(n))) - frameSize(len(journaltest.Numbered(n-1)))
	patch(t, s.path, pos+frameHeader, flip, 1)
	var logged bytes.Buffer
	o := Options{Dir: dir, Sync: Interval, Log: slog.New(slog.NewTextHandler(&logged, nil))}
	if _, err := newStore(t, o).Open(context.Background(), "j", 1, n-1); !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("a synced block is broken: %v", err)
	}
	j := journaltest.Open(t, newStore(t, o), "j", 1, n-2)
	journaltest.WantBounds(t, j, 1, n-1)
	if !strings.Contains(logged.String(), s.path) {
		t.Fatalf("log %q", logged.String())
	}
	j.Close()
	o.Sync = Fsync // knows no excuse for a whole block behind the end
	j = journaltest.Open(t, newStore(t, o), "j", 1, n-2)
	journaltest.Fill(t, j, n-1, n-1)
	j.Close()
	j = journaltest.Open(t, newStore(t, o), "j", 1, n-1)
	journaltest.WantBounds(t, j, 1, n)
	journaltest.WantNumbered(t, j, 1, n-1)
}

// A record or footer that would fit, but of another life of the file, is neither data nor damage.
func TestAnotherGeneration(t *testing.T) {
	const n = 5
	dir, segs := filled(t, Options{}, n)
	s := segs[0]
	other := &segment{generation: s.generation + 1, base: 1, next: n, end: s.end - 8, capacity: s.capacity}
	stale := appendFrame(nil, other.generation, n+1, journaltest.Numbered(n+1))
	stale = appendFrame(stale, other.generation, n+2, journaltest.Numbered(n+2))
	patch(t, s.path, s.end, func(b []byte) { copy(b, stale) }, int64(len(stale)))
	patch(t, s.path, s.capacity-footerSize, func(b []byte) { copy(b, other.footer(0, 1)) }, footerSize)
	j := journaltest.Open(t, newStore(t, Options{Dir: dir}), "j", 1, n)
	journaltest.WantBounds(t, j, 1, n+1)
	journaltest.WantNumbered(t, j, 1, n)
}

func TestMissingFiles(t *testing.T) {
	const n = 120
	o := Options{SegmentMin: 4 << 10, SegmentMax: 4 << 10, FS: &faultFS{}}
	for name, which := range map[string]func([]string) string{
		"middle": func(p []string) string { return p[1] },
		"last":   func(p []string) string { return p[len(p)-1] },
	} {
		dir, _ := filled(t, o, n)
		os.Remove(which(segments(t, dir)))
		o.Dir = dir
		if _, err := newStore(t, o).Open(context.Background(), "j", 1, n); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir, _ := filled(t, o, n)
	o.Dir = dir
	paths := segments(t, dir)
	os.Truncate(paths[len(paths)-1], 1000)
	if _, err := newStore(t, o).Open(context.Background(), "j", 1, n); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("cut short: %v", err)
	}
}

// A crash may come after the footer and before the next segment, or leave files half made.
func TestHalfMade(t *testing.T) {
	const n = 120
	o := Options{SegmentMin: 4 << 10, SegmentMax: 4 << 10, FS: &faultFS{}}
	dir, segs := filled(t, o, n)
	o.Dir = dir
	last := segs[len(segs)-1]
	os.Remove(last.path)
	half := last.path + tmpExt
	os.WriteFile(half, []byte("half"), 0o600)
	j := journaltest.Open(t, newStore(t, o), "j", 1, last.base-1)
	journaltest.WantBounds(t, j, 1, last.base)
	journaltest.Fill(t, j, int(last.base), n)
	journaltest.WantNumbered(t, j, 1, n)
	if _, err := os.Stat(half); err == nil {
		t.Error("a half made file stayed")
	}
}

// Only the last segment is scanned, however many there are.
func TestReopenReadsTheLastOnly(t *testing.T) {
	const n = 3000
	dir, segs := filled(t, Options{SegmentMin: 4 << 10, SegmentMax: 4 << 10, FS: &faultFS{}}, n)
	ffs := &faultFS{}
	j := journaltest.Open(t, newStore(t, Options{Dir: dir, FS: ffs}), "j", 1, n)
	most := int64(len(segs)*(headerSize+footerSize) + 2*4<<10)
	if got := ffs.read.Load(); len(segs) < 100 || got > most {
		t.Fatalf("%d segments, %d bytes read, want at most %d", len(segs), got, most)
	}
	journaltest.WantNumbered(t, j, 1, n)
}

// An epoch below the fence is refused before anything else is touched.
func TestFenceRefusesEarly(t *testing.T) {
	dir, segs := filled(t, Options{}, 3)
	j := journaltest.Open(t, newStore(t, Options{Dir: dir}), "j", 9, 3)
	if _, err := newStore(t, Options{Dir: dir}).Open(context.Background(), "j", 8, 3); !errors.Is(err, core.ErrFenced) {
		t.Fatalf("got %v", err)
	}
	journaltest.Fill(t, j, 4, 4)
	wantSameLife(t, segs[0])
}

func TestEscape(t *testing.T) {
	seen := map[string]string{}
	for _, n := range []string{"a", "A", ".", "..", "a/b", "a%2Fb", "%", "~", "small", strings.Repeat("x", 300), strings.Repeat("x", 301), strings.Repeat("/", 90)} {
		e := strings.ToLower(escape(n))
		if other, ok := seen[e]; ok || len(e) > longestName || strings.ContainsAny(e, "/.\x00") {
			t.Errorf("%q becomes %q (as %q)", n, e, other)
		}
		seen[e] = n
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{}, {Dir: "x", Sync: 7}, {Dir: "x", SegmentMin: 1}, {Dir: "x", SegmentMin: 8 << 10, SegmentMax: 4 << 10}, {Dir: "x", Interval: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
}
