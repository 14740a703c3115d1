package engine_test

import (
	"errors"
	"maps"
	"slices"

	"isthmus/core/engine"
)

// halfState is what is known of a half message: parked until it is committed or rolled back.
type halfState struct {
	is         bool
	id         engine.ParkedID // 0: nobody was told that it is parked
	rolledBack bool            // else, once decided, committed
	decided    bool
	done       bool // the decision is durable
}

// decision marks the token of a decision.
const decision = 1 << 62

// decide commits or rolls back the oldest half message that waits. Until it is told that this is durable, both may be.
func (w *crashWorld) decide() {
	for _, l := range w.logs {
		for _, token := range slices.Sorted(maps.Keys(l.sent)) {
			s := l.sent[token]
			if !s.half.is || s.half.id == 0 || s.half.decided {
				continue
			}
			s.half.decided, s.half.rolledBack = true, w.rand.IntN(2) == 0
			lost := s.maybe
			s.maybe, s.due = true, 1
			settle := w.pub.Commit
			if s.half.rolledBack {
				settle = w.pub.Rollback
			}
			if err := settle(s.half.id, uint64(token)|decision); err != nil && !(lost && errors.Is(err, engine.ErrNotParked)) {
				w.excuse(err)
			}
			return
		}
	}
}
