package engine

import (
	"slices"
	"sort"

	"isthmus/core"
	"isthmus/core/journal"
)

// tailBlock is a recent block in memory; it is immutable.
type tailBlock struct {
	seq   journal.Seq
	stamp uint64
	block journal.Block
}

// tailExtent is what a recent block holds of one partition.
type tailExtent struct {
	first, end core.Offset
	commit     int64
	data       []byte
}

// skipTo drops entries that end at or before an offset. A reader of a large block comes back many times, so they are not
// parsed each time.
func (x *tailExtent) skipTo(from core.Offset) {
	for len(x.data) > 0 {
		count, size := core.PeekEntry(x.data)
		end := x.first + core.Offset(count)
		if size == 0 || end > from {
			return
		}
		x.first, x.data = end, x.data[size:]
	}
}

// next takes the first entry off the extent.
func (x *tailExtent) next(e *core.Entry) error {
	rest, err := core.ParseEntry(x.data, x.first, e)
	if err != nil {
		return err
	}
	e.Commit = x.commit
	x.first, x.data = e.End(), rest
	return nil
}

// markBytes is how far apart the places are from which an offset is looked for, if Config does not say.
const markBytes = 4 << 20

// mark is a place in a journal to read from: at Seq, the next offsets of its partitions were these. A partition that is
// missing did not exist and had 0.
type mark struct {
	seq   journal.Seq
	time  int64
	next  map[uint32]core.Offset
	bytes map[uint32]int64 // that each partition had written
}

// show makes a durable block visible: in the tail cache, to readers, in the log's position. Called by the committer.
func (l *log) show(seq journal.Seq, raw []byte) {
	block, err := journal.Header(raw)
	if err != nil {
		panic(err) // we have just built it
	}
	stamp := l.eng.stamp.Add(1)
	l.tail.Lock()
	defer l.tail.Unlock()
	if !l.volatile {
		l.markBefore(seq, block.Time, int64(len(raw)))
	}
	for x := range block.Extents() {
		p := l.tail.parts[x.Partition]
		if p == nil {
			continue // its topic was deleted meanwhile
		}
		p.tail = append(p.tail, tailExtent{x.First, x.Next(), block.Time, x.Data})
		p.bytes += int64(len(x.Data))
		p.committed.Store(x.Next())
	}
	l.tail.blocks = append(l.tail.blocks, tailBlock{seq, stamp, block})
	l.tail.seq, l.tail.time = seq, block.Time
	l.eng.tail.Add(int64(len(raw)))
}

// markBefore takes a mark in front of a block, if enough was written since the last. The caller holds l.tail.
func (l *log) markBefore(seq journal.Seq, time, size int64) {
	if len(l.tail.marks) == 0 || l.tail.sinceMark >= l.eng.cfg.MarkBytes {
		next, bytes := make(map[uint32]core.Offset, len(l.tail.parts)), make(map[uint32]int64, len(l.tail.parts))
		for n, p := range l.tail.parts {
			next[n], bytes[n] = p.committed.Load(), p.bytes
		}
		l.tail.marks = append(l.tail.marks, mark{seq, time, next, bytes})
		l.tail.unsaved++
		l.tail.sinceMark = 0
	}
	l.tail.sinceMark += size
}

// evict forgets the node's oldest blocks, whatever log has them, while all together are over the budget. The newest block
// of each log stays. Any committer may call it, with no lock held.
func (e *Engine) evict() {
	for e.tail.Load() > e.cfg.TailBytes {
		var oldest *log
		low := ^uint64(0)
		for _, l := range e.allLogs() {
			if stamp, ok := l.oldest(); ok && stamp < low {
				oldest, low = l, stamp
			}
		}
		if oldest == nil {
			return
		}
		oldest.forget(low)
	}
}

// oldest is the stamp of the first block that may be forgotten.
func (l *log) oldest() (stamp uint64, ok bool) {
	l.tail.RLock()
	defer l.tail.RUnlock()
	if len(l.tail.blocks) < 2 {
		return 0, false
	}
	return l.tail.blocks[0].stamp, true
}

// forget drops the first block, if it is still that one, and a few more: looking for the oldest costs more than dropping.
func (l *log) forget(stamp uint64) {
	l.tail.Lock()
	defer l.tail.Unlock()
	if len(l.tail.blocks) < 2 || l.tail.blocks[0].stamp != stamp {
		return
	}
	n := max(1, len(l.tail.blocks)/32)
	for i := range n {
		b := l.tail.blocks[i].block
		for x := range b.Extents() {
			if p := l.tail.parts[x.Partition]; p != nil {
				p.tail[0] = tailExtent{}
				p.tail = p.tail[1:]
				if l.volatile {
					p.first.Store(x.Next())
				}
			}
		}
		l.eng.tail.Add(-int64(len(b.Bytes())))
		l.tail.blocks[i] = tailBlock{}
	}
	l.tail.blocks = l.tail.blocks[n:]
}

// readTail appends entries from the tail cache; ok is false when the offset is older than what it holds.
func (p *Partition) readTail(r *readRequest) (ok bool, err error) {
	p.log.tail.RLock()
	defer p.log.tail.RUnlock()
	t := p.tail
	if len(t) == 0 || r.from < t[0].first {
		return false, nil
	}
	for i := sort.Search(len(t), func(i int) bool { return t[i].end > r.from }); i < len(t) && !r.full(); i++ {
		x := t[i]
		r.spot.resume(&x, r.from)
		if err := r.take(&x); err != nil {
			return true, err
		}
		r.spot.leave(&x, t[i].first, len(t[i].data))
	}
	return true, nil
}

// marked returns the newest mark at or before which a reader of this offset can begin. The caller holds l.tail.
func (l *log) marked(partition uint32, from core.Offset) journal.Seq {
	ms := l.tail.marks
	i := sort.Search(len(ms), func(i int) bool { return ms[i].next[partition] > from })
	if i == 0 {
		return 1
	}
	return ms[i-1].seq
}

// markedAt returns the newest mark that lies before this time. The caller holds l.tail.
func (l *log) markedAt(ms int64) journal.Seq {
	i, _ := slices.BinarySearchFunc(l.tail.marks, ms, func(m mark, t int64) int {
		if m.time < t {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 1
	}
	return l.tail.marks[i-1].seq
}
