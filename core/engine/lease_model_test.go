package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// Members of several kinds come and go in random order, under load, in virtual time: every message is at one of them once,
// since all acknowledge what they get, and after a quiet minute with one member left nothing waits (no stall).
// ACCEPTANCE appendix B, B-3
func TestS2_28_MembersComeAndGo(t *testing.T) {
	for seed := range uint64(12) {
		mode := []core.Mode{core.Shared, core.KeyShared, core.Failover}[seed%3]
		t.Run(fmt.Sprint(mode, " ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newMixed(t, seed, mode).run() })
		})
	}
}

type mixed struct {
	*testing.T
	rng       *rand.Rand
	mode      core.Mode
	bed       *enginetest.Bed
	g         *engine.Group
	pub       *publisher
	pullers   []*puller
	consumers []*engine.Consumer
	inboxes   []*inbox
	got       map[string]int
	names     int
}

func newMixed(t *testing.T, seed uint64, mode core.Mode) *mixed {
	m := &mixed{T: t, rng: rand.New(rand.NewPCG(seed, 1)), mode: mode, got: map[string]int{}}
	m.bed = enginetest.New(t, func(c *engine.Config) { c.Slots = 1 + int(seed%4); c.FailoverGrace = -1 })
	topic := m.bed.Topic(t, "event", 5)
	m.g, m.pub = begin(t, topic, "g", engine.Latest), newPublisher(m.bed.Engine)
	return m
}

func (m *mixed) run() {
	for range 150 {
		switch n := m.rng.IntN(10); {
		case n < 4:
			for range m.rng.IntN(8) {
				m.pub.publish(m.T, m.g.Topic().Partition(m.rng.Int32N(5)), fmt.Sprint("k", m.rng.IntN(20)), "x")
			}
		case n == 4 && len(m.consumers) < 3:
			if m.mode == core.Failover { // who takes over without a grace gets again what is not acknowledged
				m.take()
			}
			m.names++
			c, in := join(m.T, m.g, fmt.Sprint("consumer-", m.names), m.mode, 1000)
			m.consumers, m.inboxes = append(m.consumers, c), append(m.inboxes, in)
		case n == 5 && len(m.consumers) > 0:
			m.take()
			i := m.rng.IntN(len(m.consumers))
			m.consumers[i].Leave()
			m.consumers = append(m.consumers[:i:i], m.consumers[i+1:]...)
			m.inboxes = append(m.inboxes[:i:i], m.inboxes[i+1:]...)
		case n == 6 && len(m.pullers) < 3:
			m.names++
			p := &puller{g: m.g, name: fmt.Sprint("client-", m.names), got: m.got, at: map[int32]core.Offset{}}
			for i := range m.g.Topic().Logs() { // as a client asks when it is new
				p.at[i] = m.g.Mark(i)
			}
			m.g.Heartbeat(p.name)
			m.pullers = append(m.pullers, p)
		case n == 7 && len(m.pullers) > 0:
			i := m.rng.IntN(len(m.pullers))
			m.g.Forget(m.pullers[i].name)
			m.pullers = append(m.pullers[:i:i], m.pullers[i+1:]...)
		default:
			m.turn()
		}
	}
	if len(m.consumers)+len(m.pullers) == 0 {
		c, in := join(m.T, m.g, "last", m.mode, 1000)
		m.consumers, m.inboxes = append(m.consumers, c), append(m.inboxes, in)
	}
	for range 60 {
		m.turn()
	}
	m.judge()
	m.bed.Stop(m.T)
}

// turn lets everybody have what there is, and a second pass.
func (m *mixed) turn() {
	m.take()
	for _, p := range m.pullers {
		p.asks = len(m.consumers) == 0
		p.turn(m.T)
	}
	time.Sleep(time.Second) // of virtual time
}

// take acknowledges what consumers have got.
func (m *mixed) take() {
	for again := true; again; {
		again = false
		synctest.Wait()
		for i, in := range m.inboxes {
			select {
			case d := <-in.got:
				again = true
				for o := d.Entry.Base; o < d.Entry.End(); o++ {
					m.got[fmt.Sprint(d.Partition.Index(), "/", o)]++
				}
				if m.mode == core.Failover {
					m.consumers[i].AckThrough(d.Partition.Index(), d.Entry.End())
				} else {
					m.consumers[i].Ack(d.Partition.Index(), core.Range{From: d.Entry.Base, To: d.Entry.End()})
				}
				m.consumers[i].Permit(int(d.Entry.Count))
			default:
			}
		}
	}
}

func (m *mixed) judge() {
	for i := range m.g.Topic().Logs() {
		_, end := m.g.Topic().Partition(i).Bounds()
		if m.g.Mark(i) != end {
			m.Errorf("partition %d stands at %d of %d: %+v", i, m.g.Mark(i), end, m.g.Info())
		}
		for o := range end {
			if n := m.got[fmt.Sprint(i, "/", o)]; n != 1 {
				m.Errorf("message %d/%d came %d times", i, o, n)
			}
		}
	}
}
