package disk

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

func inspect(t testing.TB, o Options, durable journal.Seq) (*Inspection, []journal.Seq) {
	t.Helper()
	var whole []journal.Seq
	in, err := newStore(t, o).Inspect(context.Background(), "j", 1, durable, func(r journal.Record, _ bool) error {
		whole = append(whole, r.Seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return in, whole
}

func TestInspectFindsNothingWrong(t *testing.T) {
	const n = 120
	o := Options{SegmentMin: 4 << 10, SegmentMax: 4 << 10, FS: &faultFS{}}
	o.Dir, _ = filled(t, o, n)
	in, whole := inspect(t, o, n)
	if len(in.Findings) > 0 || len(whole) != n || in.First != 1 || in.Next != n+1 || in.Epoch != 1 {
		t.Fatalf("%+v, %d blocks", in, len(whole))
	}
}

// I7: one byte of a journal is wrong, anywhere. What Open and a read of everything find, Inspect finds; after Repair the
// journal opens, takes blocks, and has every block that Inspect called whole.
func TestI7_RepairKeepsWhatIsWhole(t *testing.T) {
	const n = 60
	made := Options{SegmentMin: 4 << 10, SegmentMax: 8 << 10, FS: &faultFS{}}
	dir, segs := filled(t, made, n)
	r := rand.New(rand.NewPCG(5, 5))
	lost := 0
	for _, s := range segs {
		size := s.capacity
		for range 60 {
			pos := r.Int64N(size)
			if r.IntN(3) == 0 {
				pos = r.Int64N(headerSize + frameHeader)
			}
			o := made
			o.Dir = t.TempDir()
			if err := os.CopyFS(o.Dir, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			path := segmentPath(o.Dir+"/j", s.base)
			patch(t, path, pos, flip, 1)
			lost += repaired(t, o, n, pos, path)
		}
	}
	if lost == 0 {
		t.Fatal("no flip hit a record")
	}
}

func repaired(t *testing.T, o Options, n int, pos int64, path string) (lost int) {
	t.Helper()
	in, whole := inspect(t, o, journal.Seq(n))
	j, err := newStore(t, o).Open(context.Background(), "j", 1, journal.Seq(n))
	if err == nil {
		_, err = journaltest.Collect(j, 1, journal.Hint{})
		j.Close()
	}
	if in.Whole() != (err == nil) {
		t.Fatalf("%s byte %d: reading says %v, Inspect %+v", path, pos, err, in.Findings)
	}
	if in.Whole() {
		return 0
	}
	if f := in.Findings[0]; f.File != path {
		t.Fatalf("%s byte %d: %+v", path, pos, in.Findings)
	}
	if err := newStore(t, o).Repair(context.Background(), in); err != nil {
		t.Fatalf("%s byte %d: %v", path, pos, err)
	}
	if _, err := os.Stat(path + damagedExt); err != nil {
		t.Fatal(err)
	}
	j = journaltest.Open(t, newStore(t, o), "j", 1, journal.Seq(n))
	if seq, err := j.Append(context.Background(), journaltest.Numbered(n+1)); err != nil || int(seq) != n+1 {
		t.Fatalf("%s byte %d: append after the repair: %d %v", path, pos, seq, err)
	}
	rs, err := journaltest.Collect(j, 1, journal.Hint{})
	if err != nil {
		t.Fatalf("%s byte %d: %v", path, pos, err)
	}
	j.Close()
	var got []journal.Seq
	for _, r := range rs {
		got = append(got, r.Seq)
	}
	if !slices.Equal(got, append(whole, journal.Seq(n+1))) {
		t.Fatalf("%s byte %d: blocks %v, whole were %v", path, pos, got, whole)
	}
	if again, _ := inspect(t, o, journal.Seq(n)); !again.Whole() {
		t.Fatalf("%s byte %d: after the repair %+v", path, pos, again.Findings)
	}
	return n - len(whole)
}

// A missing file, a broken fence, a file cut short: each is found and repaired.
func TestI7_RepairOfWhatIsMissing(t *testing.T) {
	const n = 60
	made := Options{SegmentMin: 4 << 10, SegmentMax: 4 << 10, FS: &faultFS{}}
	for name, harm := range map[string]func(dir string){
		"first":  func(d string) { os.Remove(segments(t, d)[0]) },
		"middle": func(d string) { os.Remove(segments(t, d)[1]) },
		"last":   func(d string) { p := segments(t, d); os.Remove(p[len(p)-1]) },
		"short":  func(d string) { os.Truncate(segments(t, d)[1], 40) },
		"fence":  func(d string) { os.Truncate(d+"/j/fence", 7) },
		"all": func(d string) {
			for _, p := range segments(t, d) {
				os.Remove(p)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := made
			o.Dir, _ = filled(t, made, n)
			harm(o.Dir)
			in, _ := inspect(t, o, n)
			if in.Whole() {
				t.Fatal("found nothing")
			}
			if err := newStore(t, o).Repair(context.Background(), in); err != nil {
				t.Fatal(err)
			}
			j := journaltest.Open(t, newStore(t, o), "j", 1, n)
			defer j.Close()
			if seq, err := j.Append(context.Background(), journaltest.Numbered(n+1)); err != nil || seq != n+1 {
				t.Fatal(seq, err)
			}
			if _, err := journaltest.Collect(j, 1, journal.Hint{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestATornTailIsHarmless(t *testing.T) {
	const n = 5
	o := Options{}
	dir, segs := filled(t, o, n)
	o.Dir = dir
	patch(t, segs[0].path, segs[0].end-20, flip, 1)
	if in, whole := inspect(t, o, n-1); !in.Whole() || len(whole) != n-1 || !strings.Contains(in.Findings[0].What, "torn") {
		t.Fatalf("%+v", in)
	}
	if in, _ := inspect(t, o, n); in.Whole() {
		t.Fatal("a durable block is broken")
	}
	if _, err := newStore(t, o).Open(context.Background(), "j", 1, n); !errors.Is(err, journal.ErrDamaged) {
		t.Fatal(err)
	}
}
