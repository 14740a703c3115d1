package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

const damagedExt = ".damaged"

// Repair makes the journal whole again without the blocks that cannot be had: each file that is damaged is kept beside the
// new one, as FILE.damaged. The journal is as Inspect has found it, and nobody has it open.
func (s *Store) Repair(ctx context.Context, in *Inspection) error {
	if err := s.opt.FS.MkdirAll(in.dir); err != nil {
		return err
	}
	for _, x := range in.rewrite {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.rewrite(in, x); err != nil {
			return fmt.Errorf("repair %s: %w", x.path, err)
		}
	}
	if in.fence {
		path := filepath.Join(in.dir, fenceName)
		if err := s.keepDamaged(path); err != nil {
			return err
		}
		if err := s.opt.FS.Remove(path); err != nil {
			return err
		}
		if err := raiseFence(s.opt.FS, in.dir, max(in.Epoch, 1)); err != nil {
			return err
		}
	}
	return s.opt.FS.SyncDir(in.dir)
}

// rewrite makes a thinned segment of the whole records of one: Seqs may be missing there.
func (s *Store) rewrite(in *Inspection, x *inspected) error {
	var from File
	if x.next == x.base { // it holds nothing, and the next one will have its name
		if err := s.keepDamaged(x.path); err != nil {
			return err
		}
		return s.opt.FS.Remove(x.path)
	}
	if !x.missing {
		if err := s.keepDamaged(x.path); err != nil {
			return err
		}
		var err error
		if from, err = s.opt.FS.Open(x.path, false); err != nil {
			return err
		}
		defer from.Close()
	}
	path := filepath.Join(in.dir, "repair"+tmpExt)
	f, err := s.opt.FS.Create(path)
	if err != nil {
		return err
	}
	seg := newSegment(in.dir, x.base, 0)
	seg.thin, seg.next = true, x.next
	out := &thinFile{path: path, file: f, seg: seg, index: newIndexBuilder(s.opt.Hashes)}
	w := window{f: from, chunk: readChunk}
	for _, sp := range x.spots {
		w.limit = sp.pos + sp.size
		b, err := w.get(sp.pos, sp.size)
		if err == nil {
			fr := parseFrame(b)
			err = out.add(sp.seq, b[frameHeader:][:fr.length])
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(out.finish(max(in.Epoch, 1)), f.Close()); err != nil {
		return err
	}
	if err := s.opt.FS.Rename(path, x.path); err != nil {
		return err
	}
	return s.opt.FS.SyncDir(in.dir)
}

// keepDamaged copies a file to FILE.damaged, or FILE.2.damaged, if it was damaged before.
func (s *Store) keepDamaged(path string) error {
	kept := path + damagedExt
	for n := 2; ; n++ {
		f, err := s.opt.FS.Open(kept, false)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		kept = fmt.Sprintf("%s.%d%s", path, n, damagedExt)
	}
	from, err := s.opt.FS.Open(path, false)
	if err != nil {
		return err
	}
	defer from.Close()
	size, err := from.Size()
	if err != nil {
		return err
	}
	to, err := s.opt.FS.Create(kept + tmpExt)
	if err != nil {
		return err
	}
	err = fillFile(to, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(from, 0, size))
		return err
	})
	if err != nil {
		return err
	}
	return s.opt.FS.Rename(kept+tmpExt, kept)
}
