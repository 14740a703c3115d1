package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
)

// cell is one entry of a thinnable block: a message of partition and offset.
func cell(partition uint32, offset core.Offset) []byte {
	return payload(partition, offset, cellSize)
}

const (
	cellSize  = 40
	cellCount = 10 // entries of an extent
)

// Cells is the block that the thinning tests append as the i-th, from 1: ten entries of 40 bytes, one message each, of
// partition 1 and as many of partition 2.
func Cells(i int) []byte {
	var es []journal.Extent
	for p := uint32(1); p <= 2; p++ {
		x := journal.Extent{Partition: p, First: core.Offset((i - 1) * cellCount), Count: cellCount}
		for k := range core.Offset(cellCount) {
			x.Data = append(x.Data, cell(p, x.First+k)...)
		}
		es = append(es, x)
	}
	return journal.AppendBlock(nil, 3, 1000*int64(i), es...)
}

// KeepCells is the journal.Keep for blocks of cells.
func KeepCells(held func(partition uint32, offset core.Offset) bool) journal.Keep {
	return func(dst []journal.Extent, x journal.Extent) []journal.Extent {
		open := false
		for k := range core.Offset(x.Count) {
			o := x.First + k
			switch keep := held(x.Partition, o); {
			case keep && open:
				run := &dst[len(dst)-1]
				run.Count, run.Data = run.Count+1, run.Data[:len(run.Data)+cellSize]
			case keep:
				dst = append(dst, journal.Extent{Partition: x.Partition, First: o, Count: 1, Data: x.Data[k*cellSize:][:cellSize]})
				open = true
			default:
				open = false
			}
		}
		return dst
	}
}

// FillCells appends the blocks of cells from..to.
func FillCells(t testing.TB, j journal.Journal, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if seq, err := j.Append(context.Background(), Cells(i)); err != nil || seq != journal.Seq(i) {
			t.Fatalf("append %d: seq %d, %v", i, seq, err)
		}
	}
}

// WantCells checks that the journal of n blocks of cells yields, with what time it had and in order, every cell that must
// be there, and nothing that was never appended.
func WantCells(t testing.TB, j journal.Journal, n int, must func(partition uint32, offset core.Offset) bool) {
	t.Helper()
	rs, err := Collect(j, 1, journal.Hint{})
	if err != nil {
		t.Fatal(err)
	}
	got := [3]map[core.Offset]bool{nil, {}, {}}
	for _, r := range rs {
		if r.Time != 1000*int64(r.Seq) {
			t.Fatalf("block %d has time %d", r.Seq, r.Time)
		}
		if err := wantCells(r, got); err != nil {
			t.Fatal(err)
		}
	}
	for p := uint32(1); p <= 2; p++ {
		for o := range core.Offset(n * cellCount) {
			if must(p, o) && !got[p][o] {
				t.Fatalf("offset %d of partition %d is held and not there", o, p)
			}
		}
		hint := journal.Hint{Partition: p, HasPartition: true, From: core.Offset(n * cellCount / 2)}
		if err := wantFound(j, p, hint, must, n); err != nil {
			t.Fatal(err)
		}
	}
}

func wantCells(r journal.Record, got [3]map[core.Offset]bool) error {
	b, err := journal.ParseBlock(r.Block)
	if err != nil {
		return err
	}
	if b.Epoch != 3 || b.Len() == 0 {
		return fmt.Errorf("block %d: epoch %d, %d extents", r.Seq, b.Epoch, b.Len())
	}
	for p := uint32(1); p <= 2; p++ {
		at := core.Offset(r.Seq-1) * cellCount
		for x := range b.Of(p) {
			if x.First < at || x.Next() > core.Offset(r.Seq)*cellCount || len(x.Data) != int(x.Count)*cellSize {
				return fmt.Errorf("block %d, partition %d: extent [%d, %d) of %d bytes", r.Seq, p, x.First, x.Next(), len(x.Data))
			}
			for at = x.First; at < x.Next(); at++ {
				if !bytes.Equal(x.Data[(at-x.First)*cellSize:][:cellSize], cell(p, at)) {
					return fmt.Errorf("block %d, partition %d: offset %d changed", r.Seq, p, at)
				}
				got[p][at] = true
			}
		}
	}
	return nil
}

// wantFound checks that a reader who asks for a partition from an offset on is led to everything held.
func wantFound(j journal.Journal, p uint32, hint journal.Hint, must func(uint32, core.Offset) bool, n int) error {
	rs, err := Collect(j, 1, hint)
	if err != nil {
		return err
	}
	got := [3]map[core.Offset]bool{nil, {}, {}}
	for _, r := range rs {
		if err := wantCells(r, got); err != nil {
			return err
		}
	}
	for o := hint.From; o < core.Offset(n*cellCount); o++ {
		if must(p, o) && !got[p][o] {
			return fmt.Errorf("%+v: offset %d is held and not found", hint, o)
		}
	}
	return nil
}

// Thin holds a tenant that is a journal.Thinner to that contract. After settle has returned, what was appended may be
// thinned, all but the blocks at the very end; a tenant that thins at once needs none.
func Thin(t *testing.T, s journal.Store, reopen func() journal.Store, settle func(journal.Journal)) {
	const n = 400
	ctx := context.Background()
	j := Open(t, s, "thin", 3, 0)
	FillCells(t, j, 1, n)
	settle(j)
	thin := func(from, before journal.Seq, held func(uint32, core.Offset) bool) int64 {
		t.Helper()
		freed, err := j.(journal.Thinner).Thin(ctx, from, before, KeepCells(held))
		if err != nil {
			t.Fatal(err)
		}
		return freed
	}
	_, _, before, _ := j.Bounds(ctx)
	all := func(uint32, core.Offset) bool { return true }
	if freed := thin(1, n+1, all); freed != 0 || j.(journal.Thinner).Thinned() {
		t.Fatalf("%d bytes freed of what is held", freed)
	}
	WantCells(t, j, n, all)

	outside := func(o core.Offset) bool { return o < 50*cellCount || o >= 300*cellCount }
	some := func(p uint32, o core.Offset) bool { return outside(o) || p == 2 && o%37 == 0 || o%1000 < 3 }
	freed := thin(51, 301, some)
	_, _, after, _ := j.Bounds(ctx)
	if freed < (before-after)*9/10 || after > before*2/3 {
		t.Fatalf("%d bytes freed, from %d to %d", freed, before, after)
	}
	WantCells(t, j, n, some)
	WantBounds(t, j, 1, n+1)

	few := func(p uint32, o core.Offset) bool { return outside(o) || p == 2 && o == 1000 }
	thin(51, 301, few)
	WantCells(t, j, n, few)
	FillCells(t, j, n+1, n+5)
	j.Close()
	j = Open(t, reopen(), "thin", 3, n+5)
	if !j.(journal.Thinner).Thinned() {
		t.Fatal("thinned, and nobody knows")
	}
	WantCells(t, j, n+5, few)
	thin(1, n+6, func(uint32, core.Offset) bool { return false })
	FillCells(t, j, n+6, n+10)
	if err := j.Trim(ctx, n/2); err != nil {
		t.Fatal(err)
	}
	WantCells(t, j, n+10, func(_ uint32, o core.Offset) bool { return o >= (n+5)*cellCount })
	j.Close()
	j = Open(t, reopen(), "thin", 3, n+10)
	WantCells(t, j, n+10, func(_ uint32, o core.Offset) bool { return o >= (n+5)*cellCount })

	lie := func(dst []journal.Extent, x journal.Extent) []journal.Extent {
		x.First++
		return append(dst, x)
	}
	if _, err := j.(journal.Thinner).Thin(ctx, 1, n, lie); err != nil && !errors.Is(err, core.ErrInvalid) {
		t.Fatal(err)
	}
	j.Close()
	if _, err := j.(journal.Thinner).Thin(ctx, 1, n, KeepCells(all)); !errors.Is(err, core.ErrClosed) {
		t.Fatalf("closed: %v", err)
	}
}
