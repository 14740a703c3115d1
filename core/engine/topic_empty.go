package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// EmptyTopic drops everything that was committed to a topic until now: readers begin and groups stand after it, offsets go
// on. It is in effect, also after a crash, when it returns; the bytes go with a later trim.
func (e *Engine) EmptyTopic(n core.TopicName) error {
	t, err := e.Topic(n)
	if err != nil {
		return err
	}
	if t.Volatile() {
		return fmt.Errorf("empty %s: it keeps nothing: %w", n, core.ErrUnsupported)
	}
	ends, err := t.empty()
	if err != nil {
		return fmt.Errorf("empty %s: %w", n, err)
	}
	for _, g := range t.Groups() {
		for i, end := range ends {
			g.advance(int32(i), end)
		}
	}
	e.cfg.Log.Info("topic emptied", "topic", n.String())
	return nil
}

// empty moves the first offsets, in metadata first. Cursors need no write: none is ever before the first offset.
func (t *Topic) empty() ([]core.Offset, error) {
	e := t.eng
	e.meta.Lock()
	defer e.meta.Unlock()
	if t.removed {
		return nil, core.ErrTopicNotFound
	}
	rec, ps := t.record, t.parts()
	rec.First = make([]core.Offset, len(ps))
	for i, p := range ps {
		rec.First[i] = p.committed.Load()
	}
	for _, p := range ps { // metadata never names what the disk may still lose
		if s, ok := p.log.journal.(journal.Syncer); ok {
			if err := s.Sync(context.Background()); err != nil {
				return nil, errors.Join(core.ErrUnavailable, err)
			}
		}
	}
	if err := e.cfg.Meta.Apply([]meta.Write{{Bucket: meta.Topics, Key: t.name.String(), Value: meta.EncodeJSON(rec)}}); err != nil {
		return nil, err
	}
	t.record = rec
	for i, p := range ps {
		p.log.tail.Lock()
		p.first.Store(max(p.first.Load(), rec.First[i]))
		p.log.tail.Unlock()
	}
	return slices.Clone(rec.First), nil
}
