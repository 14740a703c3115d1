package disk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"isthmus/core/journal/journaltest"
)

// BenchmarkAppend sets one Append against its physical floor in the same run: a bare loop of pwrite
// and fdatasync of the same bytes. "grow" extends a file, as a log without pre-allocation does;
// "overwrite" writes into blocks that were written before, the best that recycling can give.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{128, 1 << 10, 4 << 10, 16 << 10, 64 << 10} {
		block := journaltest.Block(1, 1, 0, size)
		b.Run(fmt.Sprintf("%d/journal", size), func(b *testing.B) {
			j := journaltest.Open(b, newStore(b, Options{Dir: b.TempDir()}), "j", 1, 0)
			b.SetBytes(int64(size))
			for b.Loop() {
				seq, err := j.Append(context.Background(), block)
				if err != nil {
					b.Fatal(err)
				}
				if seq%4096 == 0 {
					if err := j.Trim(context.Background(), seq); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		for _, fill := range []int64{0, 64 << 20} {
			name := "grow"
			if fill > 0 {
				name = "overwrite"
			}
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) { rawLoop(b, block, fill) })
		}
	}
}

func rawLoop(b *testing.B, block []byte, fill int64) {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	zeros := make([]byte, 1<<20)
	for pos := int64(0); pos < fill; pos += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros, pos); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(block)))
	pos := int64(0)
	for b.Loop() {
		if _, err := f.WriteAt(block, pos); err != nil {
			b.Fatal(err)
		}
		if err := datasync(f); err != nil {
			b.Fatal(err)
		}
		if pos += frameSize(len(block)); fill > 0 && pos+int64(len(block)) > fill {
			pos = 0
		}
	}
}
