package disk

import (
	"path/filepath"

	"isthmus/core/journal"
)

// thinFile is a thinned segment being written.
type thinFile struct {
	path  string
	file  File
	seg   *segment
	index *indexBuilder
	buf   []byte // not written yet
}

func newThinFile(j *Journal, group []*segment) (*thinFile, error) {
	path := filepath.Join(j.dir, "thin"+tmpExt)
	f, err := j.opt.FS.Create(path)
	if err != nil {
		return nil, err
	}
	s := newSegment(j.dir, group[0].base, 0)
	s.thin, s.next = true, group[len(group)-1].next
	return &thinFile{path: path, file: f, seg: s, index: newIndexBuilder(j.opt.Hashes)}, nil
}

func (t *thinFile) add(seq journal.Seq, block []byte) error {
	b, err := journal.Header(block)
	if err != nil {
		return err
	}
	t.index.add(seq, t.seg.end, b)
	t.buf = appendFrame(t.buf, t.seg.generation, seq, block)
	t.seg.end += frameSize(len(block))
	if len(t.buf) < readChunk {
		return nil
	}
	return t.write()
}

func (t *thinFile) write() error {
	_, err := t.file.WriteAt(t.buf, t.seg.end-int64(len(t.buf)))
	t.buf = t.buf[:0]
	return err
}

// finish writes the rest, the header last, and syncs.
func (t *thinFile) finish(epoch uint64) error {
	if err := t.write(); err != nil {
		return err
	}
	t.index.flush()
	raw := t.index.index.encode()
	t.seg.capacity = t.seg.end + int64(len(raw)) + footerSize
	t.seg.sealedBy(t.index, int64(len(raw)))
	raw = append(raw, t.seg.footer(t.seg.indexLen, t.seg.time)...)
	if _, err := t.file.WriteAt(raw, t.seg.end); err != nil {
		return err
	}
	if _, err := t.file.WriteAt(t.seg.header(epoch), 0); err != nil {
		return err
	}
	return t.file.Sync()
}
