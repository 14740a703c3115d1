package disk

import (
	"errors"

	"isthmus/core/journal"
)

// writer is the end of the log.
type writer struct {
	next  journal.Seq
	seg   *segment // nil: the next Append begins one
	file  File
	index *indexBuilder
	size  int64 // of the next segment
	ready int64 // file bytes that were written at least once
	frame []byte
}

// prewriteChunk bytes of zeros go ahead of small records: to sync bytes in place costs half of what it
// costs to sync ones that change the file's extents. From prewriteBelow on the bandwidth is worth more.
const (
	prewriteChunk = 512 << 10
	prewriteBelow = 64 << 10
)

var zeros [prewriteChunk]byte

func (j *Journal) append(w *writer, b journal.Block) error {
	if w.seg == nil || w.seg.end+frameSize(len(b.Bytes()))+w.index.size(b)+footerSize > w.seg.capacity {
		if err := j.roll(w, b); err != nil {
			return err
		}
	}
	w.frame = appendFrame(w.frame[:0], w.seg.generation, w.next, b.Bytes())
	if err := w.prewrite(w.seg.end + int64(len(w.frame))); err != nil {
		return err
	}
	_, err := w.file.WriteAt(w.frame, w.seg.end)
	if err == nil && j.opt.Sync == Fsync {
		err = w.file.Sync()
	}
	return err
}

// prewrite makes room behind pos, once the room there was has been used up.
func (w *writer) prewrite(pos int64) error {
	if pos <= w.ready || len(w.frame) >= prewriteBelow {
		return nil
	}
	w.ready = min(pos+prewriteChunk, w.seg.capacity)
	_, err := w.file.WriteAt(zeros[:w.ready-pos], pos)
	return err
}

// publish lets readers see the block.
func (j *Journal) publish(w *writer, b journal.Block) journal.Seq {
	seq, size := w.next, int64(len(w.frame))
	w.index.add(seq, w.seg.end, b)
	w.next++
	if cap(w.frame) > keepChunk {
		w.frame = nil
	}
	j.mu.Lock()
	w.seg.next, w.seg.end = seq+1, w.seg.end+size
	w.seg.open, w.seg.tail = w.index.index, w.index.tail
	j.mu.next = seq + 1
	j.mu.Unlock()
	if j.opt.Sync == Interval {
		j.arm()
	}
	return seq
}

// roll seals the segment and begins one that has room for the block.
func (j *Journal) roll(w *writer, b journal.Block) error {
	<-j.flusher.file
	defer func() { j.flusher.file <- w.file }()
	if w.seg != nil {
		if err := j.seal(w); err != nil {
			return err
		}
	}
	w.index = newIndexBuilder()
	size := w.nextSize(headerSize+frameSize(len(b.Bytes()))+w.index.size(b)+footerSize, j.opt.SegmentMax)
	recycled := j.recycled(size)
	seg, file, err := createSegment(j.opt.FS, j.dir, recycled, w.next, size, j.epoch)
	if err != nil {
		return err
	}
	w.seg, w.file, w.ready = seg, file, 0
	if recycled != "" {
		w.ready = size
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.segments = append(j.mu.segments, seg)
	return nil
}

func (j *Journal) seal(w *writer) error {
	n, err := w.seg.seal(w.file, w.index)
	err = errors.Join(err, w.file.Close())
	w.file = nil
	if err != nil {
		return err
	}
	j.mu.Lock()
	w.seg.sealedBy(w.index, n)
	j.mu.Unlock()
	j.remember(w.seg, &w.index.index)
	w.seg = nil
	return nil
}

// nextSize doubles from segment to segment. A block beyond the largest gets a segment of its own size.
func (w *writer) nextSize(need, most int64) int64 {
	for w.size < need && w.size < most {
		w.size = min(2*w.size, most)
	}
	if w.size < need {
		return (need + 4095) &^ 4095
	}
	size := w.size
	w.size = min(2*w.size, most)
	return size
}

// recycled takes a file of this size from the free list.
func (j *Journal) recycled(size int64) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.mu.free)
	if n == 0 || size != j.opt.SegmentMax {
		return ""
	}
	path := j.mu.free[n-1]
	j.mu.free = j.mu.free[:n-1]
	return path
}
