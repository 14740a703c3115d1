package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"isthmus/core"
	"isthmus/core/parked"
)

// OnCheck has f asked about half messages of a format whose producer has been silent. f passes the question on, to a
// producer that is there, and tells whether there was one. It must not block. What the producer says comes as a Commit or
// Rollback.
func (e *Engine) OnCheck(format core.Format, f func(m *ParkedMessage) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.checkers[format] = f
}

func (e *Engine) checker(format core.Format) func(*ParkedMessage) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.mu.checkers[format]
}

// maxChecked bounds how many producers are asked in one round.
const maxChecked = 256

// check has the producers of half messages asked, and gives up those that were asked often enough, or are too old.
func (k *parking) check(ctx context.Context, now int64) (n int, err error) {
	k.mu.Lock()
	items := k.mu.index.Checks(now, nil, maxChecked)
	k.mu.Unlock()
	if len(items) == 0 {
		return 0, nil
	}
	for _, it := range items {
		err := k.checkOne(it, now)
		if broken := k.log.failure(); err != nil && broken != nil {
			return n, err
		}
		if err != nil { // that one has to wait, the others do not
			k.log.eng.cfg.Log.Error("half message cannot be checked", "journal", k.log.name, "offset", it.Offset(), "err", err)
			k.postpone(it.Offset(), now+k.log.eng.cfg.Parked.CheckEvery.Milliseconds())
		}
		n++
	}
	return n, ctx.Err()
}

func (k *parking) checkOne(it parked.Item, now int64) error {
	limits, off := &k.log.eng.cfg.Parked, it.Offset()
	next := now + limits.CheckEvery.Milliseconds()
	m, err := k.message(off)
	switch {
	case errors.Is(err, ErrNotParked):
		k.postpone(off, next) // decided just now: the tombstone is on its way
		return nil
	case err != nil:
		return fmt.Errorf("read what is to be checked: %w", err)
	case m.Checks >= limits.MaxChecks || now-m.Entry.Commit > limits.MaxHalfAge.Milliseconds():
		return k.giveUp(m, now)
	}
	k.postpone(off, next)
	if f := k.log.eng.checker(m.Entry.Format); f == nil || !f(m) {
		return nil // a question that nobody heard does not count
	}
	k.flying.Add(1)
	r := parked.Record{Kind: parked.Checked, Of: off, Check: next, Checks: uint32(m.Checks + 1)}
	if _, err := k.producer.record(k, &r, nil, 0, nil); err != nil {
		k.flying.Add(-1)
		return err
	}
	return nil
}

func (k *parking) postpone(off core.Offset, check int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.index.Postpone(off, check)
}

// giveUp ends a half message about which nobody decided. Real brokers move it where no user reads it.
//
// Spec: RocketMQ DefaultTransactionalMessageCheckListener.resolveDiscardMsg@5.x
func (k *parking) giveUp(m *ParkedMessage, now int64) error {
	off := m.ID.offset()
	if !k.claim(off, &m.record) {
		return nil
	}
	k.log.eng.cfg.Log.Warn("half message is given up", "topic", m.Partition.topic.name.String(), "parked", int64(m.ID),
		"checks", m.Checks, "age", time.Duration(now-m.Entry.Commit)*time.Millisecond)
	k.log.eng.metrics.GivenUp.Inc()
	k.flying.Add(1)
	if err := k.bury(off, &m.record); err != nil {
		k.flying.Add(-1)
		k.unclaim(off)
		return err
	}
	return nil
}
