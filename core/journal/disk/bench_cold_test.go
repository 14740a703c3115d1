package disk

import (
	"os"
	"testing"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"

	"golang.org/x/sys/unix"
)

// BenchmarkReadCold reads 512 MiB of 256 KiB blocks that are not in the page cache: bare preads of 1 MiB from end to end, the
// null baseline; the journal; and one partition of eleven, for which everything has to be read but not yielded.
func BenchmarkReadCold(b *testing.B) {
	o := Options{Dir: b.TempDir(), Sync: Interval}
	j := journaltest.Open(b, newStore(b, o), "j", 1, 0).(*Journal)
	const n, part = 2048, 24 << 10
	for i := range int64(n) {
		var xs []journal.Extent
		for p := range uint32(11) {
			xs = append(xs, journal.Extent{Partition: p, First: i, Count: 1, Data: make([]byte, part)})
		}
		appendBlock(b, j, journal.AppendBlock(nil, 1, i, xs...))
	}
	if err := j.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	settled(j)
	paths := segments(b, o.Dir)
	cool := func() {
		for _, p := range paths {
			withFile(b, p, func(f *os.File) { unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) })
		}
	}
	buf := make([]byte, 1<<20)
	raw := func() {
		for _, p := range paths {
			withFile(b, p, func(f *os.File) {
				for pos := int64(0); ; pos += int64(len(buf)) {
					if _, err := f.ReadAt(buf, pos); err != nil {
						return
					}
				}
			})
		}
	}
	read := func(h journal.Hint) func() {
		return func() {
			last := journal.Seq(0)
			for r, err := range j.Read(b.Context(), 1, h) {
				if err != nil {
					b.Fatal(err)
				}
				last = r.Seq
			}
			if last != n {
				b.Fatalf("ended at %d", last)
			}
		}
	}
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"raw", raw}, {"all", read(journal.Hint{})}, {"keep", read(journal.Hint{Keep: true})},
		{"one", read(journal.Hint{Partition: 3, HasPartition: true})},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(n * 11 * part)
			for range b.N {
				b.StopTimer()
				cool()
				b.StartTimer()
				c.f()
			}
		})
	}
}

func withFile(b *testing.B, path string, f func(*os.File)) {
	b.Helper()
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	f(file)
	file.Close()
}
