package memory

import (
	"context"
	"fmt"

	"isthmus/core"
)

// OnRemove has f called before each Remove, outside of all locks; its error fails the call. nil ends it.
func (s *Store) OnRemove(f func(name string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onRemove = f
}

// Remove implements journal.Remover.
func (s *Store) Remove(ctx context.Context, name string) error {
	s.mu.Lock()
	hook := s.onRemove
	s.mu.Unlock()
	if hook != nil {
		if err := hook(name); err != nil {
			return fmt.Errorf("remove journal %s: %w", name, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.journals[name]; l != nil && l.owner != nil && !l.owner.closed {
		return fmt.Errorf("remove journal %s, which is open: %w", name, core.ErrBusy)
	}
	delete(s.journals, name)
	delete(s.checkpoints, name)
	return ctx.Err()
}

// Has tells whether there is a journal of this name.
func (s *Store) Has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journals[name] != nil
}
