package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"isthmus/core/journal"
)

// A segment file begins with its header, little-endian:
//
//	 0  magic     8  generation   16  Seq of the first block   24  capacity   32  epoch
//	40  of a thinned segment next Seq, else 0                  60  CRC32C
//
// The first block of a thinned segment may have a higher Seq, and its Seqs may have gaps.
//
// The records follow. A sealed segment has its index after the last record, and a footer in the last
// bytes of the file:
//
//	 0  magic     8  generation   16  next Seq   24  end of the records   32  length of the index
//	40  greatest commit time      60  CRC32C
const (
	segmentMagic = "ISTHSEG\x01"
	footerMagic  = "ISTHEND\x01"
	headerSize   = 64
	footerSize   = 64
	segmentExt   = ".seg"
	freeExt      = ".free"
	tmpExt       = ".tmp"
)

// segment is one file of the log. The fields up to base never change; the journal's mutex guards the
// others that are not atomic.
type segment struct {
	path       string
	generation uint64
	capacity   int64
	base       journal.Seq
	thin       bool // next never changes then, and Seqs have gaps

	sealed   bool
	next     journal.Seq
	end      int64 // of the records
	indexLen int64
	time     int64 // greatest commit time

	open    index                  // of a segment that is not sealed: the stretches that are complete
	tail    stretch                // and the one that is not
	index   atomic.Pointer[index]  // of a sealed one, when it was read lately
	summary atomic.Pointer[[]mark] // of a sealed one, once it was read
	dropped atomic.Bool            // trimmed: its file may be gone, or have another life
}

func segmentName(base journal.Seq) string { return fmt.Sprintf("%020d%s", base, segmentExt) }

func segmentPath(dir string, base journal.Seq) string { return filepath.Join(dir, segmentName(base)) }

func segmentBase(name string) (journal.Seq, bool) {
	digits, ok := strings.CutSuffix(name, segmentExt)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return journal.Seq(n), err == nil && n > 0
}

func (s *segment) header(epoch uint64) []byte {
	b := make([]byte, headerSize)
	copy(b, segmentMagic)
	binary.LittleEndian.PutUint64(b[8:], s.generation)
	binary.LittleEndian.PutUint64(b[16:], uint64(s.base))
	binary.LittleEndian.PutUint64(b[24:], uint64(s.capacity))
	binary.LittleEndian.PutUint64(b[32:], epoch)
	if s.thin {
		binary.LittleEndian.PutUint64(b[40:], uint64(s.next))
	}
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

func (s *segment) footer(indexLen, time int64) []byte {
	b := make([]byte, footerSize)
	copy(b, footerMagic)
	binary.LittleEndian.PutUint64(b[8:], s.generation)
	binary.LittleEndian.PutUint64(b[16:], uint64(s.next))
	binary.LittleEndian.PutUint64(b[24:], uint64(s.end))
	binary.LittleEndian.PutUint64(b[32:], uint64(indexLen))
	binary.LittleEndian.PutUint64(b[40:], uint64(time))
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

func (s *segment) damage(pos int64, seq journal.Seq, why string) error {
	return &journal.Damage{Where: s.path, Position: pos, Seq: seq, Why: why}
}

// loadSegment reads the header, and the footer if the segment is sealed.
func loadSegment(f File, path string, base journal.Seq) (*segment, error) {
	s := &segment{path: path, base: base, next: base, end: headerSize}
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size < headerSize+footerSize {
		return nil, s.damage(size, base, "file too short")
	}
	b := make([]byte, headerSize)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	s.generation = binary.LittleEndian.Uint64(b[8:])
	s.capacity = int64(binary.LittleEndian.Uint64(b[24:]))
	if string(b[:8]) != segmentMagic || crc32.Checksum(b[:60], castagnoli) != binary.LittleEndian.Uint32(b[60:]) ||
		journal.Seq(binary.LittleEndian.Uint64(b[16:])) != base {
		return nil, s.damage(0, base, "broken segment header")
	}
	if s.capacity != size {
		return nil, s.damage(size, 0, fmt.Sprintf("file of %d bytes, made with %d", size, s.capacity))
	}
	thinTo := journal.Seq(binary.LittleEndian.Uint64(b[40:]))
	if err := s.loadFooter(f); err != nil {
		return nil, err
	}
	if s.thin = thinTo != 0; s.thin && (!s.sealed || s.next != thinTo) {
		return nil, s.damage(s.capacity-footerSize, base, "broken footer of a thinned segment")
	}
	return s, nil
}

// loadFooter leaves the segment unsealed when the footer is not whole: the caller scans it then.
func (s *segment) loadFooter(f File) error {
	b := make([]byte, footerSize)
	if _, err := f.ReadAt(b, s.capacity-footerSize); err != nil {
		return err
	}
	next, end := journal.Seq(binary.LittleEndian.Uint64(b[16:])), int64(binary.LittleEndian.Uint64(b[24:]))
	length := int64(binary.LittleEndian.Uint64(b[32:]))
	if string(b[:8]) != footerMagic || binary.LittleEndian.Uint64(b[8:]) != s.generation ||
		crc32.Checksum(b[:60], castagnoli) != binary.LittleEndian.Uint32(b[60:]) {
		return nil
	}
	room := s.capacity - footerSize
	if next < s.base || end < headerSize || end > room || length < 0 || length > room-end {
		return nil
	}
	s.sealed, s.next, s.end, s.indexLen = true, next, end, length
	s.time = int64(binary.LittleEndian.Uint64(b[40:]))
	return nil
}

func newSegment(dir string, base journal.Seq, capacity int64) *segment {
	return &segment{
		path: segmentPath(dir, base), generation: rand.Uint64(), capacity: capacity,
		base: base, next: base, end: headerSize,
	}
}

// createSegment puts a file into place as a segment. Its name appears only when its header is durable, so a file of that
// name always has a good header.
func createSegment(fsys FS, dir string, raw *rawFile, base journal.Seq, epoch uint64) (*segment, error) {
	s := newSegment(dir, base, raw.size)
	_, err := raw.file.WriteAt(s.header(epoch), 0)
	if err == nil {
		err = raw.file.Sync()
	}
	if err == nil {
		err = fsys.Rename(raw.path, s.path)
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(err, raw.file.Close())
	}
	return s, nil
}

// seal writes index and footer; only the footer makes the segment a sealed one.
func (s *segment) seal(f File, b *indexBuilder) (indexLen int64, err error) {
	b.flush()
	raw := b.index.encode()
	indexLen = int64(len(raw))
	if s.end+indexLen+footerSize > s.capacity {
		return 0, fmt.Errorf("segment %s: index of %d bytes does not fit", s.path, indexLen)
	}
	if _, err := f.WriteAt(raw, s.end); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	if _, err := f.WriteAt(s.footer(indexLen, b.time), s.capacity-footerSize); err != nil {
		return 0, err
	}
	return indexLen, f.Sync()
}

// seal seals a segment that is full, and lets readers know. The file is closed then, whatever happened.
func (j *Journal) seal(s *segment, f File, b *indexBuilder) error {
	n, err := s.seal(f, b)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	j.mu.Lock()
	s.sealedBy(b, n)
	j.mu.Unlock()
	j.remember(s, &b.index)
	return nil
}

// sealedBy notes what seal did.
func (s *segment) sealedBy(b *indexBuilder, indexLen int64) {
	s.sealed, s.indexLen, s.time = true, indexLen, b.time
	s.open, s.tail = index{}, stretch{}
}
