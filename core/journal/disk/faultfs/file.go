package faultfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
)

// file is a handle.
type file struct {
	d      *Disk
	life   int
	name   string
	n      *node
	closed bool // guarded by d.mu
}

// locked calls f with the mutex held, if the handle lives.
func (f *file) locked(do func() error) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	switch {
	case f.d.down || f.life != f.d.life:
		return ErrPower
	case f.closed:
		return fs.ErrClosed
	}
	return do()
}

func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.locked(func() error {
		if off < int64(len(f.n.data)) {
			n = copy(b, f.n.data[off:])
		}
		if n < len(b) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

// WriteAt that fails has written half, as a full disk does.
func (f *file) WriteAt(b []byte, off int64) (n int, err error) {
	err = f.locked(func() error {
		err := f.d.ask("write", f.name)
		switch n = len(b); {
		case errors.Is(err, ErrPower):
		case err != nil:
			n /= 2
		}
		f.n.write(b[:n], off, 0)
		return err
	})
	return n, err
}

// WriteVAt is one write to the disk.
func (f *file) WriteVAt(parts [][]byte, off int64) (int, error) {
	return f.WriteAt(bytes.Join(parts, nil), off)
}

func (f *file) Allocate(size int64) error {
	return f.locked(func() error {
		err := f.d.ask("allocate", f.name)
		if err == nil || errors.Is(err, ErrPower) {
			f.n.write(nil, 0, size)
		}
		return err
	})
}

func (f *file) Sync() error {
	return f.locked(func() error {
		err := f.d.ask("sync", f.name)
		switch {
		case err == nil:
			f.n.sync()
		case !errors.Is(err, ErrPower):
			f.n.lose(luck{f.d.rand, f.d.rand.IntN(5)})
		}
		return err
	})
}

func (f *file) Size() (size int64, err error) {
	err = f.locked(func() error {
		size = int64(len(f.n.data))
		return nil
	})
	return size, err
}

func (f *file) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	return nil
}
