package disk

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"isthmus/core/journal/journaltest"
)

// I8: an open journal that nobody writes to has one open file and a few kilobytes, and no goroutine or timer.
func TestIdleJournals(t *testing.T) {
	const n, partitions = 100, 8
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip(err)
	}
	before := usage()
	s := newStore(t, Options{Dir: t.TempDir(), FS: &faultFS{}, Hashes: hashEntries})
	for i := range n {
		j := journaltest.Open(t, s, fmt.Sprint("j", i), 1, 0)
		for p := range uint32(partitions) {
			appendBlock(t, j, journaltest.Block(1, p, 0, 100))
		}
		settled(j)
	}
	after := usage()
	files, goroutines, bytes := after[0]-before[0], after[1]-before[1], after[2]-before[2]
	t.Logf("%d open files, %d goroutines, %d bytes a journal", files, goroutines, bytes/n)
	if files != n || goroutines > 0 || bytes > n*16<<10 {
		t.Errorf("%d open files, %d goroutines, %d bytes of heap for %d journals", files, goroutines, bytes, n)
	}
}

// usage counts open files, goroutines and bytes of heap in use.
func usage() [3]int {
	fds, _ := os.ReadDir("/proc/self/fd")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return [3]int{len(fds), runtime.NumGoroutine(), int(m.HeapAlloc)}
}
