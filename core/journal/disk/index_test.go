package disk

import (
	"testing"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

// fillSparse appends 4 KiB blocks of partition 1, and one small block of partition 7 in the middle.
func fillSparse(t testing.TB, j journal.Journal, n int) (rare journal.Seq) {
	t.Helper()
	for i := range n {
		if i == n/2 {
			rare = appendBlock(t, j, journaltest.Block(int64(i), 7, 0, 10))
		}
		appendBlock(t, j, journaltest.Block(int64(i), 1, int64(i), 4<<10))
	}
	return rare
}

// A lone reader finds its block by Seq, by offset and by time without reading what lies before.
func TestIndexJumps(t *testing.T) {
	const n = 1500 // 6 MiB
	o := Options{Dir: t.TempDir(), SegmentMin: 4 << 20, SegmentMax: 4 << 20, FS: &faultFS{}}
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0)
	rare := fillSparse(t, j, n)
	j.Close()
	ffs := &faultFS{}
	o.FS = ffs
	j = journaltest.Open(t, newStore(t, o), "j", 1, n+1)
	for _, c := range []struct {
		name  string
		from  journal.Seq
		h     journal.Hint
		first journal.Seq // wanted
		stop  bool        // the reader stops there
		most  int64       // bytes read
	}{
		{"by seq, sealed", 500, journal.Hint{}, 500, true, 512 << 10},
		{"by seq, open", n, journal.Hint{}, n, true, 512 << 10},
		{"by offset, sealed", 1, journal.Hint{Partition: 1, HasPartition: true, From: 600}, 601, true, 256 << 10},
		{"by offset, open", 1, journal.Hint{Partition: 1, HasPartition: true, From: 1400}, 1402, true, 256 << 10},
		{"by time, sealed", 1, journal.Hint{Since: 700}, 701, true, 256 << 10},
		{"by time, open", 1, journal.Hint{Since: 1450}, 1452, true, 256 << 10},
		{"rare partition", 1, journal.Hint{Partition: 7, HasPartition: true}, rare, false, 512 << 10},
		{"absent partition", 1, journal.Hint{Partition: 9, HasPartition: true}, 0, false, 256 << 10},
		{"future", 1, journal.Hint{Since: 1 << 40}, 0, false, 256 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			ffs.read.Store(0)
			got := journal.Seq(0)
			for r, err := range j.Read(t.Context(), c.from, c.h) {
				if err != nil {
					t.Fatal(err)
				}
				if got == 0 {
					got = r.Seq
				}
				if c.stop {
					break
				}
			}
			if got != c.first || ffs.read.Load() > c.most {
				t.Fatalf("block %d after %d bytes, want %d within %d", got, ffs.read.Load(), c.first, c.most)
			}
		})
	}
}

// An index cannot lead a reader astray: whatever decodes stays within its segment.
func FuzzDecodeIndex(f *testing.F) {
	b := newIndexBuilder(nil)
	v := &view{seg: &segment{base: 1}, end: headerSize}
	for i := range 40 {
		raw := journaltest.Numbered(i + 1)
		blk, err := journal.ParseBlock(raw)
		if err != nil {
			f.Fatal(err)
		}
		b.add(journal.Seq(i+1), v.end, blk)
		v.end += frameSize(len(raw)) + 8<<10
	}
	v.next = 41
	b.flush()
	f.Add(b.index.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		x, ok := decodeIndex(raw, v)
		if !ok {
			return
		}
		for i := range x.stretches {
			x.marksOf(i)
			if s := x.stretches[i]; s.pos < headerSize || s.pos >= v.end || s.seq < 1 || s.seq >= v.next {
				t.Fatalf("stretch %+v", s)
			}
		}
		x.summary()
	})
}

func TestIndexRoundTrip(t *testing.T) {
	b := newIndexBuilder(nil)
	v := &view{seg: &segment{base: 5}, end: headerSize}
	for i := range 200 {
		raw := journaltest.Numbered(i + 1)
		blk, err := journal.ParseBlock(raw)
		if err != nil {
			t.Fatal(err)
		}
		b.add(journal.Seq(i+5), v.end, blk)
		v.end += 4 << 10
	}
	v.next = 205
	room := b.index.size(len(b.marks), 0)
	b.flush()
	raw := b.index.encode()
	if int64(len(raw)) > room {
		t.Fatalf("%d bytes, %d were reserved", len(raw), room)
	}
	x, ok := decodeIndex(raw, v)
	if !ok || len(x.stretches) != len(b.index.stretches) || len(x.stretches) < 10 || len(x.marks) != len(b.index.marks) {
		t.Fatalf("decoded %+v %v", x, ok)
	}
	for i := range x.stretches {
		if x.stretches[i] != b.index.stretches[i] {
			t.Fatalf("stretch %d: %+v, want %+v", i, x.stretches[i], b.index.stretches[i])
		}
	}
	if x.find(5) != 0 || x.find(204) != len(x.stretches)-1 || x.find(x.stretches[3].seq) != 3 || x.find(x.stretches[3].seq-1) != 2 {
		t.Fatal("find is off by one")
	}
	for i := range raw {
		bad := append([]byte(nil), raw...)
		if bad[i] ^= 1; i >= len(raw)-sectionHeader {
			continue // the empty section behind
		}
		if _, ok := decodeIndex(bad, v); ok && i != 3 {
			t.Fatalf("byte %d flipped, and nobody minds", i)
		}
	}
}
