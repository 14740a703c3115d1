package disk

import (
	"time"

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

	head  [frameHeader]byte
	parts [4][]byte
	wrote int64         // size of the newest record
	begun time.Time     // when the segment came into use
	busy  time.Duration // spent writing and syncing since then
}

// prewriteChunk bytes of zeros go ahead of small records, where the segment was not made ready in the background: to sync
// bytes in place costs half of what it costs to sync ones that change the file's extents. From prewriteBelow on the
// bandwidth is worth more.
const (
	prewriteChunk = 512 << 10
	prewriteBelow = 64 << 10
	pageSize      = 4 << 10
)

var zeros [prewriteChunk]byte

func (j *Journal) append(w *writer, b journal.Block) error {
	if w.seg == nil || w.seg.end+frameSize(len(b.Bytes()))+w.index.size(b)+footerSize > w.seg.capacity {
		if err := j.roll(w, b); err != nil {
			return err
		}
	}
	begin := time.Now()
	w.wrote = frameSize(len(b.Bytes()))
	if err := w.write(b.Bytes()); err != nil {
		return err
	}
	if j.opt.Sync == Fsync {
		if err := w.file.Sync(); err != nil {
			return err
		}
	}
	w.busy += time.Since(begin)
	return nil
}

// write is one call of the system and no copy of the block. It goes on to the end of the page: the page need not be read
// from the disk, as it would to change a part of it, and it holds nothing of an earlier life.
func (w *writer) write(block []byte) error {
	padding := putFrame(&w.head, w.seg.generation, w.next, block)
	end := w.seg.end + w.wrote
	fill := min((end+pageSize-1)&^(pageSize-1), w.seg.capacity) - end
	if end > w.ready && w.wrote < prewriteBelow && w.seg.capacity > end {
		fill = min(prewriteChunk, w.seg.capacity-end)
		w.ready = end + fill
	}
	w.parts = [4][]byte{w.head[:], block, padding, zeros[:fill]}
	_, err := w.file.WriteVAt(w.parts[:], w.seg.end)
	w.parts = [4][]byte{}
	return err
}

// publish lets readers see the block.
func (j *Journal) publish(w *writer, b journal.Block) journal.Seq {
	seq := w.next
	w.index.add(seq, w.seg.end, b)
	w.next++
	j.mu.Lock()
	w.seg.next, w.seg.end = seq+1, w.seg.end+w.wrote
	w.seg.open, w.seg.tail = w.index.index, w.index.tail
	j.mu.next = seq + 1
	j.mu.Unlock()
	if j.opt.Sync == Interval {
		j.arm()
	}
	j.prepare(w)
	return seq
}

// roll begins a segment that has room for the block. The one before is whole and synced then; it is sealed in the
// background.
func (j *Journal) roll(w *writer, b journal.Block) error {
	<-j.flusher.file
	defer func() { j.flusher.file <- w.file }()
	switch {
	case w.seg == nil:
	case w.seg.next == w.seg.base: // a crash left it without a record; the one to come has its name
		if err := j.replace(w); err != nil {
			return err
		}
	default:
		if err := j.leave(w); err != nil {
			return err
		}
	}
	w.index = newIndexBuilder(j.opt.Hashes)
	raw, err := j.nextFile(w, headerSize+frameSize(len(b.Bytes()))+w.index.size(b)+footerSize)
	if err != nil {
		return err
	}
	seg, err := createSegment(j.opt.FS, j.dir, &raw, w.next, j.epoch)
	if err != nil {
		return err
	}
	w.seg, w.file, w.ready, w.begun, w.busy = seg, raw.file, raw.ready, time.Now(), 0
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.segments = append(j.mu.segments, seg)
	return nil
}

// replace takes an empty segment out of the chain. Its file goes when the next one takes its name.
func (j *Journal) replace(w *writer) error {
	err := w.file.Close()
	w.seg, w.file = nil, nil
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.segments = j.mu.segments[:len(j.mu.segments)-1]
	return err
}

// leave hands the segment to the background to be sealed. Nothing of a later one may be on the disk before this one is.
func (j *Journal) leave(w *writer) error {
	if j.opt.Sync == Interval {
		if err := w.file.Sync(); err != nil {
			return err
		}
	}
	seg, file, index := w.seg, w.file, w.index
	w.seg, w.file = nil, nil
	j.sealing <- struct{}{} // the one before, if it still is not
	j.tasks.Go(func() {
		defer func() { <-j.sealing }()
		if err := j.seal(seg, file, index); err != nil {
			j.opt.Log.Error("segment not sealed", "file", seg.path, "err", j.fail(err))
		}
	})
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
