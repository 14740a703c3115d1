package disk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

// BenchmarkAppend sets one Append against its physical floor, turn by turn so that a busy disk
// disturbs all alike: a bare pwrite and fdatasync of the same bytes, once at the end of a growing
// file, as a log without pre-allocation does, and once over bytes written before, the best that there
// is. It reports the medians, in microseconds; ns/op is one turn of all three.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{128, 4 << 10, 64 << 10, 192 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchAppend(b, size) })
	}
}

func benchAppend(b *testing.B, size int) {
	block := journaltest.Block(1, 1, 0, size)
	j := journaltest.Open(b, newStore(b, Options{Dir: b.TempDir()}), "j", 1, 0)
	runs := []struct {
		name string
		f    func() error
		took []time.Duration
	}{
		{name: "journal", f: func() error { _, err := j.Append(context.Background(), block); return err }},
		{name: "grow", f: rawAppend(b, block, 0)},
		{name: "overwrite", f: rawAppend(b, block, 64<<20)},
	}
	for b.Loop() {
		for i := range runs {
			begin := time.Now()
			if err := runs[i].f(); err != nil {
				b.Fatal(err)
			}
			runs[i].took = append(runs[i].took, time.Since(begin))
		}
	}
	for _, r := range runs {
		slices.Sort(r.took)
		b.ReportMetric(float64(r.took[len(r.took)/2].Nanoseconds())/1e3, r.name+"-µs")
	}
}

// rawAppend writes and syncs block after block into a file that has fill bytes already.
func rawAppend(b *testing.B, block []byte, fill int64) func() error {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	for pos := int64(0); pos < fill; pos += prewriteChunk {
		if _, err := f.WriteAt(zeros[:], pos); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	pos := int64(0)
	return func() error {
		if _, err := f.WriteAt(block, pos); err != nil {
			return err
		}
		if pos += frameSize(len(block)); fill > 0 && pos+int64(len(block)) > fill {
			pos = 0
		}
		return datasync(f)
	}
}

// BenchmarkRead: ns/op is one block of 4 KiB in a sequential read of sealed and open segments.
func BenchmarkRead(b *testing.B) {
	j := journaltest.Open(b, newStore(b, Options{Dir: b.TempDir(), Sync: Interval}), "j", 1, 0)
	for i := range 4096 {
		appendBlock(b, j, journaltest.Block(int64(i), uint32(i%11), int64(i/11), 4<<10))
	}
	b.Run("sequential", func(b *testing.B) {
		b.SetBytes(4 << 10)
		for n := 0; n < b.N; {
			for _, err := range j.Read(b.Context(), 1, journal.Hint{}) {
				if err != nil {
					b.Fatal(err)
				}
				if n++; n == b.N {
					break
				}
			}
		}
	})
	b.Run("lone", func(b *testing.B) { // one partition, found by offset, one block
		for n := range b.N {
			h := journal.Hint{Partition: uint32(n % 11), HasPartition: true, From: int64(n*7919) % 370}
			for r, err := range j.Read(b.Context(), 1, h) {
				if blk, _ := journal.Header(r.Block); err != nil || blk.Extent(0).First != h.From {
					b.Fatalf("%+v: block %d, %v", h, r.Seq, err)
				}
				break
			}
		}
	})
}
