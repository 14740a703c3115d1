package disk

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
)

// Journal is one opened journal. Whoever holds the writer owns the end of the log; the mutex guards
// what readers look at and is never held across I/O.
type Journal struct {
	store *Store
	opt   Options
	name  string
	dir   string
	epoch uint64

	writer   chan *writer   // one place: the writer, when nobody has it
	trimming chan struct{}  // held while segments are being dropped
	gone     chan struct{}  // closed when no Append can succeed any more
	sealing  chan struct{}  // held while a segment that is full gets its index and footer
	ahead    chan *ahead    // one place: the next segment's file, when nobody works at it
	tasks    sync.WaitGroup // background work; begun only by whoever has the writer
	flusher  flusher

	mu struct {
		sync.Mutex
		segments []*segment // a chain; the last one is never dropped
		free     []freeFile
		next     journal.Seq
		cause    error // why no Append succeeds any more
		unread   error // why no Read does
		recent   [recentIndexes]*segment
		evict    int
	}
}

func newJournal(s *Store, name, dir string, epoch uint64, r *recovery) *Journal {
	j := &Journal{
		store: s, opt: s.opt, name: name, dir: dir, epoch: epoch,
		writer: make(chan *writer, 1), trimming: make(chan struct{}, 1), gone: make(chan struct{}),
		sealing: make(chan struct{}, 1), ahead: make(chan *ahead, 1),
	}
	w := &writer{size: s.opt.SegmentMin, next: 1, begun: time.Now()}
	j.ahead <- &ahead{}
	j.mu.segments, j.mu.free = r.segments, r.free
	if n := len(r.segments); n > 0 {
		last := r.segments[n-1]
		w.next = last.next
		if last.capacity <= s.opt.SegmentMax {
			w.size = min(max(2*last.capacity, s.opt.SegmentMin), s.opt.SegmentMax)
		}
		if !last.sealed {
			w.seg, w.file, w.index = last, r.file, r.index
			last.open, last.tail = r.index.index, r.index.tail
		}
	}
	j.mu.next = w.next
	j.flusher.file = make(chan File, 1)
	j.flusher.file <- w.file
	j.writer <- w
	return j
}

// Append implements journal.Journal.
func (j *Journal) Append(ctx context.Context, block []byte) (journal.Seq, error) {
	b, err := journal.Header(block)
	if err != nil {
		return 0, fmt.Errorf("append to journal %s: %w: %w", j.name, core.ErrInvalid, err)
	}
	w, err := j.take(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { j.writer <- w }()
	if err := j.append(w, b); err != nil {
		return 0, j.fail(err)
	}
	return j.publish(w, b), nil
}

// Bounds implements journal.Journal. bytes counts records, not files.
func (j *Journal) Bounds(context.Context) (first, next journal.Seq, bytes int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.mu.segments {
		bytes += s.end - headerSize
	}
	return j.first(), j.mu.next, bytes, j.mu.unread
}

// first is called with the mutex held.
func (j *Journal) first() journal.Seq {
	if len(j.mu.segments) > 0 {
		return j.mu.segments[0].base
	}
	return j.mu.next
}

// take waits for the writer.
func (j *Journal) take(ctx context.Context) (*writer, error) {
	if err := errors.Join(j.stopped(), ctx.Err()); err != nil {
		return nil, err
	}
	select {
	case w := <-j.writer:
		if err := j.stopped(); err != nil {
			j.writer <- w
			return nil, err
		}
		return w, nil
	case <-j.gone:
		return nil, j.stopped()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (j *Journal) stopped() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.cause
}

// halt lets no later Append succeed. The first cause stays.
func (j *Journal) halt(cause error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.cause == nil {
		j.mu.cause = cause
		close(j.gone)
	}
	return j.mu.cause
}

// fail halts for good: what failed is never tried again.
func (j *Journal) fail(err error) error {
	return j.halt(fmt.Errorf("journal %s stopped: %w: %w", j.name, core.ErrUnavailable, err))
}

// fence ends a handle whose journal is being opened again. It waits for an Append under way.
func (j *Journal) fence() {
	j.end(fmt.Errorf("journal %s was opened again: %w", j.name, core.ErrFenced))
}

// Close implements journal.Journal.
func (j *Journal) Close() error {
	err := j.end(fmt.Errorf("journal %s: %w", j.name, core.ErrClosed))
	j.store.forget(j)
	return err
}

func (j *Journal) end(cause error) error {
	failed := j.stopped() != nil
	j.halt(cause)
	j.mu.Lock()
	if j.mu.unread == nil {
		j.mu.unread = cause
		j.mu.cause = cause
	}
	j.mu.Unlock()
	j.trimming <- struct{}{} // the files are somebody else's soon
	defer func() { <-j.trimming }()
	w := <-j.writer
	defer func() { j.writer <- w }()
	j.disarm()
	j.tasks.Wait()
	a := <-j.ahead
	err := a.drop(j.opt.FS)
	j.ahead <- a
	if w.file == nil {
		return err
	}
	<-j.flusher.file
	defer func() { j.flusher.file <- nil }()
	if j.opt.Sync == Interval && !failed {
		err = errors.Join(err, w.file.Sync())
	}
	err = errors.Join(err, w.file.Close())
	w.file, w.seg = nil, nil
	return err
}

// segmentOf is called with the mutex held: the segment that holds seq, or the first one.
func (j *Journal) segmentOf(seq journal.Seq) *segment {
	i := sort.Search(len(j.mu.segments), func(i int) bool { return j.mu.segments[i].base > seq })
	return j.mu.segments[max(0, i-1)]
}
