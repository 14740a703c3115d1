package disk

import (
	"errors"
	"path/filepath"
	"strings"
	"time"
)

// rawFile is a file of the right size that is no segment yet.
type rawFile struct {
	path  string
	file  File // nil: there is none
	size  int64
	ready int64 // bytes from its front that were written at least once
}

// ahead is the next segment's file, made ready while the last one fills. Whoever took it out of Journal.ahead owns it: a
// step of preparation for as long as it runs, or the writer. Between steps no goroutine waits, and a journal that nobody
// writes to prepares nothing.
type ahead struct {
	rawFile
	failed bool // the disk is full, or broken: the writer will see for itself
}

const (
	aheadName = "next" + tmpExt
	aheadStep = 1 << 20 // zeros of one step
)

// prepare starts a step of preparation if one is due: when a quarter of a segment is full the next one begins to get ready,
// in step with the blocks appended, so that the zeros come in small portions.
func (j *Journal) prepare(w *writer) {
	begin := w.seg.capacity / 4
	if w.seg.end < begin {
		return
	}
	var a *ahead
	select {
	case a = <-j.ahead:
	default:
		return // a step is under way
	}
	size := w.size
	goal := min(int64(float64(w.seg.end-begin)/float64(w.seg.capacity-begin)*float64(size))+aheadStep, size)
	if !w.zeroesPay(j.opt.Sync) {
		goal = 0
	}
	if a.failed || a.file != nil && (a.ready >= goal || a.ready >= a.size) {
		j.ahead <- a
		return
	}
	j.tasks.Go(func() {
		defer func() { j.ahead <- a }()
		if err := a.step(j, size, goal > 0); err != nil {
			a.failed = true
			j.opt.Log.Warn("next segment not prepared", "journal", j.name, "err", errors.Join(err, a.drop(j.opt.FS)))
		}
	})
}

// zeroesPay tells whether it is worth the bandwidth to write every byte twice. Small records profit much. Large ones do
// while the disk has time; a disk that is busy with them has no time to spare for zeros.
func (w *writer) zeroesPay(mode SyncMode) bool {
	mean := (w.seg.end - headerSize) / max(1, int64(w.seg.next-w.seg.base))
	return mode == Fsync && (mean < prewriteBelow || w.busy < time.Since(w.begun)/2)
}

// step makes the file, or makes some more of it ready.
func (a *ahead) step(j *Journal, size int64, zeroes bool) (err error) {
	if a.file == nil {
		if a.rawFile, err = j.newFile(aheadName, size, size); err != nil {
			return err
		}
	}
	if !zeroes || a.ready >= a.size {
		return nil
	}
	for end := min(a.ready+aheadStep, a.size); a.ready < end; {
		n, err := a.file.WriteAt(zeros[:min(end-a.ready, prewriteChunk)], a.ready)
		if err != nil {
			return err
		}
		a.ready += int64(n)
	}
	return a.file.Sync()
}

// drop gives the file's space back, but for one that was recycled: it still has its name, and the next Open finds it.
func (a *ahead) drop(fsys FS) error {
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	if !strings.HasSuffix(a.path, freeExt) {
		err = errors.Join(err, fsys.Remove(a.path))
	}
	a.rawFile = rawFile{}
	return err
}

// nextFile returns what the next segment is made of: the file that was prepared, else a recycled or a new one.
func (j *Journal) nextFile(w *writer, need int64) (rawFile, error) {
	a := <-j.ahead
	defer func() { j.ahead <- a }()
	a.failed = false
	if a.file != nil && a.size >= need {
		raw := a.rawFile
		a.rawFile = rawFile{}
		w.size = min(max(2*raw.size, w.size), j.opt.SegmentMax)
		return raw, nil
	}
	size := w.nextSize(need, j.opt.SegmentMax)
	if a.file != nil && size <= j.opt.SegmentMax { // too small, and will be for ever
		if err := a.drop(j.opt.FS); err != nil {
			return rawFile{}, err
		}
	}
	return j.newFile(segmentName(w.next)+tmpExt, size, need)
}

// newFile takes a recycled file of about the size, or makes one.
func (j *Journal) newFile(name string, size, need int64) (rawFile, error) {
	if free, ok := j.recycled(size, need); ok {
		f, err := j.opt.FS.Open(free.path, true)
		return rawFile{free.path, f, free.size, free.size}, err
	}
	path := filepath.Join(j.dir, name)
	f, err := j.opt.FS.Create(path)
	if err != nil {
		return rawFile{}, err
	}
	if err := f.Allocate(size); err != nil {
		// A full disk must not get fuller by what could not be used.
		return rawFile{}, errors.Join(err, f.Close(), j.opt.FS.Remove(path))
	}
	return rawFile{path: path, file: f, size: size}, nil
}

// freeFile is a segment that was trimmed and waits to be one again.
type freeFile struct {
	path string
	size int64
}

// recycled takes a file from the free list: not much smaller than size, and large enough.
func (j *Journal) recycled(size, need int64) (freeFile, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := len(j.mu.free) - 1; i >= 0; i-- {
		if f := j.mu.free[i]; f.size <= size && f.size >= max(size/2, need) {
			j.mu.free = append(j.mu.free[:i:i], j.mu.free[i+1:]...)
			return f, true
		}
	}
	return freeFile{}, false
}
