package disk

import (
	"sync"
	"sync/atomic"
)

// faultFS asks before each operation whether it may be done.
type faultFS struct {
	osFS
	mu     sync.Mutex
	before func(op, path string) error
	read   atomic.Int64 // bytes
	syncs  atomic.Int64
}

func (f *faultFS) ask(op, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before == nil {
		return nil
	}
	return f.before(op, path)
}

func (f *faultFS) set(before func(op, path string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

// failNth lets the n-th operation that can fail, and every one after it, fail with err.
func (f *faultFS) failNth(n int, err error) (failed *atomic.Bool) {
	failed = new(atomic.Bool)
	f.set(func(string, string) error {
		if n--; n <= 0 {
			failed.Store(true)
			return err
		}
		return nil
	})
	return failed
}

func (f *faultFS) Create(path string) (File, error) {
	if err := f.ask("create", path); err != nil {
		return nil, err
	}
	return f.wrap(path)(f.osFS.Create(path))
}

func (f *faultFS) Open(path string, write bool) (File, error) {
	return f.wrap(path)(f.osFS.Open(path, write))
}

func (f *faultFS) wrap(path string) func(File, error) (File, error) {
	return func(file File, err error) (File, error) {
		if err != nil {
			return nil, err
		}
		return &faultFile{file, f, path}, nil
	}
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.ask("rename", from); err != nil {
		return err
	}
	return f.osFS.Rename(from, to)
}

func (f *faultFS) SyncDir(dir string) error {
	if err := f.ask("syncdir", dir); err != nil {
		return err
	}
	return f.osFS.SyncDir(dir)
}

type faultFile struct {
	File
	fs   *faultFS
	path string
}

func (f *faultFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	f.fs.read.Add(int64(n))
	return n, err
}

// WriteAt that fails has written half, as a full disk does.
func (f *faultFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.fs.ask("write", f.path); err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off)
		return n, err
	}
	return f.File.WriteAt(b, off)
}

func (f *faultFile) Allocate(size int64) error {
	if err := f.fs.ask("allocate", f.path); err != nil {
		return err
	}
	return f.File.Allocate(size)
}

func (f *faultFile) Sync() error {
	f.fs.syncs.Add(1)
	if err := f.fs.ask("sync", f.path); err != nil {
		return err
	}
	return f.File.Sync()
}
