package disk

import (
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

// Whichever operation of making a checkpoint fails: the file is whole or not there, what was there before stays, and the
// journal goes on.
func TestEveryOperationOfACheckpointFails(t *testing.T) {
	text := strings.Repeat("a view of many items ", 20_000) // several writes
	for name, fail := range map[string]func(*faultFS, int) *atomic.Bool{
		"full for good": func(f *faultFS, n int) *atomic.Bool { return f.failNth(n, syscall.ENOSPC) },
		"broken once":   func(f *faultFS, n int) *atomic.Bool { return f.failOnce(n, syscall.EIO) },
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				ffs := &faultFS{}
				o := Options{Dir: t.TempDir(), FS: ffs}
				s := newStore(t, o)
				j := journaltest.Open(t, s, "j", 1, 0)
				journaltest.Fill(t, j, 1, 2)
				if err := journaltest.WriteCheckpoint(s, "j", "old", "old"); err != nil {
					t.Fatal(err)
				}
				failed := fail(ffs, n)
				err := journaltest.WriteCheckpoint(s, "j", "new", text)
				ffs.set(nil)
				if failed.Load() != (err != nil) {
					t.Fatalf("operation %d: %v", n, err)
				}
				journaltest.Fill(t, j, 3, 3)
				j.Close()
				checkCheckpoints(t, newStore(t, o), text, err == nil)
				if err == nil {
					if n < 7 {
						t.Fatalf("only %d operations", n)
					}
					return
				}
			}
		})
	}
}

func checkCheckpoints(t *testing.T, s *Store, text string, made bool) {
	t.Helper()
	journaltest.WantNumbered(t, journaltest.Open(t, s, "j", 1, 3), 1, 3)
	if got, err := journaltest.ReadCheckpoint(s, "j", "old"); err != nil || got != "old" {
		t.Fatalf("the old one: %q, %v", got, err)
	}
	files, err := s.ListCheckpoints("j")
	if err != nil {
		t.Fatal(err)
	}
	got, err := journaltest.ReadCheckpoint(s, "j", "new")
	if slices.Contains(files, "new") != (err == nil) || made && err != nil || err == nil && got != text {
		t.Fatalf("files %q, %d bytes, %v", files, len(got), err)
	}
	names, err := osFS{}.ReadDir(s.opt.Dir + "/j")
	if err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, tmpExt) }) {
		t.Fatalf("left over after Open: %q, %v", names, err)
	}
}

var _ journal.Checkpoints = (*Store)(nil)
