package disk

import (
	"errors"
	"io"
	"os"
)

// FS is what this package asks of a file system. The seam exists for fault injection.
type FS interface {
	MkdirAll(dir string) error
	ReadDir(dir string) (names []string, err error)
	Create(path string) (File, error) // truncates
	Open(path string, write bool) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	WriteVAt(parts [][]byte, off int64) (int, error) // as WriteAt of all parts joined
	io.Closer
	Size() (int64, error)
	Allocate(size int64) error // reserves the space and sets the size
	Sync() error               // data, and the metadata needed to find it
}

type osFS struct{}

func (osFS) MkdirAll(dir string) error    { return os.MkdirAll(dir, 0o750) }
func (osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (osFS) Remove(path string) error     { return os.Remove(path) }

func (osFS) ReadDir(dir string) ([]string, error) {
	es, err := os.ReadDir(dir)
	names := make([]string, 0, len(es))
	for _, e := range es {
		names = append(names, e.Name())
	}
	return names, err
}

func (osFS) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Open(path string, write bool) (File, error) {
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

type osFile struct{ *os.File }

func (f osFile) WriteVAt(parts [][]byte, off int64) (int, error) { return writeV(f.File, parts, off) }

// writeParts writes what is left of parts after done bytes.
func writeParts(f io.WriterAt, parts [][]byte, off int64, done int) (n int, err error) {
	for _, p := range parts {
		if skip := min(done-n, len(p)); skip > 0 {
			n += skip
			p = p[skip:]
		}
		if len(p) > 0 {
			m, err := f.WriteAt(p, off+int64(n))
			if n += m; err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f osFile) Allocate(size int64) error { return allocate(f.File, size) }
func (f osFile) Sync() error               { return datasync(f.File) }
