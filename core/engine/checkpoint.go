package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// checkpointBytes is how much is written to a journal between two checkpoints by default. A start replays what was
// written since the last one: half of the 64 MiB that it may read, because more is written while a checkpoint is made.
const checkpointBytes = 32 << 20

// A view's changes are written to further files until there are maxDeltas of them, or they have outgrown the snapshot.
const (
	maxDeltas  = 8
	slackBytes = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkpoint is what the committer has captured of a log's views: their state after block seq. Whoever it was handed to
// owns it.
type checkpoint struct {
	seq   journal.Seq
	try   int // counts checkpoints since the start; no two files have one name
	parts []captured
}

type captured struct {
	*viewState
	whole bool
	write func(io.Writer) error // nil: nothing
	next  []meta.CheckpointFile // the view's files with this checkpoint
}

// capture copies what changed in the log's views, for the checkpointer. It costs the copy, and nothing while the last one
// is still being written. Called by the committer between two blocks, or when there is no committer any more.
func (l *log) capture() (taken bool) {
	l.views.mu.Lock()
	busy := l.views.mu.taken != nil
	l.views.mu.Unlock()
	if busy {
		return false
	}
	l.views.due.Store(false)
	l.views.written = 0
	l.tail.RLock()
	c := &checkpoint{seq: l.tail.seq}
	l.tail.RUnlock()
	l.views.tries++
	c.try = l.views.tries
	for _, s := range l.views.all {
		if s.at >= c.seq {
			continue
		}
		part := captured{viewState: s, whole: s.whole || s.at == 0 || s.outgrown()}
		since := s.at
		if part.whole {
			since = 0
		}
		part.write = s.capture(since)
		c.parts = append(c.parts, part)
	}
	if len(c.parts) == 0 {
		return false
	}
	l.views.mu.Lock()
	l.views.mu.taken = c
	l.views.mu.Unlock()
	return true
}

// outgrown tells that reading the changes costs more than a new snapshot.
func (s *viewState) outgrown() bool {
	if len(s.files) == 0 {
		return false
	}
	deltas := int64(0)
	for _, f := range s.files[1:] {
		deltas += f.Size
	}
	return len(s.files) > maxDeltas || deltas > s.files[0].Size+slackBytes
}

// checkpointer is a goroutine that writes what committers have captured.
func (e *Engine) checkpointer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.captured:
			e.writeCheckpoints(context.WithoutCancel(ctx))
		}
	}
}

func (e *Engine) kickCheckpointer() {
	select {
	case e.captured <- struct{}{}:
	default:
	}
}

// writeCheckpoints makes files of what was captured and then one metadata transaction that names them; what no record
// names any more is removed. What fails is tried again when a log captures again; the old files hold until then.
func (e *Engine) writeCheckpoints(ctx context.Context) {
	var logs []*log
	for _, l := range e.allLogs() {
		c := l.pending()
		if c == nil {
			continue
		}
		if err := l.writeFiles(ctx, c); err != nil {
			e.cfg.Log.Error("checkpoint not written", "journal", l.name, "err", err)
			l.settleCheckpoint(c, false)
			continue
		}
		logs = append(logs, l)
	}
	if len(logs) == 0 {
		return
	}
	err := e.recordCheckpoints(logs)
	if err != nil {
		e.cfg.Log.Error("checkpoints not recorded", "err", err)
	}
	for _, l := range logs {
		c := l.pending()
		if l.settleCheckpoint(c, err == nil && l.broken() == nil); err == nil {
			l.removeOrphans()
			e.cfg.Log.Debug("checkpoint taken", "journal", l.name, "seq", uint64(c.seq))
		}
	}
}

func (l *log) pending() *checkpoint {
	l.views.mu.Lock()
	defer l.views.mu.Unlock()
	return l.views.mu.taken
}

// writeFiles writes what was captured of each view, and knows then what its files are.
func (l *log) writeFiles(ctx context.Context, c *checkpoint) error {
	for i := range c.parts {
		p := &c.parts[i]
		if !p.whole {
			p.next = slices.Clip(p.files)
		}
		if p.write == nil {
			continue
		}
		store, ok := l.eng.cfg.Journals.(journal.Checkpoints)
		if !ok {
			return fmt.Errorf("view %s: the journals keep no checkpoints: %w", p.kind(), core.ErrUnsupported)
		}
		f := meta.CheckpointFile{Name: fmt.Sprintf("%s-%020d-%d-%d", p.kind(), uint64(c.seq), l.epoch, c.try)}
		err := store.CreateCheckpoint(ctx, l.name, f.Name, func(w io.Writer) error {
			sum := summed{w: w}
			err := p.write(&sum)
			f.Size, f.CRC = sum.n, sum.crc
			return err
		})
		if err != nil {
			return fmt.Errorf("view %s: %w", p.kind(), err)
		}
		p.next = append(p.next, f)
	}
	return nil
}

// summed counts and sums up what passes through.
type summed struct {
	w   io.Writer
	n   int64
	crc uint32
}

func (s *summed) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.n += int64(n)
	s.crc = crc32.Update(s.crc, castagnoli, b[:n])
	return n, err
}

// recordCheckpoints names the files in metadata, in one transaction with the positions of their journals: a checkpoint is
// never ahead of what its journal is known to hold.
func (e *Engine) recordCheckpoints(logs []*log) error {
	e.meta.Lock()
	defer e.meta.Unlock()
	var b batch
	for _, l := range logs {
		l.collect(&b)
		if l.broken() != nil {
			continue
		}
		for _, p := range l.pending().parts {
			rec := meta.CheckpointRecord{Epoch: l.epoch, Seq: uint64(l.pending().seq), Files: p.next}
			b.add(meta.Write{Bucket: meta.Checkpoints, Key: l.name + separator + p.kind(), Value: meta.EncodeJSON(rec)}, func() {})
		}
	}
	if len(b.writes) == 0 {
		return nil
	}
	if err := e.cfg.Meta.Apply(b.writes); err != nil {
		return err
	}
	for _, f := range b.after {
		f()
	}
	return nil
}

// settleCheckpoint ends a checkpoint; ok: metadata names it.
func (l *log) settleCheckpoint(c *checkpoint, ok bool) {
	l.views.mu.Lock()
	defer l.views.mu.Unlock()
	for _, p := range c.parts {
		if ok {
			p.viewState.at, p.files, p.viewState.whole = c.seq, p.next, false
		}
	}
	l.views.mu.taken = nil
}

// removeOrphans removes the files that belong to no view of the log: replaced ones, and what a crash left behind.
func (l *log) removeOrphans() {
	store, ok := l.eng.cfg.Journals.(journal.Checkpoints)
	if !ok {
		return
	}
	names, err := store.ListCheckpoints(l.name)
	for _, name := range names {
		if !slices.ContainsFunc(l.views.all, func(s *viewState) bool { return s.owns(name) }) {
			err = errors.Join(err, store.RemoveCheckpoint(l.name, name))
		}
	}
	if err != nil {
		l.eng.cfg.Log.Warn("old checkpoints not removed", "journal", l.name, "err", err)
	}
}

func (s *viewState) owns(file string) bool {
	return slices.ContainsFunc(s.files, func(f meta.CheckpointFile) bool { return f.Name == file })
}

// finishCheckpoints takes a last checkpoint of every log, so that the next start replays nothing. Called when no committer
// is alive.
func (e *Engine) finishCheckpoints() {
	e.writeCheckpoints(context.Background()) // what the checkpointer was not quick enough for
	for _, l := range e.allLogs() {
		if l.broken() == nil {
			l.capture()
		}
	}
	e.writeCheckpoints(context.Background())
}
