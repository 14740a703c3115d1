package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"isthmus/core/journal"
)

// Thin implements journal.Thinner for segments that are sealed and lie wholly in the range, the last one never. A segment
// of which more than half is kept stays as it is; small results of neighbours become one file. It reads every segment of
// the range, those that it rewrites twice, so ask for a range where much is gone. It returns the bytes of files freed.
func (j *Journal) Thin(ctx context.Context, from, before journal.Seq, keep journal.Keep) (freed int64, err error) {
	release, err := j.exclusive(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	t := thinning{j: j, ctx: ctx, keep: keep}
	for _, s := range j.thinnable(from, before) {
		if err = t.consider(s); err != nil {
			break
		}
	}
	if err == nil {
		err = t.flush()
	}
	if err != nil {
		err = fmt.Errorf("thin journal %s: %w", j.name, err)
	}
	return t.freed, err
}

// Thinned implements journal.Thinner.
func (j *Journal) Thinned() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.mu.segments, func(s *segment) bool { return s.thin })
}

// exclusive waits until nobody drops or replaces segments, and lets nobody else, nor the end of the handle, until released.
func (j *Journal) exclusive(ctx context.Context) (release func(), err error) {
	select {
	case j.trimming <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := errors.Join(j.stopped(), ctx.Err()); err != nil {
		<-j.trimming
		return nil, err
	}
	return func() { <-j.trimming }, nil
}

func (j *Journal) thinnable(from, before journal.Seq) (ss []*segment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, s := range j.mu.segments {
		if s.sealed && s.base >= from && s.next <= before && i+1 < len(j.mu.segments) {
			ss = append(ss, s)
		}
	}
	return ss
}

// thinning is one call of Thin. group are neighbours that will become one file, of kept bytes of records.
type thinning struct {
	j     *Journal
	ctx   context.Context
	keep  journal.Keep
	freed int64

	group   []*segment
	kept    int64
	scratch []byte
}

// consider takes the segment into the group, or ends the group with it.
func (t *thinning) consider(s *segment) error {
	kept := int64(0)
	err := t.each(s, func(_ journal.Seq, block []byte) error {
		kept += frameSize(len(block))
		return nil
	})
	if err != nil {
		return err
	}
	most := t.j.opt.SegmentMin
	if n := len(t.group); n > 0 && (t.kept+kept > most || t.group[n-1].next != s.base) {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if small := s.thin && kept <= most/2; !small && kept > (s.end-headerSize)/2 {
		return t.flush()
	}
	t.group, t.kept = append(t.group, s), t.kept+kept
	return nil
}

// each yields what is kept of the blocks of a segment; a block is valid during the call.
func (t *thinning) each(s *segment, f func(seq journal.Seq, block []byte) error) error {
	file, err := t.j.opt.FS.Open(s.path, false)
	if err != nil {
		return err
	}
	defer file.Close()
	w := window{f: file, chunk: readChunk, limit: s.end}
	for pos, seq := int64(headerSize), s.base; pos < s.end; seq++ {
		if err := errors.Join(t.ctx.Err(), t.j.stopped()); err != nil {
			return err
		}
		raw, size, why, err := w.record(s, pos, seq)
		if err != nil {
			return err
		}
		if why != "" {
			return s.damage(pos, seq, why)
		}
		b, err := journal.Header(raw)
		if err != nil {
			return s.damage(pos, seq, err.Error())
		}
		pos, seq = pos+size, w.seq
		thin, n, err := b.Thin(t.scratch[:0], t.keep)
		if err != nil {
			return err
		}
		if t.scratch = thin; n > 0 {
			if err := f(seq, thin); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush rewrites the group. Nothing is done for one segment that stays the same.
func (t *thinning) flush() error {
	group, kept := t.group, t.kept
	t.group, t.kept = nil, 0
	if len(group) == 0 || len(group) == 1 && kept == group[0].end-headerSize {
		return nil
	}
	out, err := newThinFile(t.j, group)
	if err != nil {
		return err
	}
	for _, s := range group {
		if err = t.each(s, out.add); err != nil {
			break
		}
	}
	if err == nil {
		err = out.finish(t.j.epoch)
	}
	if err = errors.Join(err, out.file.Close()); err != nil {
		return errors.Join(err, t.j.opt.FS.Remove(out.path))
	}
	if err = t.j.Sync(t.ctx); err != nil { // a block that made the caller let go may be in no file yet
		return errors.Join(err, t.j.opt.FS.Remove(out.path))
	}
	for _, s := range group {
		t.freed += s.capacity
	}
	t.freed -= out.seg.capacity
	return t.j.exchange(group, out)
}

// exchange puts the thinned file in place of the first segment of its group, and takes the others away. A crash leaves the
// old ones, or the new one and some of the old behind it, which recovery knows by their Seqs. A reader that holds an old
// file goes on with it, or finds that it is gone and looks again.
func (j *Journal) exchange(group []*segment, out *thinFile) error {
	for _, s := range group {
		s.dropped.Store(true)
	}
	if err := j.opt.FS.Rename(out.path, out.seg.path); err != nil {
		for _, s := range group {
			s.dropped.Store(false)
		}
		return errors.Join(err, j.opt.FS.Remove(out.path))
	}
	j.mu.Lock()
	ss := make([]*segment, 0, len(j.mu.segments))
	for _, s := range j.mu.segments {
		switch {
		case s == group[0]:
			ss = append(ss, out.seg)
		case !s.dropped.Load():
			ss = append(ss, s)
		}
	}
	j.mu.segments = ss
	j.mu.Unlock()
	if err := j.opt.FS.SyncDir(j.dir); err != nil {
		return j.fail(err)
	}
	for _, s := range group[1:] {
		if err := j.discard(s); err != nil {
			return err
		}
	}
	return nil
}
