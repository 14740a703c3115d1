package engine_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/journal/disk"
	"isthmus/core/journal/disk/faultfs"
)

// I1, I2, I7: whichever operation of a life fails, with the disk full for good or broken for once, in a journal or in the
// metadata: what was acknowledged is there after a restart, with or without a power loss in between, nothing is
// acknowledged that is not, and with the disk as it was before the engine goes on.
func TestI1_I2_I7_EveryOperationOfALifeFails(t *testing.T) {
	for name, fault := range map[string]struct {
		err     error
		forGood bool
	}{
		"full for good": {syscall.ENOSPC, true},
		"broken once":   {syscall.EIO, false},
	} {
		t.Run(name, func(t *testing.T) {
			const step = 1 // every operation
			n := 0
			for fired := true; fired; n += step {
				var err error
				synctest.Test(t, func(t *testing.T) { fired, err = faultyLife(t, n, fault.err, fault.forGood) })
				if err != nil {
					t.Fatalf("operation %d: %v", n, err)
				}
			}
			if n < 100 {
				t.Fatalf("only %d operations in the life", n)
			}
		})
	}
}

const faultSeed = 13

func faultyLife(t *testing.T, n int, fault error, forGood bool) (fired bool, err error) {
	w := newCrashWorld(t, faultSeed, false)
	defer func() { w.kill() }()
	if w.mode != disk.Fsync || !w.dedup || !w.parks {
		return false, errors.New("the life of another seed is wanted: with every message synced, repeated and delayed ones")
	}
	w.disk.Before(func(faultfs.Op) error {
		if n--; n == -1 || n < 0 && forGood {
			w.downAt.CompareAndSwap(0, time.Now().UnixNano())
			return fault
		}
		return nil
	})
	if err := w.work(25, false); err != nil {
		return true, err
	}
	if fired = w.downAt.Load() != 0; !fired {
		w.downAt.Store(time.Now().UnixNano())
	}
	w.kill()
	if err := w.look(); err != nil {
		return fired, err
	}
	w.disk.Before(nil)
	if w.rand.IntN(2) == 0 {
		w.disk.Restart()
	}
	if err := w.restart(); err != nil {
		return fired, err
	}
	if err := w.check(w.downAt.Swap(0)); err != nil {
		return fired, err
	}
	w.resend()
	if err := w.goesOn(); err != nil {
		return fired, err
	}
	// What the restart took from the page cache is on the disk by now, or it would go with the power.
	time.Sleep(700 * time.Millisecond)
	w.downAt.Store(time.Now().UnixNano())
	w.disk.PowerOff()
	w.kill()
	w.disk.Restart()
	if err := errors.Join(w.look(), w.restart()); err != nil {
		return fired, err
	}
	return fired, w.check(w.downAt.Swap(0))
}

// goesOn publishes to every partition and wants it acknowledged.
func (w *crashWorld) goesOn() error {
	before := map[*crashLog]core.Offset{}
	for _, l := range w.logs {
		before[l] = l.end
		w.publish(l, false)
	}
	time.Sleep(5 * time.Millisecond)
	synctest.Wait()
	if err := w.look(); err != nil {
		return err
	}
	for l, end := range before {
		if l.end == end {
			return fmt.Errorf("%s/%d takes no messages after the restart", l.topic, l.index)
		}
	}
	if err := w.eng.Health(); err != nil {
		return errors.Join(errors.New("not in good health after the restart"), err)
	}
	return nil
}
