package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"isthmus/core"
	"isthmus/core/journal"
)

// OnCheckpoint has f called before each CreateCheckpoint, outside of all locks. It may block; its error fails the call.
// nil ends it.
func (s *Store) OnCheckpoint(f func(name, file string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCheckpoint = f
}

// CreateCheckpoint implements journal.Checkpoints.
func (s *Store) CreateCheckpoint(ctx context.Context, name, file string, write func(io.Writer) error) error {
	if !journal.ValidCheckpointName(file) {
		return fmt.Errorf("checkpoint %q of journal %s: %w", file, name, core.ErrInvalid)
	}
	s.mu.Lock()
	hook := s.onCheckpoint
	s.mu.Unlock()
	if hook != nil {
		if err := hook(name, file); err != nil {
			return fmt.Errorf("checkpoint %s of journal %s: %w", file, name, err)
		}
	}
	var b bytes.Buffer
	err := write(&b)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s of journal %s: %w", file, name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checkpoints[name] == nil {
		s.checkpoints[name] = map[string][]byte{}
	}
	s.checkpoints[name][file] = b.Bytes()
	return nil
}

// OpenCheckpoint implements journal.Checkpoints.
func (s *Store) OpenCheckpoint(name, file string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.checkpoints[name][file]
	if !ok {
		return nil, fmt.Errorf("checkpoint %s of journal %s: %w", file, name, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// ListCheckpoints implements journal.Checkpoints.
func (s *Store) ListCheckpoints(name string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.checkpoints[name])), nil
}

// RemoveCheckpoint implements journal.Checkpoints.
func (s *Store) RemoveCheckpoint(name, file string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.checkpoints[name], file)
	return nil
}
