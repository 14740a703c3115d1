package engine

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// view is something that is derived from the content of one log: its state is a function of the log's entries in their
// order, so it can be lost and made again. Start-up restores each view of a log from its checkpoint and applies what came
// after; one pass over the journal, from the oldest checkpoint on, serves all of them.
//
// To add one: implement this, add it to viewsOf, say in floor what of the journal it still needs. A view keeps its state
// wherever it likes (in Partition, under l.buf, under a lock of its own); but restore, apply and capture are called by
// recovery before anything runs, and then by the log's committer alone, between two blocks, with no lock held: "durable"
// stands still during a call.
type view interface {
	// kind names the view in metadata and files: lower case letters, short.
	kind() string

	// wants tells whether entries of a partition can matter, as its topic stands now. A view that wants none of a log's
	// partitions is empty, and start-up does not read the journal for it.
	wants(p *Partition) bool

	// live tells whether the committer calls apply for each durable block too, before producers are told. A view that is
	// not live learns of new entries in its own way, where they are published.
	live() bool

	// apply takes in one entry that is durable: after a restore, from the first block that the checkpoint does not
	// cover; every entry once, in order of the journal (within one block: partition by partition). e is valid during the
	// call, e.Commit is set. An error means that the state cannot be had, and stops the log.
	apply(p *Partition, seq journal.Seq, e *core.Entry) error

	// capture copies what changed after the block since, up to the newest durable block; since 0: all that there is. What
	// it returns writes the copy out, later and elsewhere; nil: there is nothing to write. What changed up to since is
	// safe in files: the view need not be able to tell it any more. The appenders may stand still meanwhile, so it has to
	// take microseconds per thousand items.
	capture(since journal.Seq) func(w io.Writer) error

	// restore adds what one capture wrote: on an empty view a whole, then what changed, in order.
	restore(r io.Reader) error

	// reset makes the view empty.
	reset()

	// floor is the first block that the view needs in the journal, whatever its checkpoints say; 0: none. Any goroutine
	// may call it.
	floor() journal.Seq
}

// viewsOf is the list of all views of a log.
func viewsOf(l *log) []view {
	return []view{&dedupView{l}, &parkedView{log: l}}
}

// viewState is a view and its checkpoints. at and files belong to recovery, and then to whoever has the log's checkpoint
// under way (see log.capture).
type viewState struct {
	view
	at    journal.Seq           // the state after this block is in files; read by trim
	files []meta.CheckpointFile // a snapshot, then what changed since
	whole bool                  // the next checkpoint is a snapshot
}

// views are those of one log.
type views struct {
	all  []*viewState
	live []view

	written int64       // bytes since the last capture; the committer's
	tries   int         // captures; the committer's
	due     atomic.Bool // the committer is to capture, between two blocks

	mu struct {
		sync.Mutex // a leaf
		taken      *checkpoint
	}
}

func (vs *views) init(l *log) {
	for _, v := range viewsOf(l) {
		vs.all = append(vs.all, &viewState{view: v})
		if v.live() {
			vs.live = append(vs.live, v)
		}
	}
}

// active tells whether any of these partitions concerns the view.
func (s *viewState) active(parts map[uint32]*Partition) bool {
	for _, p := range parts {
		if s.wants(p) {
			return true
		}
	}
	return false
}

// feed applies a durable block to the views that have not seen it.
func (l *log) feed(vs []view, seq journal.Seq, b journal.Block) error {
	for x := range b.Extents() {
		p := l.part(x.Partition)
		if p == nil {
			continue // its topic was deleted
		}
		for _, v := range vs {
			if !v.wants(p) {
				continue
			}
			if err := feedExtent(v, p, seq, tailExtent{x.First, x.Next(), b.Time, x.Data}); err != nil {
				return fmt.Errorf("view %s, block %d, partition number %d: %w", v.kind(), seq, x.Partition, err)
			}
		}
	}
	return nil
}

func feedExtent(v view, p *Partition, seq journal.Seq, x tailExtent) error {
	var e core.Entry
	for len(x.data) > 0 {
		if err := x.next(&e); err != nil {
			return err
		}
		if err := v.apply(p, seq, &e); err != nil {
			return err
		}
	}
	return nil
}

// look shows a block that has just become durable to the live views. Called by the committer.
func (l *log) look(seq journal.Seq, raw []byte) error {
	l.views.written += int64(len(raw))
	if l.views.written >= l.eng.cfg.ViewBytes {
		l.views.due.Store(true)
	}
	if len(l.views.live) == 0 {
		return nil
	}
	b, err := journal.Header(raw)
	if err != nil {
		return err
	}
	return l.feed(l.views.live, seq, b)
}

func (l *log) part(number uint32) *Partition {
	l.tail.RLock()
	defer l.tail.RUnlock()
	return l.tail.parts[number]
}

// viewFloor is the first block that views need: for themselves, or to be made again after their last checkpoint. stale
// tells that a new checkpoint would raise it.
func (l *log) viewFloor() (floor journal.Seq, stale bool) {
	floor = ^journal.Seq(0)
	l.views.mu.Lock()
	for _, s := range l.views.all {
		floor, stale = min(floor, s.at+1), true
	}
	l.views.mu.Unlock()
	for _, s := range l.views.all {
		if f := s.floor(); f > 0 && f < floor {
			floor, stale = f, false
		}
	}
	return floor, stale
}

// askCheckpoint lets the committer capture at the next opportunity.
func (l *log) askCheckpoint() {
	l.views.due.Store(true)
	l.wake()
}
