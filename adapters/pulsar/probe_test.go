package pulsar

import (
	"context"
	"testing"
)

// A request that was cancelled and ends late does not take the next one of the same id with it.
func TestLateEndOfACancelledRequest(t *testing.T) {
	b := newBed(t, setup{})
	s, _ := b.session(t)
	k := waitKey{consumer: true, id: 1}
	release := make(chan struct{})
	s.later(k, func(context.Context) { <-release })
	s.forget(k) // CLOSE_CONSUMER
	next, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.mu.Lock()
	s.mu.pending[k] = cancel // SUBSCRIBE again
	s.mu.Unlock()
	close(release)
	s.ops.Wait()
	if next.Err() != nil || !s.waiting(k) {
		t.Error("the next request was cancelled")
	}
}
