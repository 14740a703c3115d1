package engine

import (
	"bytes"
	"context"
	"fmt"

	"isthmus/core/journal"
)

// CheckViews compares each view of each log with one that is made from the whole journal. The engine is at rest.
func (e *Engine) CheckViews() error {
	for _, l := range e.allLogs() {
		if first, _, _, err := l.journal.Bounds(context.Background()); err != nil || first > 1 || l.failure() != nil {
			continue
		}
		if t, ok := l.journal.(journal.Thinner); ok && t.Thinned() {
			continue // what was taken back may be gone, and what it took back not yet
		}
		shadow, err := l.shadow()
		if err != nil {
			return err
		}
		for i, s := range l.views.all {
			have, want := content(s.view), content(shadow.views.all[i].view)
			if !bytes.Equal(have, want) {
				return fmt.Errorf("view %s of journal %s is\n%q, made again it is\n%q", s.kind(), l.name, have, want)
			}
		}
	}
	return nil
}

// shadow is a log like l whose views have seen every block.
func (l *log) shadow() (*log, error) {
	s := newLog(l.eng, l.name, l.epoch, l.journal)
	for n, p := range l.tail.parts {
		q := &Partition{topic: p.topic, index: p.index, number: n, log: s, extent: -1, internal: p.internal}
		if p.internal {
			s.parking.Store(bareParking(q))
		}
		if p.dedup != nil {
			q.dedup = newDedup(p.dedup.since, p.dedup.begun)
		}
		s.tail.parts[n] = q
	}
	for rec, err := range l.journal.Read(context.Background(), 1, journal.Hint{}) {
		if err != nil {
			return nil, err
		}
		b, err := journal.Header(rec.Block)
		if err != nil {
			return nil, err
		}
		if err := s.feed(behind(s.views.all, rec.Seq), rec.Seq, b); err != nil {
			return nil, err
		}
	}
	s.unpark(func(target uint32) bool { return s.part(target) == nil })
	return s, nil
}

func content(v view) []byte {
	var b bytes.Buffer
	if write := v.capture(0); write != nil {
		_ = write(&b)
	}
	return b.Bytes()
}

// Checkpoints returns the block that each view's checkpoint covers, by journal and kind.
func (e *Engine) Checkpoints() map[string]journal.Seq {
	m := map[string]journal.Seq{}
	for _, l := range e.allLogs() {
		l.views.mu.Lock()
		for _, s := range l.views.all {
			m[l.name+"/"+s.kind()] = s.at
		}
		l.views.mu.Unlock()
	}
	return m
}

// AheadBytes is what key_shared groups hold of messages that wait for their consumer.
func (e *Engine) AheadBytes() int64 { return e.ahead.Load() }

// TrimNow is one round of the warden's.
func (e *Engine) TrimNow() { e.trim(context.Background()) }
