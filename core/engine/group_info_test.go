package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// What people see of a group: backlog, in flight, age, attempts, who holds what, and why it does not go on.
func TestGroupInfoTellsHowAGroupStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		defer bed.Stop(t)
		topic := bed.Topic(t, "event", 2)
		g := begin(t, topic, "g", engine.Latest)
		p := newPublisher(bed.Engine)
		for range 5 {
			p.publish(t, topic.Partition(0), "k", "x")
		}
		time.Sleep(time.Minute)
		i := g.Info()
		if i.Backlog != 5 || i.InFlight != 0 || i.Stall != "no consumer" || i.OldestUnacked < time.Minute || i.OldestUnacked > 61*time.Second {
			t.Fatalf("without a consumer: %+v", i)
		}
		c, in := join(t, g, "one", core.Shared, 3)
		for range 3 {
			receive(t, in.got, "delivery")
		}
		c.Ack(0, core.Range{From: 1, To: 2})
		c.Nack(0, 2)
		synctest.Wait()
		i = g.Info()
		part, m := i.Parts[0], i.Members[0]
		if i.Backlog != 4 || part.InFlight != 1 || part.Waiting != 1 || part.Attempts != 1 || part.Holes != 1 || part.Mark != 0 || part.End != 5 {
			t.Fatalf("after an ack and a negative one: %+v", i)
		}
		if m.Name != "one" || m.InFlight != 1 || m.Delivered != 3 || m.Permits != 0 || !strings.Contains(i.Stall, "no permits") {
			t.Fatalf("the member: %+v, %q", m, i.Stall)
		}
		c.Permit(10)
		synctest.Wait()
		if i = g.Info(); i.Stall != "" || i.InFlight != 4 {
			t.Fatalf("with permits: %+v", i)
		}
	})
}

// Queue-based members take by themselves: a partition that one has locked has no "no consumer".
func TestGroupInfoKnowsQueueBasedMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		defer bed.Stop(t)
		topic := bed.Topic(t, "event", 2)
		g := begin(t, topic, "g", engine.Latest)
		p := newPublisher(bed.Engine)
		p.publish(t, topic.Partition(0), "k", "x")
		p.publish(t, topic.Partition(1), "k", "x")
		g.Heartbeat("m")
		if !g.Lock(1, "m", time.Minute) {
			t.Fatal("not locked")
		}
		i := g.Info()
		if i.Parts[0].Stall != "no member has locked or pulled it" || i.Parts[0].Holder != "" {
			t.Errorf("what nobody has taken: %+v", i.Parts[0])
		}
		if i.Parts[1].Stall != "" || i.Parts[1].Holder != "m" {
			t.Errorf("what a member has locked: %+v", i.Parts[1])
		}
		if !g.Pull(0, "m") {
			t.Fatal("not pulled")
		}
		if i = g.Info(); i.Stall != "" || i.Parts[0].Holder != "m" {
			t.Errorf("what a member pulls: %+v", i)
		}
	})
}

// Who holds which partition, in a failover group.
func TestGroupInfoTellsWhoHoldsWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		defer bed.Stop(t)
		g := begin(t, bed.Topic(t, "event", 3), "g", engine.Latest)
		join(t, g, "a", core.Failover, 1)
		join(t, g, "b", core.Failover, 1)
		i := g.Info()
		if i.Parts[0].Holder != "a" || i.Parts[1].Holder != "b" || i.Parts[2].Holder != "a" || len(i.Members[0].Holds) != 2 || len(i.Members[1].Holds) != 1 {
			t.Fatalf("%+v", i)
		}
	})
}

func TestSkipPassesOverWhatIsUnacknowledged(t *testing.T) {
	for _, connected := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			bed := enginetest.New(t, nil)
			defer bed.Stop(t)
			topic := bed.Topic(t, "event", 0)
			g := begin(t, topic, "g", engine.Latest)
			p := newPublisher(bed.Engine)
			for range 6 {
				p.publish(t, topic.Partition(0), "k", "x")
			}
			c, in := join(t, g, "one", core.Shared, 2)
			receive(t, in.got, "delivery")
			receive(t, in.got, "delivery")
			c.Ack(0, core.Range{From: 1, To: 2})
			if synctest.Wait(); !connected {
				c.Leave()
			}
			for _, step := range []struct{ n, mark int64 }{{0, 0}, {1, 2}, {2, 4}, {100, 6}} {
				if err := g.Skip(0, step.n); err != nil {
					t.Fatal(err)
				}
				if i := g.Info(); i.Parts[0].Mark != step.mark || i.Backlog != 6-max(step.mark, 1) && step.mark > 0 {
					t.Fatalf("skip %d: %+v", step.n, i)
				}
			}
			if g.Skip(7, 1) == nil {
				t.Fatal("there is no partition 7")
			}
		})
	}
}

// Ten thousand groups on one topic: what is quiet costs no tick anything, and each is begun without looking at the others.
func BenchmarkTenThousandGroups(b *testing.B) {
	bed := enginetest.New(b, nil)
	topic := bed.Topic(b, "event", 0)
	for i := range 10_000 {
		if _, err := topic.BeginGroup(fmt.Sprint("group-", i), engine.Start{At: engine.Latest}); err != nil {
			b.Fatal(err)
		}
	}
	g, err := topic.Group("group-5000")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("join and leave", func(b *testing.B) {
		sink := newInbox()
		for b.Loop() {
			c, err := g.Join(b.Context(), engine.Member{Name: "c", Mode: core.Shared, Sink: sink})
			if err != nil {
				b.Fatal(err)
			}
			c.Leave()
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if len(topic.Groups()) != 10_000 {
				b.Fatal("some are missing")
			}
		}
	})
}

// Members of a key_shared group tell which slots are theirs: the ranges when they are few, and how many in any case.
func TestGroupInfoTellsKeySlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := enginetest.New(t, nil)
		defer bed.Stop(t)
		for split, want := range map[engine.Split][]string{
			engine.SplitHalves: {"1-32768 (32768 of 65535)", "32769-65535 (32767 of 65535)"},
			engine.SplitRing:   {",… (", ",… ("},
		} {
			g := begin(t, bed.Topic(t, "event", 0), fmt.Sprint("g", split), engine.Latest)
			for _, name := range []string{"a", "b"} {
				m := engine.Member{Protocol: "pulsar", Name: name, Mode: core.KeyShared, Keys: engine.Keys{Split: split}, Sink: newInbox()}
				if _, err := g.Join(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, m := range g.Info().Members {
				got = append(got, m.Slots)
			}
			slices.Sort(got)
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("split %v: the slots are %q", split, got)
				}
			}
		}
	})
}
