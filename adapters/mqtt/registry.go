package mqtt

import (
	"context"
	"fmt"
	"sync"
	"time"

	"isthmus/core"
)

// registry knows who is connected under which client id. Its mutex is a leaf.
type registry struct {
	mu sync.Mutex
	by map[string]*session
}

func (r *registry) init() { r.by = map[string]*session{} }

// takeoverTimeout bounds how long a new connection waits until the old one of its client id is gone.
const takeoverTimeout = 5 * time.Second

// claim makes s the session of its client id. An older one is told so and is gone when claim returns.
// Spec: MQTT5 3.1.4 [MQTT-3.1.4-3]; MQTT3 3.1.4 [MQTT-3.1.4-2]
func (r *registry) claim(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, takeoverTimeout)
	defer cancel()
	for {
		r.mu.Lock()
		old := r.by[s.id]
		if old == nil {
			r.by[s.id] = s
			r.mu.Unlock()
			return nil
		}
		r.mu.Unlock()
		old.stop(errTakenOver)
		select {
		case <-old.gone:
		case <-ctx.Done():
			return fmt.Errorf("client id %q is taken: %w", s.id, core.ErrBusy)
		}
	}
}

func (r *registry) release(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[s.id] == s {
		delete(r.by, s.id)
	}
}

// all appends the sessions of now to dst.
func (r *registry) all(dst []*session) []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.by {
		dst = append(dst, s)
	}
	return dst
}

func (r *registry) stopAll(err error) {
	for _, s := range r.all(nil) {
		s.stop(err)
	}
}
