//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"isthmus/core"
)

// lockDataDir makes the data folder if it is not there, durably up to its first parent that was, and takes it for this
// process: two gateways on one folder would fence each other's journals and tear the metadata.
func lockDataDir(dir string) (release func() error, err error) {
	if err := makeDurably(dir); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("in use by another process: %w", core.ErrUnavailable)
		}
		return nil, errors.Join(fmt.Errorf("data folder %s: %w", dir, err), f.Close())
	}
	return f.Close, nil
}

// makeDurably is os.MkdirAll, with the names on the disk on return.
func makeDurably(dir string) error {
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDurably(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	d, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
