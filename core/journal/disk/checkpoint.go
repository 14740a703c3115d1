package disk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"isthmus/core"
	"isthmus/core/journal"
)

const checkpointExt = ".view"

// CreateCheckpoint implements journal.Checkpoints: the file is written under another name, synced, renamed, and the
// directory synced. The journal's own files are not touched, so no failure here is fatal to it.
func (s *Store) CreateCheckpoint(ctx context.Context, name, file string, write func(io.Writer) error) error {
	err := s.createCheckpoint(ctx, name, file, write)
	if err != nil {
		return fmt.Errorf("checkpoint %s of journal %s: %w", file, name, err)
	}
	return nil
}

func (s *Store) createCheckpoint(ctx context.Context, name, file string, write func(io.Writer) error) error {
	path, err := s.checkpoint(name, file)
	if err != nil {
		return err
	}
	tmp := path + tmpExt
	f, err := s.opt.FS.Create(tmp)
	if err != nil {
		return err
	}
	if err := fillFile(f, write); err != nil {
		return errors.Join(err, s.opt.FS.Remove(tmp))
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(err, s.opt.FS.Remove(tmp))
	}
	if err := s.opt.FS.Rename(tmp, path); err != nil {
		return errors.Join(err, s.opt.FS.Remove(tmp))
	}
	return s.opt.FS.SyncDir(filepath.Dir(path))
}

// fillFile writes, syncs and closes a new file.
func fillFile(f File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(&fileWriter{f: f}, 128<<10)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// fileWriter writes one piece after the other.
type fileWriter struct {
	f  File
	at int64
}

func (w *fileWriter) Write(b []byte) (int, error) {
	n, err := w.f.WriteAt(b, w.at)
	w.at += int64(n)
	return n, err
}

// OpenCheckpoint implements journal.Checkpoints.
func (s *Store) OpenCheckpoint(name, file string) (io.ReadCloser, error) {
	path, err := s.checkpoint(name, file)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s of journal %s: %w", file, name, err)
	}
	f, err := s.opt.FS.Open(path, false)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of journal %s: %w", name, err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return checkpointReader{io.NewSectionReader(f, 0, size), f}, nil
}

type checkpointReader struct {
	io.Reader
	io.Closer
}

// ListCheckpoints implements journal.Checkpoints.
func (s *Store) ListCheckpoints(name string) ([]string, error) {
	names, err := s.opt.FS.ReadDir(filepath.Join(s.opt.Dir, escape(name)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoints of journal %s: %w", name, err)
	}
	var files []string
	for _, n := range names {
		if file, ok := strings.CutSuffix(n, checkpointExt); ok && journal.ValidCheckpointName(file) {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files, nil
}

// RemoveCheckpoint implements journal.Checkpoints. A power loss may bring the file back: nobody refers to it.
func (s *Store) RemoveCheckpoint(name, file string) error {
	path, err := s.checkpoint(name, file)
	if err == nil {
		err = s.opt.FS.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove checkpoint %s of journal %s: %w", file, name, err)
	}
	return nil
}

func (s *Store) checkpoint(name, file string) (string, error) {
	if name == "" || !journal.ValidCheckpointName(file) {
		return "", core.ErrInvalid
	}
	return filepath.Join(s.opt.Dir, escape(name), file+checkpointExt), nil
}
