package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"isthmus/core/journal"
	"isthmus/core/meta"
)

// loadCheckpoints returns all records by their keys.
func (e *Engine) loadCheckpoints() (map[string]meta.CheckpointRecord, error) {
	recs := map[string]meta.CheckpointRecord{}
	err := e.cfg.Meta.Load(meta.Checkpoints, func(key string, v []byte) error {
		var rec meta.CheckpointRecord
		if err := meta.DecodeJSON(v, &rec); err != nil {
			return fmt.Errorf("checkpoint %q: %w", key, err)
		}
		recs[key] = rec
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load checkpoints: %w", err)
	}
	return recs, nil
}

// replay takes the offsets that metadata knows and the views' checkpoints, and reads the blocks that came after them: what
// the last tick before a crash had not saved, and what is in no checkpoint yet. It is alone with the log, and holds no lock.
func (l *log) replay(ctx context.Context, checkpoints map[string]meta.CheckpointRecord) error {
	l.placeOffsets()
	if err := l.restoreViews(ctx, checkpoints); err != nil {
		return err
	}
	durable := journal.Seq(l.saved.Durable)
	from, active := durable+1, l.activeViews()
	for _, s := range active {
		from = min(from, s.at+1)
	}
	blocks, bytes := 0, int64(0)
	for rec, err := range l.journal.Read(ctx, from, journal.Hint{}) {
		if err != nil {
			return fmt.Errorf("replay journal %s: %w", l.name, err)
		}
		b, err := journal.Header(rec.Block)
		if err != nil {
			return fmt.Errorf("replay journal %s block %d: %w", l.name, rec.Seq, err)
		}
		if rec.Seq > durable {
			l.markBefore(rec.Seq, b.Time, int64(len(rec.Block)))
			if err := l.replayBlock(rec.Seq, b); err != nil {
				return err
			}
		}
		if err := l.feed(behind(active, rec.Seq), rec.Seq, b); err != nil {
			return fmt.Errorf("replay journal %s: %w: %w", l.name, journal.ErrDamaged, err)
		}
		blocks++
		bytes += int64(len(rec.Block))
	}
	for _, p := range l.tail.parts { // emptied up to where the journal had come, and the journal has lost that
		if first := p.first.Load(); p.next < first {
			p.next = first
			p.committed.Store(first)
		}
	}
	l.jump()
	l.views.written = bytes
	if len(active) < len(l.views.all) {
		l.views.written = l.eng.cfg.ViewBytes // how much lies behind the others' checkpoints is not known: take one soon
	}
	if blocks > 0 {
		l.eng.cfg.Log.Info("journal replayed", "journal", l.name, "blocks", blocks, "bytes", bytes, "seq", uint64(l.tail.seq))
	}
	return nil
}

// begins is the first block that must be there. Metadata forgets a mark before the journal forgets the blocks in front of the
// next one. The caller holds l.tail.
func (l *log) begins() journal.Seq {
	if len(l.tail.marks) == 0 {
		return 1
	}
	return l.tail.marks[0].seq
}

func (l *log) placeOffsets() {
	for _, o := range l.saved.Next {
		if p := l.tail.parts[o.Partition]; p != nil {
			p.next = o.Offset
			p.committed.Store(o.Offset)
		}
	}
	for _, o := range l.saved.Bytes {
		if p := l.tail.parts[o.Partition]; p != nil {
			p.bytes = o.Offset
		}
	}
	if len(l.tail.marks) > 0 {
		for n, o := range l.tail.marks[0].next {
			if p := l.tail.parts[n]; p != nil {
				p.first.Store(max(o, p.first.Load()))
			}
		}
		l.tail.sinceMark = l.eng.cfg.MarkBytes // take a fresh one soon, the true distance is not known
	}
}

func (l *log) replayBlock(seq journal.Seq, b journal.Block) error {
	for x := range b.Extents() {
		p := l.tail.parts[x.Partition]
		if p == nil {
			continue // its topic was deleted
		}
		if x.First < p.next {
			return fmt.Errorf("journal %s block %d issues offset %d of partition number %d again, next is %d: %w",
				l.name, seq, x.First, x.Partition, p.next, journal.ErrDamaged)
		}
		p.next = x.Next()
		p.bytes += int64(len(x.Data))
		p.committed.Store(x.Next())
	}
	l.last = max(l.last, b.Time)
	l.tail.seq, l.tail.time = seq, l.last
	return nil
}

// activeViews are those that something in the log can concern.
func (l *log) activeViews() (active []*viewState) {
	for _, s := range l.views.all {
		if s.active(l.tail.parts) {
			active = append(active, s)
		}
	}
	return active
}

// behind are the views that have not seen a block.
func behind(ss []*viewState, seq journal.Seq) (vs []view) {
	for _, s := range ss {
		if s.at < seq {
			vs = append(vs, s.view)
		}
	}
	return vs
}

// restoreViews restores every view that has something to hold, and removes files that belong to none. A checkpoint that is
// missing or broken costs a pass over the whole journal, if that is whole; else it is damage.
func (l *log) restoreViews(ctx context.Context, checkpoints map[string]meta.CheckpointRecord) error {
	first, _, _, err := l.journal.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("replay journal %s: %w", l.name, err)
	}
	if want := l.begins(); first > want {
		return fmt.Errorf("journal %s: %w", l.name, &journal.Damage{
			Where: l.name, Seq: want, Why: fmt.Sprintf("missing: the journal begins with block %d", first),
		})
	}
	var errs []error
	for _, s := range l.views.all {
		rec, known := checkpoints[l.name+separator+s.kind()]
		s.at, s.files = journal.Seq(rec.Seq), rec.Files
		if !s.active(l.tail.parts) {
			s.whole = true
			continue
		}
		if err := l.restoreView(s, rec); err != nil {
			s.reset()
			s.at, s.files = 0, nil
			if t, ok := l.journal.(journal.Thinner); first > 1 || ok && t.Thinned() {
				errs = append(errs, fmt.Errorf("journal %s begins with block %d or was thinned, so view %s cannot be made again: %w: %w",
					l.name, first, s.kind(), journal.ErrDamaged, err))
				continue
			}
			l.eng.cfg.Log.Error("checkpoint is broken", "journal", l.name, "view", s.kind(), "err", err)
		}
		if known && s.at+1 < first && s.at > 0 {
			errs = append(errs, fmt.Errorf("journal %s begins with block %d, view %s needs %d: %w",
				l.name, first, s.kind(), s.at+1, journal.ErrDamaged))
		}
		if s.at == 0 && l.saved.Durable > 0 {
			l.eng.cfg.Log.Info("view is made again from the whole journal", "journal", l.name, "view", s.kind())
		}
	}
	if len(errs) == 0 {
		l.removeOrphans()
	}
	return errors.Join(errs...)
}

// restoreView reads the files of a checkpoint: each twice, because nothing of a broken one may get into the view.
func (l *log) restoreView(s *viewState, rec meta.CheckpointRecord) error {
	store, ok := l.eng.cfg.Journals.(journal.Checkpoints)
	for _, f := range rec.Files {
		if !ok {
			return fmt.Errorf("checkpoint %s: the journals keep no checkpoints", f.Name)
		}
		var sum summed
		sum.w = io.Discard
		if err := readFile(store, l.name, f.Name, func(r io.Reader) error {
			_, err := io.Copy(&sum, r)
			return err
		}); err != nil {
			return err
		}
		if sum.n != f.Size || sum.crc != f.CRC {
			return fmt.Errorf("checkpoint %s of journal %s: %d bytes with checksum %08x, want %d with %08x",
				f.Name, l.name, sum.n, sum.crc, f.Size, f.CRC)
		}
		if err := readFile(store, l.name, f.Name, s.restore); err != nil {
			return err
		}
	}
	return nil
}

func readFile(store journal.Checkpoints, name, file string, read func(io.Reader) error) error {
	r, err := store.OpenCheckpoint(name, file)
	if err != nil {
		return err
	}
	if err := errors.Join(read(r), r.Close()); err != nil {
		return fmt.Errorf("checkpoint %s of journal %s: %w", file, name, err)
	}
	return nil
}
