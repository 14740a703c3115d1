package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

// settled waits for the background work of a journal.
func settled(j journal.Journal) { j.(*Journal).tasks.Wait() }

// fillTo appends blocks of the size until the segment in use is filled to a share of its capacity.
func fillTo(t testing.TB, j *Journal, size int, share float64) {
	t.Helper()
	for {
		if n := len(j.mu.segments); n > 0 {
			if s := j.mu.segments[n-1]; float64(s.end) >= share*float64(s.capacity) {
				return
			}
		}
		_, next, _, _ := j.Bounds(t.Context())
		appendBlock(t, j, journaltest.Block(int64(next), 1, int64(next), size))
	}
}

// rollOver appends blocks of the size until a new segment is in use.
func rollOver(t testing.TB, j *Journal, size int) {
	t.Helper()
	for n := len(j.mu.segments); len(j.mu.segments) == n; {
		_, next, _, _ := j.Bounds(t.Context())
		appendBlock(t, j, journaltest.Block(int64(next), 1, int64(next), size))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The next segment gets ready from the first quarter of one on, in step with what is appended, all of it in the end; a quiet
// journal prepares nothing, and a closed one keeps nothing.
func TestAheadInStep(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := Options{Dir: dir, SegmentMin: 4 << 20, SegmentMax: 4 << 20, FS: &faultFS{}}
		j := journaltest.Open(t, newStore(t, o), "j", 1, 0).(*Journal)
		spare := filepath.Join(dir, "j", aheadName)
		fillTo(t, j, 4<<10, 0.24)
		synctest.Wait()
		if exists(spare) {
			t.Fatal("prepared too early")
		}
		last := int64(0)
		for share := 0.3; share < 0.97; share += 0.08 {
			fillTo(t, j, 4<<10, share)
			settled(j)
			a := <-j.ahead
			if a.size != 4<<20 || a.ready < last || float64(a.ready) < (share-0.25)/0.75*float64(a.size) {
				t.Fatalf("at %.2f of the segment %d of %d bytes are ready", share, a.ready, a.size)
			}
			last = a.ready
			j.ahead <- a
		}
		rollOver(t, j, 4<<10)
		synctest.Wait() // a closed file would be lost here: the next segment is the one prepared
		w := <-j.writer
		if exists(spare) || w.ready != 4<<20 {
			t.Fatalf("%d bytes of the new segment are ready", w.ready)
		}
		j.writer <- w
		fillTo(t, j, 4<<10, 0.7)
		settled(j)
		if !exists(spare) {
			t.Fatal("nothing prepared")
		}
		if err := j.Close(); err != nil || exists(spare) {
			t.Fatalf("closed: %v, spare %v", err, exists(spare))
		}
	})
}

// A disk too full to prepare is not too full to append.
func TestAheadFails(t *testing.T) {
	ffs := &faultFS{}
	o := Options{Dir: t.TempDir(), SegmentMin: 64 << 10, SegmentMax: 64 << 10, FS: ffs}
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0).(*Journal)
	var refused atomic.Int32
	ffs.set(func(op, path string) error {
		if strings.HasSuffix(path, aheadName) {
			refused.Add(1)
			return syscall.ENOSPC
		}
		return nil
	})
	fillTo(t, j, 1<<10, 0.9)
	settled(j)
	if refused.Load() != 1 || exists(filepath.Join(o.Dir, "j", aheadName)) {
		t.Fatalf("refused %d times", refused.Load())
	}
	rollOver(t, j, 1<<10)
	rollOver(t, j, 1<<10)
	if err := j.stopped(); err != nil {
		t.Fatal(err)
	}
}

// I7: a crash comes after the next segment is in use and before the last one has its footer.
func TestCrashBeforeSealed(t *testing.T) {
	ffs := &faultFS{}
	o := Options{Dir: t.TempDir(), SegmentMin: 16 << 10, SegmentMax: 16 << 10, FS: ffs}
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0).(*Journal)
	n := 0
	for len(j.mu.segments) < 2 {
		n++
		journaltest.Fill(t, j, n, n)
	}
	settled(j)
	s := j.mu.segments[0]
	journaltest.Fill(t, j, n+1, n+3)
	j.Close()
	for _, pos := range []int64{s.capacity - footerSize, s.end} { // without the footer; without index and footer
		patch(t, s.path, pos, func(b []byte) { clear(b) }, s.capacity-pos)
		j = journaltest.Open(t, newStore(t, o), "j", 1, journal.Seq(n+3)).(*Journal)
		journaltest.WantNumbered(t, j, 1, n+3)
		if !j.mu.segments[0].sealed {
			t.Fatal("not sealed again")
		}
		j.Close()
	}
}

// unsealable takes blocks, which come as parts, and no index.
type unsealable struct{ File }

func (unsealable) WriteAt([]byte, int64) (int, error) { return 0, syscall.EIO }

// A footer that cannot be written stops the journal: the disk is broken.
func TestSealFails(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentMin: 16 << 10, SegmentMax: 16 << 10, FS: &faultFS{}}
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0).(*Journal)
	rollOver(t, j, 500)
	w := <-j.writer
	w.file = unsealable{w.file}
	j.writer <- w
	n := j.mu.next
	var err error
	for ; err == nil && n < 1000; n++ {
		_, err = j.Append(context.Background(), journaltest.Block(int64(n), 1, int64(n), 500))
	}
	settled(j)
	if !errors.Is(j.stopped(), syscall.EIO) {
		t.Fatalf("after %d blocks: %v", n-1, err)
	}
	j.Close()
	_, next, _, _ := journaltest.Open(t, newStore(t, o), "j", 1, 0).Bounds(t.Context())
	if next < n-1 {
		t.Fatalf("%d blocks acknowledged, next is %d", n-2, next)
	}
}

// Segments that are trimmed before the largest size is reached live again too.
func TestRecycleSmall(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentMin: 16 << 10, SegmentMax: 1 << 20, FS: &faultFS{}}
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0).(*Journal)
	for range 3 {
		rollOver(t, j, 500)
	}
	settled(j)
	_, next, _, _ := j.Bounds(t.Context())
	if err := j.Trim(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if len(j.mu.free) != 1 || j.mu.free[0].size != 32<<10 { // 16 KiB is too small beside one of 64
		t.Fatalf("free: %+v", j.mu.free)
	}
	j.Close()
	j = journaltest.Open(t, newStore(t, o), "j", 1, next-1).(*Journal)
	if f, ok := j.recycled(64<<10, 20<<10); !ok || f.size != 32<<10 {
		t.Fatalf("%+v %v", f, ok)
	}
	if _, ok := j.recycled(64<<10, 20<<10); ok {
		t.Fatal("given twice")
	}
}

// pwritev may write less than it was asked for.
func TestWriteParts(t *testing.T) {
	parts := [][]byte{[]byte("ab"), nil, []byte("cde"), []byte("f")}
	for done := range 7 {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt([]byte("abcdef")[:done], 3)
		if n, err := writeParts(f, parts, 3, done); n != 6 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		b, _ := os.ReadFile(f.Name())
		if string(b) != "\x00\x00\x00abcdef" {
			t.Fatalf("after %d: %q", done, b)
		}
		f.Close()
	}
}
