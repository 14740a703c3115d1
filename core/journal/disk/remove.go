package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"isthmus/core"
)

// Remove implements journal.Remover. The fence goes last: while anything is left the directory still says whose it was.
func (s *Store) Remove(ctx context.Context, name string) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.opened(name) != nil {
		return fmt.Errorf("remove journal %s, which is open: %w", name, core.ErrBusy)
	}
	if err := s.remove(filepath.Join(s.opt.Dir, escape(name))); err != nil {
		return fmt.Errorf("remove journal %s: %w", name, err)
	}
	return nil
}

func (s *Store) remove(dir string) error {
	fs := s.opt.FS
	names, err := fs.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range names {
		if n == fenceName {
			continue
		}
		if err := fs.Remove(filepath.Join(dir, n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := fs.Remove(filepath.Join(dir, fenceName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := fs.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fs.SyncDir(s.opt.Dir)
}
