package engine

import (
	"errors"
	"fmt"
	"time"

	"isthmus/core"
)

// idleness is since when nothing was published to a topic. Owned by the warden.
type idleness struct {
	end   core.Offset // of all partitions together
	since time.Time
}

// removeIdle deletes topics that clients have made, that nobody has published to for as long as the configuration says, and
// that nobody uses. What retention still keeps keeps the topic.
// Spec: Pulsar brokerDeleteInactiveTopicsMode=delete_when_subscriptions_caught_up
func (e *Engine) removeIdle(now time.Time) {
	if e.cfg.Defaults.DeleteWhenIdle <= 0 {
		return
	}
	for _, t := range e.Topics() {
		if t.shape.Load().declared || !t.idle.over(now, t.end(), t.patience()) {
			continue
		}
		end := t.end()
		err := t.delete(func() error {
			if t.end() != end { // somebody was faster
				return fmt.Errorf("it is in use: %w", core.ErrBusy)
			}
			return t.unused()
		})
		if err != nil && !errors.Is(err, core.ErrBusy) {
			e.cfg.Log.Error("idle topic not deleted", "topic", t.name.String(), "err", err)
		}
	}
}

// over tells whether the end has stood still for that long.
func (i *idleness) over(now time.Time, end core.Offset, patience time.Duration) bool {
	if i.since.IsZero() || i.end != end {
		i.end, i.since = end, now
	}
	return now.Sub(i.since) >= patience
}

func (t *Topic) patience() time.Duration {
	d, r := t.eng.cfg.Defaults, t.policy().Retention
	return max(d.DeleteWhenIdle, r.Age, t.eng.cfg.TrimFloor)
}

// end is the sum of the offsets after the last durable messages.
func (t *Topic) end() (sum core.Offset) {
	for _, p := range t.parts() {
		sum += p.committed.Load()
	}
	return sum
}
