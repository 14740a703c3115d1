package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta"
)

// A group that nobody uses is deleted after its time; one that is declared, or has a consumer or a queue-based member, stays,
// and one that left counts from then.
func TestGroupsThatNobodyUsesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		topic := declare(t, bed, "event", engine.TopicSpec{Groups: []string{"declared"}, Policy: engine.Policy{GroupExpiry: time.Hour}})
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

// What a TTL or a bounded backlog does to a group is nobody's use of it: under steady traffic an abandoned group ends, too.
func TestPoliciesKeepNoGroupAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		bed := enginetest.New(t, func(c *engine.Config) { c.Registerer = reg })
		policies := map[string]engine.Policy{
			"ttl":   {TTL: time.Minute},
			"drops": {Backlog: engine.Backlog{Size: 1 << 10, WhenFull: engine.DropOldest}},
		}
		for name, p := range policies {
			p.GroupExpiry = time.Hour
			topic := declare(t, bed, name, engine.TopicSpec{Policy: p})
			begin(t, topic, "abandoned", engine.Latest)
			begin(t, topic, "used", engine.Latest)
		}
		p := newPublisher(bed.Engine)
		for range 70 {
			time.Sleep(time.Minute)
			for name := range policies {
				topic := bed.Topic(t, name, 0)
				for range 5 {
					p.publish(t, topic.Partition(0), "k", strings.Repeat("x", 100))
				}
				if g, err := topic.Group("used"); err != nil {
					t.Fatal("a group is gone whose client commits: ", err)
				} else {
					g.Commit(0, g.Mark(0)+1)
				}
			}
		}
		for name := range policies {
			if _, err := bed.Topic(t, name, 0).Group("abandoned"); !errors.Is(err, core.ErrGroupNotFound) {
				t.Errorf("%s: the abandoned group is still there: %v", name, err)
			}
		}
		if n := gathered(t, reg, "isthmus_groups_expired_total"); n != 2 {
			t.Errorf("%v groups are counted as expired", n)
		}
		bed.Stop(t)
	})
}

// How long a group has had nobody is known after a restart, and the time in which the gateway is off is nobody's fault. A
// client that came just before a crash counts.
func TestGroupExpiryOutlivesRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, func(c *engine.Config) { c.Defaults.Policy.GroupExpiry = time.Hour })
		alive := func(name string) bool {
			_, err := bed.Topic(t, "event", 0).Group(name)
			return err == nil
		}
		visit := func(name string) {
			c, _ := join(t, begin(t, bed.Topic(t, "event", 0), name, engine.Latest), "c", core.Shared, 1)
			c.Leave()
		}
		visit("idle")
		visit("visited")
		time.Sleep(40 * time.Minute)
		bed.Stop(t)
		time.Sleep(10 * time.Hour)
		bed.Start(t)
		time.Sleep(15 * time.Minute)
		if !alive("idle") || !alive("visited") {
			t.Fatal("deleted before its time: the hours in which the gateway was off are counted")
		}
		visit("visited")
		time.Sleep(time.Second)
		bed.Meta.OnApply(func([]meta.Write) error { return errors.New("killed") })
		bed.Kill()
		bed.Meta.OnApply(nil)
		bed.Start(t)
		time.Sleep(10 * time.Minute)
		if alive("idle") {
			t.Error("restarts begin the count again")
		}
		time.Sleep(40 * time.Minute)
		if !alive("visited") {
			t.Error("the client that came before the crash is forgotten")
		}
		bed.Stop(t)
	})
}
