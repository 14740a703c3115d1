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
	if err := s.take(ctx, name); err != nil {
		return err
	}
	defer s.leave(name)
	if s.opened(name) != nil {
		return fmt.Errorf("remove journal %s, which is open: %w", name, core.ErrBusy)
	}
	dir := filepath.Join(s.opt.Dir, escape(name))
	known := <-s.dirs
	delete(known, dir)
	s.dirs <- known
	if err := s.remove(dir); err != nil {
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
