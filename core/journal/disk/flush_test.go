package disk

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core/journal/journaltest"
)

// In mode Interval a block is on the disk one interval after it was written, and not synced by Append.
func TestInterval(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ffs := &faultFS{}
		j := journaltest.Open(t, newStore(t, Options{Dir: dir, Sync: Interval, Interval: time.Second, FS: ffs}), "j", 1, 0).(*Journal)
		journaltest.Fill(t, j, 1, 5)
		before := ffs.syncs.Load()
		journaltest.Fill(t, j, 6, 50)
		if got := ffs.syncs.Load(); got != before {
			t.Fatalf("%d syncs", got-before)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := ffs.syncs.Load(); got != before+1 {
			t.Fatalf("%d syncs", got-before)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := ffs.syncs.Load(); got != before+1 {
			t.Fatalf("%d syncs of nothing", got-before-1)
		}
		journaltest.Fill(t, j, 51, 51)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := ffs.syncs.Load(); got != before+2 {
			t.Fatalf("the second interval: %d syncs", got-before-1)
		}
		journaltest.Fill(t, j, 52, 52)
		if err := j.Sync(context.Background()); err != nil || ffs.syncs.Load() != before+3 {
			t.Fatalf("sync on demand: %d syncs, %v", ffs.syncs.Load()-before, err)
		}
		journaltest.Fill(t, j, 53, 53)
		if err := j.Close(); err != nil || ffs.syncs.Load() != before+4 {
			t.Fatalf("close: %d syncs, %v", ffs.syncs.Load()-before, err)
		}
	})
}

// A sync that fails in the background stops the journal as well.
func TestIntervalSyncFails(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ffs := &faultFS{}
		j := journaltest.Open(t, newStore(t, Options{Dir: dir, Sync: Interval, Interval: time.Second, FS: ffs}), "j", 1, 0)
		journaltest.Fill(t, j, 1, 5)
		ffs.set(func(op, _ string) error {
			if op == "sync" {
				return syscall.EIO
			}
			return nil
		})
		time.Sleep(time.Second)
		synctest.Wait()
		ffs.set(nil)
		if _, err := j.Append(context.Background(), journaltest.Numbered(6)); !errors.Is(err, syscall.EIO) {
			t.Fatalf("append after a failed sync: %v", err)
		}
	})
}
