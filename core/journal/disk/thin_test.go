package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

func TestThin(t *testing.T) {
	for name, o := range map[string]Options{
		"small":    {SegmentMin: 4 << 10, SegmentMax: 4 << 10},
		"medium":   {SegmentMin: 4 << 10, SegmentMax: 32 << 10},
		"interval": {SegmentMin: 4 << 10, SegmentMax: 8 << 10, Sync: Interval},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Dir, o.FS = t.TempDir(), &faultFS{}
			journaltest.Thin(t, newStore(t, o), func() journal.Store { return newStore(t, o) }, settled)
		})
	}
}

func du(t testing.TB, dir string) (bytes int64, files int) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, "j", "*"))
	for _, p := range paths {
		st, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		bytes += st.Size()
	}
	return bytes, len(paths)
}

// cells makes journal "j" of n blocks of cells in segments of 64 KiB.
func cells(t testing.TB, o Options, n int) (*Journal, Options) {
	t.Helper()
	o.Dir, o.SegmentMin, o.SegmentMax = t.TempDir(), 64<<10, 64<<10
	j := journaltest.Open(t, newStore(t, o), "j", 3, 0).(*Journal)
	journaltest.FillCells(t, j, 1, n)
	settled(j)
	return j, o
}

func thin(t testing.TB, j *Journal, held func(uint32, core.Offset) bool) int64 {
	t.Helper()
	freed, err := j.Thin(context.Background(), 0, 1<<60, journaltest.KeepCells(held))
	if err != nil {
		t.Fatal(err)
	}
	return freed
}

// One hole holds kilobytes, and many of them one file.
func TestThinHoldsLittle(t *testing.T) {
	const n = 2000 // 1.8 MB
	j, o := cells(t, Options{FS: &faultFS{}}, n)
	held := func(p uint32, o core.Offset) bool { return p == 1 && o%1000 == 7 }
	before, _ := du(t, o.Dir)
	first, last := j.mu.segments[0].base, j.mu.segments[len(j.mu.segments)-1].base
	freed := thin(t, j, held)
	settled(j)
	after, files := du(t, o.Dir)
	if freed < 1500<<10 || before-after > freed || files > 7 { // fence, thinned, open, next, two to be recycled
		t.Fatalf("%d bytes freed, from %d to %d in %d files", freed, before, after, files)
	}
	if st, err := os.Stat(segmentPath(filepath.Join(o.Dir, "j"), first)); err != nil || st.Size() > 8<<10 {
		t.Fatalf("%v, %v", st.Size(), err)
	}
	must := func(p uint32, o core.Offset) bool { return held(p, o) || o >= core.Offset(last-1)*10 }
	journaltest.WantCells(t, j, n, must)
	if again := thin(t, j, held); again != 0 {
		t.Fatalf("%d bytes freed again", again)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = journaltest.Open(t, newStore(t, o), "j", 3, n).(*Journal)
	journaltest.WantCells(t, j, n, must)
	journaltest.WantBounds(t, j, 1, n+1)
}

// A reader in the middle of a file that is thinned, together with its neighbours, gets all that is held.
func TestThinUnderReader(t *testing.T) {
	for stop := journal.Seq(1); stop < 400; stop += 61 {
		const n = 500
		j, _ := cells(t, Options{FS: &faultFS{}}, n)
		held := func(p uint32, o core.Offset) bool { return p == 1 && o%100 == 7 }
		last, got := journal.Seq(0), map[core.Offset]bool{}
		for r, err := range j.Read(t.Context(), 1, journal.Hint{}) {
			if err != nil || r.Seq <= last {
				t.Fatalf("block %d after %d, %v", r.Seq, last, err)
			}
			b, err := journal.ParseBlock(r.Block)
			if err != nil {
				t.Fatal(err)
			}
			for x := range b.Of(1) {
				for o := x.First; o < x.Next(); o++ {
					got[o] = true
				}
			}
			if last = r.Seq; r.Seq == stop {
				thin(t, j, held)
			}
		}
		for o := range core.Offset(n * 10) {
			if held(1, o) && !got[o] {
				t.Fatalf("thinned at block %d: offset %d is missing", stop, o)
			}
		}
	}
}

// I7: a crash in between leaves old files, or the new one and old ones behind it.
func TestCrashWhileThinning(t *testing.T) {
	const n = 500
	held := func(p uint32, o core.Offset) bool { return p == 1 && o%100 == 7 }
	for step := 1; ; step++ {
		ffs := &faultFS{}
		j, o := cells(t, Options{FS: ffs}, n)
		last := j.mu.segments[len(j.mu.segments)-1].base
		failed := ffs.failNth(step, syscall.EIO)
		_, err := j.Thin(context.Background(), 0, n, journaltest.KeepCells(held))
		if failed.Load() != (err != nil) || err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("step %d: %v", step, err)
		}
		must := func(p uint32, o core.Offset) bool { return held(p, o) || o >= core.Offset(last-1)*10 }
		journaltest.WantCells(t, j, n, must)
		ffs.set(nil)
		j.Close()
		j = journaltest.Open(t, newStore(t, o), "j", 3, n).(*Journal)
		journaltest.WantCells(t, j, n, must)
		journaltest.FillCells(t, j, n+1, n+2)
		thin(t, j, held)
		journaltest.WantCells(t, j, n+2, must)
		if !failed.Load() {
			if step < 10 {
				t.Fatalf("only %d steps", step)
			}
			return
		}
	}
}

// Each region of a thinned file, one bit wrong: it is named.
func TestThinFlipped(t *testing.T) {
	const n = 300
	j, o := cells(t, Options{FS: &faultFS{}}, n)
	thin(t, j, func(p uint32, o core.Offset) bool { return o%100 < 3 })
	s := j.mu.segments[0]
	j.Close()
	if !s.thin {
		t.Fatal("not thinned")
	}
	for _, pos := range []int64{1, 9, 17, 41, headerSize + 9, headerSize + 40, s.end - 9, s.capacity - footerSize + 17, s.capacity - footerSize + 1} {
		undo := patch(t, s.path, pos, flip, 1)
		j, err := newStore(t, o).Open(t.Context(), "j", 3, n)
		if err == nil {
			_, err = journaltest.Collect(j, 1, journal.Hint{})
			j.Close()
		}
		var d *journal.Damage
		if !errors.As(err, &d) || d.Where != s.path {
			t.Errorf("byte %d: %v", pos, err)
		}
		undo()
	}
}

// Close waits for a Thin under way, and does not let it go on.
func TestCloseWhileThinning(t *testing.T) {
	j, o := cells(t, Options{FS: &faultFS{}}, 500)
	var closed atomic.Bool
	done := make(chan error, 1)
	asked := 0
	_, err := j.Thin(t.Context(), 0, 500, func(dst []journal.Extent, x journal.Extent) []journal.Extent {
		if asked++; asked == 30 {
			go func() {
				done <- j.Close()
				closed.Store(true)
			}()
			<-j.gone
		}
		if closed.Load() {
			t.Error("closed, and still thinning")
		}
		return dst
	})
	if !errors.Is(err, core.ErrClosed) || asked > 40 {
		t.Fatalf("asked %d times, %v", asked, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	journaltest.WantCells(t, journaltest.Open(t, newStore(t, o), "j", 3, 500), 500, func(uint32, core.Offset) bool { return true })
}

// What made the caller let go may be acknowledged and in no file yet: it is synced before the old segments go.
func TestThinSyncsFirst(t *testing.T) {
	fs := &faultFS{}
	j, _ := cells(t, Options{FS: fs, Sync: Interval, Interval: time.Hour}, 2000)
	synced, renamed := false, false
	fs.set(func(op, path string) error {
		switch thinned := filepath.Base(path) == "thin"+tmpExt; {
		case op == "sync" && !thinned:
			synced = true
		case op == "rename" && thinned && !renamed:
			renamed = true
			if !synced {
				t.Error("thinned before what was written last was synced")
			}
		}
		return nil
	})
	thin(t, j, func(p uint32, o core.Offset) bool { return p == 1 && o%1000 == 7 })
	if !renamed {
		t.Error("nothing was thinned")
	}
}
