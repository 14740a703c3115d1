package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"isthmus/core/journal"
)

// Trim implements journal.Journal: whole segments that are sealed, never the last one.
func (j *Journal) Trim(ctx context.Context, before journal.Seq) error {
	release, err := j.exclusive(ctx)
	if err != nil {
		return err
	}
	defer release()
	for {
		if err := errors.Join(j.stopped(), ctx.Err()); err != nil {
			return err
		}
		s := j.detach(before)
		if s == nil {
			return nil
		}
		if err := j.discard(s); err != nil {
			if j.stopped() == nil {
				j.reattach(s)
			}
			return fmt.Errorf("trim journal %s: %w", j.name, err)
		}
	}
}

func (j *Journal) detach(before journal.Seq) *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.mu.segments) < 2 || j.mu.segments[0].next > before || !j.mu.segments[0].sealed {
		return nil
	}
	s := j.mu.segments[0]
	s.dropped.Store(true)
	j.mu.segments = j.mu.segments[1:]
	return s
}

func (j *Journal) reattach(s *segment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.dropped.Store(false)
	j.mu.segments = append([]*segment{s}, j.mu.segments...)
}

// discard frees or deletes the file, durably, before the next one may follow: a chain with a hole
// would be taken for damage. So a sync that fails here is fatal too.
func (j *Journal) discard(s *segment) error {
	free, err := j.unlink(s)
	if err != nil {
		return err
	}
	if err := j.opt.FS.SyncDir(j.dir); err != nil {
		return j.fail(err)
	}
	if free != "" {
		j.mu.Lock()
		j.mu.free = append(j.mu.free, freeFile{free, s.capacity})
		j.mu.Unlock()
	}
	return nil
}

// unlink takes the file out of the log. free is its new name, if it is kept.
func (j *Journal) unlink(s *segment) (free string, err error) {
	j.mu.Lock()
	last := j.mu.segments[len(j.mu.segments)-1].capacity
	keep := !s.thin && j.opt.reusable(s.capacity) && 2*s.capacity >= min(last, j.opt.SegmentMax) && len(j.mu.free) < freeSegments
	j.mu.Unlock()
	if keep {
		free = filepath.Join(j.dir, fmt.Sprintf("%020d%s", s.base, freeExt))
		return free, j.opt.FS.Rename(s.path, free)
	}
	return "", j.opt.FS.Remove(s.path)
}
