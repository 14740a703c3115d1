package disk

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

func appendBlock(t testing.TB, j journal.Journal, block []byte) journal.Seq {
	t.Helper()
	seq, err := j.Append(context.Background(), block)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func sizes(t testing.TB, dir string) (sizes []int64) {
	t.Helper()
	for _, p := range segments(t, dir) {
		st, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, st.Size()>>10)
	}
	return sizes
}

func equal(t testing.TB, what string, got, want []int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}

// Segments double, also across a restart; a block that fits in none gets one of its own size.
func TestSegmentSizes(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentMin: 16 << 10, SegmentMax: 64 << 10}
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0)
	n := core.Offset(0)
	add := func(size int) {
		t.Helper()
		seq := appendBlock(t, j, journaltest.Block(int64(n), 1, n, size))
		if n++; seq != journal.Seq(n) {
			t.Fatalf("seq %d, want %d", seq, n)
		}
	}
	add(10 << 10)
	equal(t, "first", sizes(t, o.Dir), []int64{16})
	add(10 << 10)
	equal(t, "second", sizes(t, o.Dir), []int64{16, 32})
	j.Close()
	j = journaltest.Open(t, newStore(t, o), "j", 1, 2)
	add(30 << 10)
	equal(t, "third", sizes(t, o.Dir), []int64{16, 32, 64})
	add(200 << 10)
	equal(t, "big block", sizes(t, o.Dir), []int64{16, 32, 64, 204})
	add(5 << 10)
	equal(t, "after it", sizes(t, o.Dir), []int64{16, 32, 64, 204, 64})
	j.Close()
	j = journaltest.Open(t, newStore(t, o), "j", 1, 5)
	rs, err := journaltest.Collect(j, 1, journal.Hint{})
	if err != nil || len(rs) != 5 {
		t.Fatalf("%d blocks, %v", len(rs), err)
	}
	for i, size := range []int{10 << 10, 10 << 10, 30 << 10, 200 << 10, 5 << 10} {
		if !bytes.Equal(rs[i].Block, journaltest.Block(int64(i), 1, core.Offset(i), size)) {
			t.Fatalf("block %d changed", i+1)
		}
	}
}

// A segment that was trimmed lives again; nothing of its first life is taken for data, not even where
// the new records end exactly where an old one begins.
func TestRecycledBytesAreStale(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentMin: 4 << 10, SegmentMax: 4 << 10, FS: &faultFS{}}
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0)
	n := core.Offset(0)
	same := func() {
		appendBlock(t, j, journaltest.Block(1, 1, n, 100))
		n++
	}
	for range 200 {
		same()
	}
	if err := j.Trim(context.Background(), journal.Seq(n)); err != nil {
		t.Fatal(err)
	}
	settled(j)
	a, taken := <-j.(*Journal).ahead, 0 // by the next segment
	if a.file != nil && filepath.Ext(a.path) == freeExt {
		taken = 1
	}
	j.(*Journal).ahead <- a
	free := func() int {
		paths, _ := filepath.Glob(filepath.Join(o.Dir, "j", "*"+freeExt))
		return len(paths)
	}
	if free() != freeSegments+taken {
		t.Fatalf("%d free files after trim, want %d", free(), freeSegments)
	}
	for i := range 60 { // across two recycled segments, reopened behind each record
		same()
		j.Close()
		j = journaltest.Open(t, newStore(t, o), "j", 1, journal.Seq(n))
		_, next, _, err := j.Bounds(context.Background())
		if err != nil || next != journal.Seq(n+1) {
			t.Fatalf("after %d more blocks: next %d, want %d, %v", i+1, next, n+1, err)
		}
	}
	if free() != 0 {
		t.Fatalf("%d free files left: nothing was recycled", free())
	}
	first, _, _, _ := j.Bounds(context.Background())
	rs, err := journaltest.Collect(j, first, journal.Hint{})
	if err != nil || rs[len(rs)-1].Seq != journal.Seq(n) || len(rs) != int(n)-int(first)+1 {
		t.Fatalf("%d blocks, %v", len(rs), err)
	}
}

// A reader whose segment is trimmed and recycled under it goes on with the first block left.
func TestTrimUnderReader(t *testing.T) {
	const size = 2 * readChunk // the reader has not seen all of a segment when it is dropped
	o := Options{Dir: t.TempDir(), SegmentMin: size, SegmentMax: size, FS: &faultFS{}}
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0)
	const n, perSegment = 600, 120
	block := func(i int64) []byte { return journaltest.Block(i, 1, i, 4<<10) }
	for i := range int64(n) {
		appendBlock(t, j, block(i+1))
	}
	last := journal.Seq(0)
	for r, err := range j.Read(context.Background(), 1, journal.Hint{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Seq <= last || !bytes.Equal(r.Block, block(int64(r.Seq))) {
			t.Fatalf("block %d after %d", r.Seq, last)
		}
		if r.Seq-last > 1 && r.Seq < 400-perSegment {
			t.Fatalf("block %d after %d, though only those before 400 may be missing", r.Seq, last)
		}
		if last = r.Seq; last == 3 {
			if err := j.Trim(context.Background(), 400); err != nil {
				t.Fatal(err)
			}
			for i := range int64(4 * perSegment) {
				appendBlock(t, j, block(n+i+1))
			}
		}
	}
	if last != n {
		t.Fatalf("the reader ended at block %d", last)
	}
}

func TestAppendAllocates(t *testing.T) {
	j := journaltest.Open(t, newStore(t, Options{Dir: t.TempDir(), FS: &faultFS{}}), "j", 1, 0)
	block := journaltest.Block(1, 1, 0, 100)
	if n := testing.AllocsPerRun(500, func() { appendBlock(t, j, block) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
