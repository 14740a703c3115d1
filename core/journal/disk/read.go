package disk

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"math"
	"sync"

	"isthmus/core/journal"
)

// recentIndexes is how many decoded indexes of sealed segments are kept; of every other one only the
// summary stays, once it was read.
const recentIndexes = 16

// errTrimmed: the segment was dropped under the reader, who goes on with the first one left.
var errTrimmed = errors.New("segment trimmed")

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, from journal.Seq, hint journal.Hint) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		r := reader{j: j, ctx: ctx, hint: hint, next: from, yield: yield}
		if !hint.Keep {
			buf := buffers.Get().(*[]byte)
			r.window.buf = (*buf)[:0]
			defer func() {
				if *buf = r.window.buf; cap(*buf) <= keepChunk {
					buffers.Put(buf)
				}
			}()
		}
		err := r.run()
		if err != nil {
			yield(journal.Record{}, err)
		}
	}
}

// reader is one call of Read.
type reader struct {
	j      *Journal
	ctx    context.Context
	hint   journal.Hint
	next   journal.Seq // the block to yield next, if it is wanted
	limit  journal.Seq // the end of the journal when the reader began
	yield  func(journal.Record, error) bool
	done   bool
	window window
}

func (r *reader) run() error {
	for !r.done {
		v, err := r.view()
		if err != nil || v.seg == nil {
			return err
		}
		if err := r.segment(&v); err != nil && !errors.Is(err, errTrimmed) {
			return err
		}
	}
	return nil
}

// view is a segment as a reader sees it: later appends do not change it.
type view struct {
	seg      *segment
	next     journal.Seq
	end      int64
	sealed   bool
	indexLen int64
	time     int64
	open     index
	tail     stretch // behind open; of no record if tail.seq is not below next
}

// view finds the segment of r.next; none at the end.
func (r *reader) view() (view, error) {
	j := r.j
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.unread != nil {
		return view{}, j.mu.unread
	}
	if r.limit == 0 {
		r.limit = j.mu.next
	}
	r.next = max(r.next, j.first())
	if r.next >= r.limit {
		return view{}, nil
	}
	s := j.segmentOf(r.next)
	return view{s, s.next, s.end, s.sealed, s.indexLen, s.time, s.open, s.tail}, nil
}

func (r *reader) segment(v *view) error {
	if v.sealed && !v.wanted(r.hint) {
		r.next = v.next
		return nil
	}
	f, err := r.j.opt.FS.Open(v.seg.path, false)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && v.seg.dropped.Load() {
			return errTrimmed
		}
		return err
	}
	defer f.Close()
	r.window = window{f: f, buf: r.window.buf[:0], chunk: readChunk, limit: v.end, keep: r.hint.Keep}
	if err := r.index(v); err != nil {
		return err
	}
	for i := v.find(r.next); !r.done && r.next < min(v.next, r.limit); i++ {
		st, end, next := v.stretch(i)
		if i < len(v.open.stretches) && !v.open.wanted(i, r.hint) {
			r.next = next
			continue
		}
		if err := r.stretch(v, st, end); err != nil {
			return err
		}
		if !r.done {
			r.next = max(r.next, next) // of a thinned segment the last blocks may be gone
		}
	}
	return nil
}

// wanted asks the summary, if the segment was read before.
func (v *view) wanted(h journal.Hint) bool {
	if v.time < h.Since {
		return false
	}
	marks := v.seg.summary.Load()
	return marks == nil || marksWanted(*marks, h)
}

// find returns the stretch that holds seq.
func (v *view) find(seq journal.Seq) int {
	if n := len(v.open.stretches); seq >= v.tail.seq || n == 0 {
		return n
	}
	return v.open.find(seq)
}

// stretch returns stretch i, its end, and the Seq after it. Behind the last one comes the tail.
func (v *view) stretch(i int) (st stretch, end int64, next journal.Seq) {
	ss := v.open.stretches
	switch {
	case i < len(ss)-1:
		return ss[i], ss[i+1].pos, ss[i+1].seq
	case i == len(ss)-1 && v.tail.seq < v.next:
		return ss[i], v.tail.pos, v.tail.seq
	case i == len(ss)-1:
		return ss[i], v.end, v.next
	default:
		return v.tail, v.end, v.next
	}
}

// stretch yields what is wanted of one stretch.
func (r *reader) stretch(v *view, st stretch, end int64) error {
	if r.hint.Skips() {
		r.window.chunk = min(end-st.pos, readChunk) // a lone reader: what follows may not matter
	}
	for pos, seq := st.pos, st.seq; pos < end && seq < r.limit; seq++ { // seq: the lowest that may be there
		if err := r.ctx.Err(); err != nil {
			return err
		}
		raw, size, why, err := r.window.record(v.seg, pos, seq)
		if v.seg.dropped.Load() && (err != nil || why != "") {
			return errTrimmed
		}
		if err != nil {
			return err
		}
		if why != "" {
			return v.seg.damage(pos, seq, why)
		}
		pos, seq = pos+size, r.window.seq
		if seq < r.next {
			continue
		}
		b, err := journal.Header(raw)
		if err != nil {
			return v.seg.damage(pos-size, seq, err.Error())
		}
		r.next = seq + 1
		if r.hint.Wants(b) && !r.yield(journal.Record{Seq: seq, Time: b.Time, Block: raw}, nil) {
			r.done = true
			return nil
		}
	}
	return nil
}

// index makes sure that the view of a sealed segment has its index. A broken one costs only time: the
// segment is one stretch then.
func (r *reader) index(v *view) error {
	if !v.sealed {
		return nil
	}
	v.tail = stretch{seq: math.MaxUint64}
	if x := v.seg.index.Load(); x != nil {
		v.open = *x
		return nil
	}
	b := make([]byte, v.indexLen)
	if n, err := r.window.f.ReadAt(b, v.end); int64(n) < v.indexLen {
		if v.seg.dropped.Load() {
			return errTrimmed
		}
		return err
	}
	x, ok := decodeIndex(b, v)
	if !ok {
		if v.seg.dropped.Load() {
			return errTrimmed
		}
		r.j.opt.Log.Warn("broken index, reading the whole segment", "file", v.seg.path, "position", v.end)
		v.tail = stretch{seq: v.seg.base, pos: headerSize}
		return nil
	}
	v.open = *x
	r.j.remember(v.seg, x)
	return nil
}

// remember keeps a decoded index, at the cost of the one remembered longest ago.
func (j *Journal) remember(s *segment, x *index) {
	if s.summary.Load() == nil {
		marks := x.summary()
		s.summary.Store(&marks)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if old := j.mu.recent[j.mu.evict]; old != nil {
		old.index.Store(nil)
	}
	s.index.Store(x)
	j.mu.recent[j.mu.evict] = s
	j.mu.evict = (j.mu.evict + 1) % recentIndexes
}
