package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A scan reads nothing while a live block is on its way to the disk; when that takes long, it goes on all the same.
func TestScanYieldsToLiveBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s scanner
		begin := time.Now()
		yield := func(ctx context.Context) <-chan time.Duration {
			took := make(chan time.Duration, 1)
			go func() {
				s.yield(ctx)
				took <- time.Since(begin)
			}()
			synctest.Wait()
			return took
		}
		want := func(why string, took <-chan time.Duration, at time.Duration) {
			t.Helper()
			if got := <-took; got != at {
				t.Errorf("%s: went on after %v, want %v", why, got, at)
			}
		}
		want("nothing is on its way", yield(t.Context()), 0)
		s.fly()
		a, b := yield(t.Context()), yield(t.Context())
		time.Sleep(maxYield / 2)
		s.land()
		want("the block has landed", a, maxYield/2)
		want("and for the other reader", b, maxYield/2)
		s.fly()
		want("the disk hangs", yield(t.Context()), maxYield*3/2)
		ctx, cancel := context.WithCancel(t.Context())
		c := yield(ctx)
		cancel()
		want("the reader is gone", c, maxYield*3/2)
	})
}
