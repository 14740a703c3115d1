package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// A group that nobody uses is deleted after its time; one that is declared, or has a consumer or a queue-based member, stays,
// and one that left counts from then.
func TestGroupsThatNobodyUsesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, func(c *engine.Config) { c.Defaults.GroupExpiry = time.Hour })
		topic := declare(t, bed, "event", engine.TopicSpec{Groups: []string{"declared"}})
		for _, name := range []string{"idle", "consumed", "pulled", "left"} {
			begin(t, topic, name, engine.Latest)
		}
		group := func(name string) *engine.Group {
			g, err := topic.Group(name)
			if err != nil && !errors.Is(err, core.ErrGroupNotFound) {
				t.Fatal(err)
			}
			return g
		}
		join(t, group("consumed"), "c", core.Shared, 1)
		group("pulled").Heartbeat("client")
		left, _ := join(t, group("left"), "c", core.Shared, 1)
		time.Sleep(59 * time.Minute)
		left.Leave()
		if group("idle") == nil {
			t.Fatal("deleted before its time")
		}
		time.Sleep(2 * time.Minute)
		if group("idle") != nil {
			t.Error("the idle group is still there")
		}
		time.Sleep(50 * time.Minute)
		if group("left") == nil {
			t.Error("a group is deleted before its time, counted from its last consumer")
		}
		time.Sleep(20 * time.Minute)
		if group("left") != nil {
			t.Error("the group whose consumer left is still there")
		}
		for _, name := range []string{"declared", "consumed", "pulled"} {
			if group(name) == nil {
				t.Errorf("%s is gone", name)
			}
		}
		bed.Restart(t)
		topic = bed.Topic(t, "event", 0)
		if group("idle") != nil || group("declared") == nil {
			t.Error("a restart brings groups back, or loses them")
		}
		bed.Stop(t)
	})
}
