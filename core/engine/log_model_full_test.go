package engine_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
)

// modelDisk is a disk that is almost full, or is not.
type modelDisk struct {
	full  atomic.Bool
	since time.Time // when that changed last
}

// diskSlow is how long the engine may take to see the disk, and to let in what has waited for room.
const diskSlow = 7 * time.Second

func (d *modelDisk) storage() engine.Storage {
	return engine.Storage{
		Free: func() (free, total int64, err error) {
			if d.full.Load() {
				return 1, 1000, nil
			}
			return 500, 1000, nil
		},
		Floor: func(int64) int64 { return 100 },
	}
}

func (d *modelDisk) turn() {
	d.full.Store(!d.full.Load())
	d.since = time.Now()
}

// mayRefuse tells why a publish may not be refused for want of room.
func (d *modelDisk) mayRefuse() error {
	if !d.full.Load() && time.Since(d.since) > time.Second {
		return errors.New("a publish is refused, and the disk has room")
	}
	return nil
}

// mayAccept tells why a publish may not be accepted.
func (d *modelDisk) mayAccept(up time.Time) error {
	if d.full.Load() && time.Since(d.since) > time.Second && time.Since(up) > time.Second {
		return fmt.Errorf("a publish is accepted on a disk that is almost full for %v", time.Since(d.since))
	}
	return nil
}

// refused judges an error of a publish: a full backlog or disk may refuse it, and only those.
func (w *logWorld) refused(t *logTopic, x *logSent, err error) error {
	switch {
	case errors.Is(err, core.ErrUnavailable):
		x.told = max(x.told, errorsTold)
		return nil // the journal has failed
	case !errors.Is(err, core.ErrBacklogFull) && !errors.Is(err, core.ErrStorageFull):
		return fmt.Errorf("publish %d: %w", x.token, err)
	}
	if x.told != heardOf {
		delete(w.sent, x.token) // a later one may be accepted, so it never comes again
	}
	if errors.Is(err, core.ErrStorageFull) {
		return w.disk.mayRefuse()
	}
	return t.mayRefuse(w)
}
