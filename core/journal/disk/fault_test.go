package disk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

// faultFS asks before each operation whether it may be done. It does not sync in truth: no test here
// ends the power.
type faultFS struct {
	osFS
	mu     sync.Mutex
	before func(op, path string) error
	read   atomic.Int64 // bytes
	syncs  atomic.Int64
}

func (f *faultFS) ask(op, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before == nil {
		return nil
	}
	return f.before(op, path)
}

func (f *faultFS) set(before func(op, path string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

// failNth lets the n-th operation that can fail, and every one after it, fail with err.
func (f *faultFS) failNth(n int, err error) (failed *atomic.Bool) {
	failed = new(atomic.Bool)
	f.set(func(string, string) error {
		if n--; n <= 0 {
			failed.Store(true)
			return err
		}
		return nil
	})
	return failed
}

func (f *faultFS) Create(path string) (File, error) {
	if err := f.ask("create", path); err != nil {
		return nil, err
	}
	return f.wrap(path)(f.osFS.Create(path))
}

func (f *faultFS) Open(path string, write bool) (File, error) {
	return f.wrap(path)(f.osFS.Open(path, write))
}

func (f *faultFS) wrap(path string) func(File, error) (File, error) {
	return func(file File, err error) (File, error) {
		if err != nil {
			return nil, err
		}
		return &faultFile{file, f, path}, nil
	}
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.ask("rename", from); err != nil {
		return err
	}
	return f.osFS.Rename(from, to)
}

func (f *faultFS) SyncDir(dir string) error {
	if err := f.ask("syncdir", dir); err != nil {
		return err
	}
	return nil
}

type faultFile struct {
	File
	fs   *faultFS
	path string
}

func (f *faultFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	f.fs.read.Add(int64(n))
	return n, err
}

// WriteAt that fails has written half, as a full disk does.
func (f *faultFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.fs.ask("write", f.path); err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off)
		return n, err
	}
	return f.File.WriteAt(b, off)
}

func (f *faultFile) WriteVAt(parts [][]byte, off int64) (int, error) {
	if err := f.fs.ask("write", f.path); err != nil {
		n, _ := f.File.WriteAt(parts[0], off)
		return n, err
	}
	return f.File.WriteVAt(parts, off)
}

func (f *faultFile) Allocate(size int64) error {
	if err := f.fs.ask("allocate", f.path); err != nil {
		return err
	}
	return f.File.Allocate(size)
}

func (f *faultFile) Sync() error {
	f.fs.syncs.Add(1)
	if err := f.fs.ask("sync", f.path); err != nil {
		return err
	}
	return nil
}

// failOnce lets only the n-th operation fail.
func (f *faultFS) failOnce(n int, err error) (failed *atomic.Bool) {
	failed = new(atomic.Bool)
	f.set(func(string, string) error {
		if n--; n == 0 {
			failed.Store(true)
			return err
		}
		return nil
	})
	return failed
}

// I1, I7: whichever operation fails, with the disk full or broken, for once or for good: what was
// acknowledged is there after the journal was opened again, and nothing is acknowledged after the failure.
func TestEveryOperationFails(t *testing.T) {
	o := Options{SegmentMin: 4 << 10, SegmentMax: 4 << 10}
	for name, fail := range map[string]func(*faultFS, int) *atomic.Bool{
		"full for good": func(f *faultFS, n int) *atomic.Bool { return f.failNth(n, syscall.ENOSPC) },
		"broken once":   func(f *faultFS, n int) *atomic.Bool { return f.failOnce(n, syscall.EIO) },
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				ffs, o := &faultFS{}, o
				o.Dir, o.FS = t.TempDir(), ffs
				failed := fail(ffs, n)
				acked := runUntilError(t, newStore(t, o), failed)
				ffs.set(nil)
				checkAfterFailure(t, newStore(t, o), acked)
				if !failed.Load() {
					if n < 80 {
						t.Fatalf("only %d operations in the run", n)
					}
					return
				}
			}
		})
	}
}

const faultBlocks = 70

// runUntilError appends and trims; after the first error of Append all others must fail.
func runUntilError(t *testing.T, s *Store, failed *atomic.Bool) (acked journal.Seq) {
	t.Helper()
	ctx := context.Background()
	j, err := s.Open(ctx, "j", 1, 0)
	if err != nil {
		if !failed.Load() {
			t.Fatal(err)
		}
		return 0
	}
	defer j.Close()
	for i := 1; i <= faultBlocks; i++ {
		seq, err := j.Append(ctx, journaltest.Numbered(i))
		if err != nil {
			wantStopped(t, j, err, i)
			return acked
		}
		acked = seq
		if i%30 == 0 {
			if err := j.Trim(ctx, acked-10); err != nil && !failed.Load() {
				t.Fatal(err)
			}
			if first, next, _, err := j.Bounds(ctx); err != nil || first > max(1, acked-10) || next != acked+1 {
				t.Fatalf("bounds [%d, %d) %v", first, next, err)
			}
		}
	}
	return acked
}

func wantStopped(t *testing.T, j journal.Journal, err error, i int) {
	t.Helper()
	for range 3 {
		if !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO) {
			t.Fatalf("append %d: %v", i, err)
		}
		var seq journal.Seq
		if seq, err = j.Append(context.Background(), journaltest.Numbered(i)); err == nil {
			t.Fatalf("append %d succeeded as %d after a failure", i, seq)
		}
	}
	first, _, _, _ := j.Bounds(context.Background())
	journaltest.WantNumbered(t, j, int(first), i-1)
}

func checkAfterFailure(t *testing.T, s *Store, acked journal.Seq) {
	t.Helper()
	j := journaltest.Open(t, s, "j", 1, acked)
	first, next, _, err := j.Bounds(context.Background())
	if err != nil || next != acked+1 && next != acked+2 || first > max(1, acked) {
		t.Fatalf("acknowledged up to %d, bounds [%d, %d), %v", acked, first, next, err)
	}
	journaltest.Fill(t, j, int(next), int(next)+10)
	journaltest.WantNumbered(t, j, int(first), int(next)+10)
	j.Close()
}

// After a failed sync the page cache may show what the disk has not: opening writes it once more.
func TestSettleAfterFailedSync(t *testing.T) {
	ffs := &faultFS{}
	o := Options{Dir: t.TempDir(), FS: ffs}
	j := journaltest.Open(t, newStore(t, o), "j", 1, 0)
	journaltest.Fill(t, j, 1, 4)
	ffs.set(func(op, _ string) error {
		if op == "sync" {
			return syscall.EIO
		}
		return nil
	})
	if _, err := j.Append(context.Background(), journaltest.Numbered(5)); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	j.Close()
	var ops []string
	ffs.set(func(op, _ string) error { ops = append(ops, op); return nil })
	j = journaltest.Open(t, newStore(t, o), "j", 1, 4)
	journaltest.WantNumbered(t, j, 1, 5)
	if !slices.Equal(ops, []string{"syncdir", "syncdir", "write", "sync"}) {
		t.Fatalf("operations of open: %v", ops)
	}
}
