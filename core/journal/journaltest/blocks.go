package journaltest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
)

// Block is a block of one extent of a single message: size bytes that depend on offset and partition.
func Block(time int64, partition uint32, offset core.Offset, size int) []byte {
	return journal.AppendBlock(nil, 1, time, journal.Extent{
		Partition: partition, First: offset, Count: 1, Data: payload(partition, offset, size),
	})
}

// Numbered is the block that the suite appends as the i-th of a journal, from 1: partition i%3,
// dense offsets, time 1000*i.
func Numbered(i int) []byte {
	return Block(1000*int64(i), uint32(i%3), core.Offset((i-1)/3), 20+i%200)
}

// noise is what payloads are cut from.
var noise = func() []byte {
	b := make([]byte, 0, 256<<10)
	for x := uint64(1); len(b) < cap(b); {
		x = x*0x5851F42D4C957F2D + 0x14057B7EF767814F
		b = binary.LittleEndian.AppendUint64(b, x^x>>29)
	}
	return b
}()

// payload mixes partition and offset into the choice of bytes, so that neighbours differ.
func payload(partition uint32, offset core.Offset, size int) []byte {
	data := make([]byte, 0, size)
	at := (uint64(partition)*7919 + uint64(offset)*104729) % uint64(len(noise))
	for len(data) < size {
		data = append(data, noise[at:min(uint64(len(noise)), at+uint64(size-len(data)))]...)
		at = 0
	}
	return data
}

// Fill appends the numbered blocks from..to.
func Fill(t testing.TB, j journal.Journal, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		seq, err := j.Append(context.Background(), Numbered(i))
		if err != nil || seq != journal.Seq(i) {
			t.Fatalf("append %d: seq %d, %v", i, seq, err)
		}
	}
}

// Collect reads all that the hint wants, checks that Seqs ascend and blocks are whole, and returns
// copies by Seq in order.
func Collect(j journal.Journal, from journal.Seq, hint journal.Hint) ([]journal.Record, error) {
	var rs []journal.Record
	last := journal.Seq(0)
	for r, err := range j.Read(context.Background(), from, hint) {
		if err != nil {
			return rs, err
		}
		if r.Seq <= last || r.Seq < from {
			return rs, fmt.Errorf("block %d after %d, from %d", r.Seq, last, from)
		}
		last = r.Seq
		b, err := journal.ParseBlock(r.Block)
		if err != nil {
			return rs, err
		}
		if b.Time != r.Time {
			return rs, fmt.Errorf("block %d: record time %d, block time %d", r.Seq, r.Time, b.Time)
		}
		r.Block = bytes.Clone(r.Block)
		rs = append(rs, r)
	}
	return rs, nil
}

// WantNumbered checks that the journal yields exactly the numbered blocks from..to.
func WantNumbered(t testing.TB, j journal.Journal, from, to int) {
	t.Helper()
	rs, err := Collect(j, journal.Seq(from), journal.Hint{})
	if err != nil {
		t.Fatalf("read from %d: %v", from, err)
	}
	for i, r := range rs {
		if r.Seq != journal.Seq(from+i) || !bytes.Equal(r.Block, Numbered(from+i)) {
			t.Fatalf("read from %d: block %d at place %d is not the one appended", from, r.Seq, i)
		}
	}
	if len(rs) != max(0, to-from+1) {
		t.Fatalf("read from %d: %d blocks, want up to %d", from, len(rs), to)
	}
}

// Open opens a journal or ends the test.
func Open(t testing.TB, s journal.Store, name string, epoch uint64, durable journal.Seq) journal.Journal {
	t.Helper()
	j, err := s.Open(context.Background(), name, epoch, durable)
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// WantBounds checks first and next.
func WantBounds(t testing.TB, j journal.Journal, first, next journal.Seq) {
	t.Helper()
	f, n, _, err := j.Bounds(context.Background())
	if err != nil || f != first || n != next {
		t.Fatalf("bounds [%d, %d), %v; want [%d, %d)", f, n, err, first, next)
	}
}
