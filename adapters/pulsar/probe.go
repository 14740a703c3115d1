package pulsar

import (
	"context"
	"errors"
	"time"

	"isthmus/adapters/pulsar/wire"
)

var errDead = errors.New("another client wants what this one holds, and it does not answer")

// maxWaiting bounds the requests of a connection that wait for a probe, each in a goroutine.
const maxWaiting = 100

// waitKey is a request of a client that waits.
type waitKey struct {
	consumer bool
	id       uint64
}

// later runs the rest of a request beside the reader, because it has to wait for a probe. Closing the id cancels it.
func (s *session) later(k waitKey, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.mu.pending[k] = cancel
	s.mu.Unlock()
	s.ops.Go(func() {
		f(ctx)
		s.mu.Lock()
		if ctx.Err() == nil { // else it was forgotten, and the id may stand for the next request by now
			delete(s.mu.pending, k)
			cancel()
		}
		s.mu.Unlock()
		_ = s.out.Flush()
	})
}

// forget cancels and removes a waiting request. Under mu the request's context tells whether it still counts.
func (s *session) forget(k waitKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.mu.pending[k]; ok {
		delete(s.mu.pending, k)
		cancel()
	}
}

func (s *session) waiting(k waitKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.mu.pending[k]
	return ok
}

// alive asks the client for a sign of life and waits for anything that arrives. It runs in another session's goroutine.
// Spec: Pulsar ServerCnx.checkConnectionLiveness: PING the holder, wait 5 s, before a Busy answer
func (s *session) alive(ctx context.Context) bool {
	heard := make(chan struct{})
	s.mu.Lock()
	if s.mu.over {
		s.mu.Unlock()
		return false
	}
	s.mu.waiters = append(s.mu.waiters, heard)
	s.mu.Unlock()
	s.tell(wire.TypePing, nil)
	timer := time.NewTimer(s.srv.cfg.Probe)
	defer timer.Stop()
	select {
	case <-heard: // arrived, or over
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.mu.over
	case <-timer.C:
		return false
	case <-ctx.Done():
		return true // the asker gave up; nobody is thrown out for that
	}
}

// evict ends a session that did not answer. Any goroutine may call it.
func (s *session) evict() { s.out.Fail(errDead) }
