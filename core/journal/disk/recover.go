package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"isthmus/core/journal"
)

// recovery finds the state of a journal from its directory. Only a segment without a footer is
// scanned: that is the last one, unless somebody was at the files.
type recovery struct {
	opt     Options
	dir     string
	durable journal.Seq

	segments []*segment
	free     []freeFile
	file     File // of the last segment, when it is not sealed
	index    *indexBuilder
}

func (r *recovery) run(ctx context.Context) (err error) {
	defer func() {
		if err != nil && r.file != nil {
			err = errors.Join(err, r.file.Close())
		}
	}()
	bases, err := r.list()
	if err != nil {
		return err
	}
	for i, base := range bases {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.segment(base, i == len(bases)-1); err != nil {
			return err
		}
	}
	return r.checkEnd()
}

// list sorts the directory's files; what a crash left half made is removed.
func (r *recovery) list() (bases []journal.Seq, err error) {
	names, err := r.opt.FS.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		path := filepath.Join(r.dir, name)
		if base, ok := segmentBase(name); ok {
			bases = append(bases, base)
		} else if size := r.freeSize(path); size > 0 && len(r.free) < freeSegments {
			r.free = append(r.free, freeFile{path, size})
		} else if strings.HasSuffix(name, freeExt) || strings.HasSuffix(name, tmpExt) {
			if err := r.opt.FS.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(bases)
	return bases, nil
}

// freeSize is the size of a file that can be recycled, 0 of any other.
func (r *recovery) freeSize(path string) int64 {
	if !strings.HasSuffix(path, freeExt) {
		return 0
	}
	f, err := r.opt.FS.Open(path, false)
	if err != nil {
		return 0
	}
	defer f.Close()
	if size, err := f.Size(); err == nil && r.opt.reusable(size) {
		return size
	}
	return 0
}

// segment takes the next file into the chain.
func (r *recovery) segment(base journal.Seq, last bool) error {
	if n := len(r.segments); n > 0 && r.segments[n-1].next != base {
		s := r.segments[n-1]
		if s.thin && base < s.next { // became one with its neighbour, and a crash left it
			return r.opt.FS.Remove(segmentPath(r.dir, base))
		}
		return s.damage(s.end, s.next, fmt.Sprintf("broken or missing, and the next segment begins with block %d", base))
	}
	path := segmentPath(r.dir, base)
	f, err := r.opt.FS.Open(path, true)
	if err != nil {
		return err
	}
	s, err := loadSegment(f, path, base)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.segments = append(r.segments, s)
	if s.sealed {
		return f.Close()
	}
	index, err := r.scan(f, s)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if last {
		r.file, r.index = f, index
		return r.settle()
	}
	return errors.Join(r.reseal(f, s, index), f.Close())
}

// reseal heals a segment that has all its records and no footer. If records are missing, the next
// step of the chain says so.
func (r *recovery) reseal(f File, s *segment, index *indexBuilder) error {
	r.opt.Log.Warn("segment without a good footer", "file", s.path, "position", s.capacity-footerSize, "next", uint64(s.next))
	n, err := s.seal(f, index)
	if err == nil {
		s.sealedBy(index, n)
	}
	return err
}

// scan walks the records of a segment up to the first that is not whole, and makes sure that nothing
// whole comes after that.
func (r *recovery) scan(f File, s *segment) (*indexBuilder, error) {
	w := window{f: f, chunk: scanChunk, limit: s.capacity - footerSize}
	index := newIndexBuilder(r.opt.Hashes)
	for {
		b, size, why, err := w.record(s, s.end, s.next)
		if err != nil {
			return nil, err
		}
		if why == "" {
			block, err := journal.Header(b)
			if err != nil {
				return nil, s.damage(s.end, s.next, err.Error())
			}
			index.add(s.next, s.end, block)
			s.end, s.next = s.end+size, s.next+1
			continue
		}
		if err := r.endOf(f, &w, s, why); err != nil {
			return nil, err
		}
		return index, nil
	}
}

// endOf decides whether what is not whole at the end of s is a torn tail or damage.
func (r *recovery) endOf(f File, w *window, s *segment, why string) error {
	at, seq, err := w.resync(s)
	switch {
	case err != nil:
		return err
	case seq == 0 && (why == whyNothing || s.next <= r.durable): // the end, or checkEnd has a word to say
		return nil
	case seq == 0:
		r.opt.Log.Warn("torn tail cut", "file", s.path, "position", s.end, "seq", uint64(s.next), "reason", why)
		return nil
	case r.opt.Sync == Interval && s.next > r.durable:
		// Power was lost within an interval: the disk had its own order for what was not synced.
		r.opt.Log.Warn("blocks lost that were not synced", "file", s.path, "position", s.end, "seq", uint64(s.next), "reason", why)
		return wipe(f, s.end, s.capacity)
	default:
		return s.damage(s.end, s.next, fmt.Sprintf("%s, and block %d at byte %d is whole", why, seq, at))
	}
}

// wipe makes sure that nothing from pos on is ever taken for a record.
func wipe(f File, pos, end int64) error {
	for pos < end {
		n, err := f.WriteAt(zeros[:min(end-pos, prewriteChunk)], pos)
		if err != nil {
			return err
		}
		pos += int64(n)
	}
	return f.Sync()
}

// resync looks for a whole record of this segment from its end on.
func (w *window) resync(s *segment) (at int64, seq journal.Seq, err error) {
	for pos := s.end; pos+frameHeader <= w.limit; {
		n := min(w.limit-pos, scanChunk)
		b, err := w.get(pos, n)
		if err != nil {
			return 0, 0, err
		}
		i := nextGeneration(b, s.generation)
		if i < 0 {
			pos += max(8, (n-frameHeader)&^7)
			continue
		}
		pos += int64(i)
		f := parseFrame(b[i:])
		if _, _, why, err := w.record(s, pos, f.seq); err != nil || why == "" {
			return pos, f.seq, err
		}
		pos += 8
	}
	return 0, 0, nil
}

// nextGeneration finds what could be a frame of this generation, -1: none.
func nextGeneration(b []byte, generation uint64) int {
	for i := 0; i+frameHeader <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i+16:]) == generation {
			return i
		}
	}
	return -1
}

// settle writes the records beyond durable once more and syncs: after a failed fsync the page cache
// shows records as whole and clean that never reached the disk.
func (r *recovery) settle() error {
	s := r.segments[len(r.segments)-1]
	if r.durable+1 >= s.next {
		return nil
	}
	x := r.index.index
	pos := int64(headerSize)
	if len(x.stretches) > 0 {
		pos = x.stretches[x.find(max(r.durable+1, s.base))].pos
	}
	w := window{f: r.file, chunk: scanChunk, limit: s.end}
	for pos < s.end {
		b, err := w.get(pos, min(s.end-pos, scanChunk))
		if err != nil {
			return err
		}
		if _, err := r.file.WriteAt(b, pos); err != nil {
			return err
		}
		pos += int64(len(b))
	}
	return r.file.Sync()
}

// checkEnd holds the journal to what the caller knows to have been durable.
func (r *recovery) checkEnd() error {
	if n := len(r.segments); n > 0 {
		if s := r.segments[n-1]; s.next <= r.durable {
			return s.damage(s.end, s.next, fmt.Sprintf("broken or missing, though durable up to block %d", r.durable))
		}
		return nil
	}
	if r.durable > 0 {
		return &journal.Damage{Where: r.dir, Seq: 1, Why: fmt.Sprintf("no segment, though durable up to block %d", r.durable)}
	}
	return nil
}
