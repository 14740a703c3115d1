package disk

import (
	"context"
	"os"
	"testing"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

// I7: power failed when a segment had its name and no record yet. A block that does not fit into it gets a segment that
// begins with the same Seq, in the same place: there must be one of it, or trimming one takes the other's file.
func TestI7_AnEmptySegmentIsReplaced(t *testing.T) {
	o := Options{SegmentMin: 4 << 10, SegmentMax: 64 << 10}
	dir, segs := filled(t, o, 5)
	last := segs[len(segs)-1]
	o.Dir = dir
	raw := rawFile{path: segmentPath(dir+"/j", last.next) + tmpExt, size: 4 << 10}
	var err error
	if raw.file, err = (osFS{}).Create(raw.path); err != nil {
		t.Fatal(err)
	}
	if err := raw.file.Allocate(raw.size); err != nil {
		t.Fatal(err)
	}
	empty, err := createSegment(osFS{}, dir+"/j", &raw, last.next, 1)
	if err != nil {
		t.Fatal(err)
	}
	raw.file.Close()

	j := journaltest.Open(t, newStore(t, o), "j", 1, 5)
	big := journal.AppendBlock(nil, 1, 1, journal.Extent{Partition: 1, First: 0, Count: 1, Data: make([]byte, 10<<10)})
	if seq, err := j.Append(context.Background(), big); err != nil || seq != 6 {
		t.Fatal(seq, err)
	}
	if err := j.Trim(context.Background(), 7); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(empty.path); err != nil {
		t.Fatalf("the segment of block 6: %v", err)
	}
	journaltest.Fill(t, j, 7, 7)
	j.Close()
	j = journaltest.Open(t, newStore(t, o), "j", 1, 7)
	if rs, err := journaltest.Collect(j, 6, journal.Hint{}); err != nil || len(rs) != 2 || rs[0].Seq != 6 {
		t.Fatalf("%d blocks, %v", len(rs), err)
	}
	j.Close()
}
