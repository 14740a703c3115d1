package engine_test

import (
	"sync"
	"testing"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

type counting struct {
	mu              sync.Mutex
	detached, after int
}

func (c *counting) Deliver([]engine.Delivery) { c.call() }
func (c *counting) Active(int32, bool)        { c.call() }
func (c *counting) call() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.detached > 0 {
		c.after++
	}
}

func (c *counting) Detached(error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detached++
}

func TestDetachedComesOnceAndLast(t *testing.T) {
	for _, end := range []string{"delete", "stop"} {
		bed := enginetest.New(t, func(c *engine.Config) { c.Slots = 4 })
		topic := bed.Topic(t, "event", 4)
		g := begin(t, topic, "g", engine.Latest)
		s := &counting{}
		c, err := g.Join(t.Context(), engine.Member{Name: "c", Mode: core.Failover, Sink: s})
		if err != nil {
			t.Fatal(err)
		}
		c.Permit(100)
		if end == "delete" {
			if err := topic.DeleteGroup("g"); err != nil {
				t.Fatal(err)
			}
		}
		bed.Stop(t)
		s.mu.Lock()
		if s.detached != 1 || s.after > 0 {
			t.Errorf("%s: detached %d times, %d calls after that", end, s.detached, s.after)
		}
		s.mu.Unlock()
	}
}
