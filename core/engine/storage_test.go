package engine_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// Below the watermark producers are refused, consumers and acknowledgements go on, and it ends by itself.
func TestProducersAreRefusedBeforeTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Int64
		free.Store(1000)
		bed := enginetest.New(t, func(c *engine.Config) {
			c.Storage = engine.Storage{
				Free: func() (int64, int64, error) {
					if free.Load() < 0 {
						return 0, 0, errors.New("gone")
					}
					return free.Load(), 2000, nil
				},
				Floor: func(total int64) int64 { return total / 20 },
			}
		})
		topic := bed.Topic(t, "event", 0)
		g := begin(t, topic, "g", engine.Latest)
		c, in := join(t, g, "c", core.Shared, 1)
		p := newPublisher(bed.Engine)
		p.publish(t, topic.Partition(0), "k", "x")
		for _, step := range []struct {
			free int64
			full bool
		}{{100, false}, {99, true}, {105, true}, {-1, true}, {110, false}, {-1, false}, {105, false}, {0, true}} {
			free.Store(step.free)
			time.Sleep(time.Second)
			err := p.Publish(topic.Partition(0), message("k", "y"), 0)
			if errors.Is(err, core.ErrStorageFull) != step.full || errors.Is(bed.Engine.Health(), core.ErrStorageFull) != step.full {
				t.Errorf("with %d free: %v, health %v", step.free, err, bed.Engine.Health())
			}
		}
		d := receive(t, in.got, "delivery")
		c.Ack(0, core.Range{From: d.Entry.Base, To: d.Entry.End()})
		time.Sleep(time.Second)
		if g.Mark(0) != 1 {
			t.Errorf("an acknowledgement was lost: mark %d", g.Mark(0))
		}
		bed.Stop(t)
	})
}
