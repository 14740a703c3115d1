package engine

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// Member describes a consumer that joins a group.
type Member struct {
	Protocol   string
	Name       string // failover order depends on it
	Priority   int    // 0 is the highest
	Mode       core.Mode
	Partitions []int32                // nil: all of the topic
	Filter     func(*core.Entry) bool // nil: all; what it refuses is acknowledged for the group. Called by runners
	AckTimeout time.Duration          // shared: what it holds unacknowledged for so long goes to others; 0: never
	Keys       Keys                   // key_shared: how keys are shared out, one for all members; SplitRing: as Defaults.Split says
	Slots      []SlotRange            // key_shared with SplitDeclared: its own
	Sink       Sink
}

// Sink takes what a consumer gets. The runner goroutine calls it (several, where a topic lies in several journals), so it
// must not block, and must not join or leave.
type Sink interface {
	// Deliver hands over entries: no more messages than were permitted, plus the rest of one entry. The slice is valid
	// during the call, the entries' bytes for ever.
	Deliver(ds []Delivery)
	// Active tells a failover consumer whether it is the one that receives.
	Active(partition int32, active bool)
	// Detached says that the group ended under the consumer; there will be no further calls.
	Detached(err error)
}

// Delivery is one entry for one consumer.
type Delivery struct {
	Partition *Partition
	Entry     core.Entry
	Attempt   int32        // 0 the first time
	Acked     []core.Range // messages inside the entry that are acknowledged already
}

// Consumer is a live member of a group. Its methods may be called by any goroutine, but Leave not from its Sink.
type Consumer struct {
	id        dispatch.ConsumerID
	group     *Group
	member    Member
	credit    atomic.Int64            // permits that no runner has drawn yet
	list      atomic.Pointer[[]place] // replaced under Group.changes when the topic grows
	delivered prometheus.Counter
	handed    atomic.Int64 // messages delivered to it
}

// place is a consumer's seat in one runner.
type place struct {
	r *runner
	s *seat
}

// places are where the consumer sits, one per log. The slice is immutable.
func (c *Consumer) places() []place {
	if ps := c.list.Load(); ps != nil {
		return *ps
	}
	return nil
}

// Sink returns what the consumer joined with.
func (c *Consumer) Sink() Sink { return c.member.Sink }

// Name returns the name it joined with.
func (c *Consumer) Name() string { return c.member.Name }

// Group returns its group.
func (c *Consumer) Group() *Group { return c.group }

// Reads tells whether the consumer reads this partition.
func (c *Consumer) Reads(partition int32) bool {
	return c.member.Partitions == nil || slices.Contains(c.member.Partitions, partition)
}

// Protocol returns the protocol it joined by.
func (c *Consumer) Protocol() string { return c.member.Protocol }

// Join adds a consumer to the group. It gets nothing before its first Permit. ErrBusy: the group is exclusive and taken,
// or others are connected in another mode.
func (g *Group) Join(ctx context.Context, m Member) (*Consumer, error) {
	g.changes.Lock()
	defer g.changes.Unlock()
	if g.gone {
		return nil, fmt.Errorf("group %s of %s: %w", g.name, g.topic.name, core.ErrGroupNotFound)
	}
	g.topic.eng.complete(&m)
	if err := g.admit(m); err != nil {
		return nil, err
	}
	g.touch()
	g.nextID++
	c := &Consumer{
		id: dispatch.ConsumerID(g.nextID), group: g, member: m,
		delivered: g.topic.eng.metrics.Deliveries.WithLabelValues(m.Protocol),
	}
	err := g.seat(c)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		g.leave(c)
		g.forgetReader()
		return nil, fmt.Errorf("join group %s of %s: %w", g.name, g.topic.name, err)
	}
	g.mu.Lock()
	g.mu.consumers = append(g.mu.consumers, c)
	g.mu.Unlock()
	g.relet() // before its first Permit
	return c, nil
}

// seat finds the runners of the consumer's partitions where it has no seat yet, then joins them: from then on they read
// its places. The caller holds g.changes.
func (g *Group) seat(c *Consumer) error {
	ps := slices.Clone(c.places())
	n := len(ps)
	for _, p := range g.topic.parts() {
		if !c.Reads(p.index) || slices.ContainsFunc(ps, func(x place) bool { return x.r.log == p.log }) {
			continue
		}
		r, err := g.runner(p.log, c.member.Mode)
		if err != nil {
			return err
		}
		ps = append(ps, place{r, &seat{c: c}})
	}
	c.list.Store(&ps)
	for _, x := range ps[n:] {
		if err := x.r.ask(func() error { return x.r.join(x.s) }); err != nil {
			return err
		}
	}
	return nil
}

// admit checks the mode and sets it when the group has no consumer. The caller holds g.changes.
func (g *Group) admit(m Member) error {
	for _, i := range m.Partitions {
		if g.topic.Partition(i) == nil {
			return fmt.Errorf("%s has no partition %d: %w", g.topic.name, i, core.ErrInvalid)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.mu.consumers) > 0 {
		if g.mu.mode != m.Mode {
			return fmt.Errorf("group %s of %s is %v, not %v: %w", g.name, g.topic.name, g.mu.mode, m.Mode, core.ErrBusy)
		}
		if err := sameKeys(&m, g.mu.keys); err != nil {
			return fmt.Errorf("group %s of %s: %w", g.name, g.topic.name, err)
		}
	}
	g.mu.keys = m.Keys
	if g.mu.mode != m.Mode {
		g.mu.mode = m.Mode
		g.roster.touch()
		g.changed()
	}
	return nil
}

// Leave takes the consumer out of its group; what it has not acknowledged goes to others. On return the runner has
// forgotten it and its Sink is not called any more.
func (c *Consumer) Leave() {
	g := c.group
	g.changes.Lock()
	defer g.changes.Unlock()
	g.mu.Lock()
	g.mu.consumers = slices.DeleteFunc(g.mu.consumers, func(x *Consumer) bool { return x == c })
	g.mu.Unlock()
	g.touch()
	g.leave(c)
	g.relet()
	g.forgetReader()
}

// Dismisser is a Sink whose client learns of a new place by being closed: it joins again, and lets go of what it was sent.
// Spec: Pulsar PersistentSubscription.resetCursor disconnects the consumers first
type Dismisser interface{ Dismiss() }

// ResetAll moves the group in several partitions at once, as somebody wants who is none of its members. The consumers whose
// Sinks are Dismissers leave before reset is called, so that nothing they acknowledge counts for the new place, and are
// dismissed after it.
func (g *Group) ResetAll(reset func() error) error {
	cs := slices.DeleteFunc(g.Consumers(), func(c *Consumer) bool {
		_, ok := c.Sink().(Dismisser)
		return !ok
	})
	for _, c := range cs {
		c.Leave()
	}
	err := reset()
	for _, c := range cs {
		c.Sink().(Dismisser).Dismiss()
	}
	return err
}

// forgetReader ends a non-durable group that has no consumer left. The caller holds g.changes.
func (g *Group) forgetReader() {
	if !g.durable && !g.gone && len(g.Consumers()) == 0 {
		_ = g.forget() // touches no store
	}
}

// leave takes a consumer out of the runners it is in, and ends those that have nobody left. The caller holds g.changes.
func (g *Group) leave(c *Consumer) {
	for _, x := range c.places() {
		_ = x.r.ask(func() error { x.r.leave(c); return nil }) // an ended runner has forgotten it
	}
	for l, r := range g.runners {
		if r.seated.Load() == 0 {
			r.stop()
			delete(g.runners, l)
		}
	}
}

// Permit allows n more messages.
func (c *Consumer) Permit(n int) {
	if n <= 0 {
		return
	}
	c.credit.Add(int64(n))
	for _, x := range c.places() {
		x.r.mail.wake()
	}
}

// Ack acknowledges the messages of a range, one by one.
func (c *Consumer) Ack(partition int32, r core.Range) {
	c.post(input{kind: inputAck, partition: partition, a: r.From, b: r.To})
}

// AckThrough acknowledges everything of a partition below next. Shared groups ignore it.
func (c *Consumer) AckThrough(partition int32, next core.Offset) {
	c.post(input{kind: inputAckThrough, partition: partition, a: next})
}

// Nack asks for an entry that the consumer holds to be delivered again.
func (c *Consumer) Nack(partition int32, base core.Offset) {
	c.post(input{kind: inputNack, partition: partition, a: base})
}

// NackAfter asks for it to be delivered again after a delay. In exclusive and failover groups all that follows it waits too.
func (c *Consumer) NackAfter(partition int32, base core.Offset, d time.Duration) {
	c.post(input{kind: inputNack, partition: partition, a: base, b: c.group.topic.eng.now().Add(d).UnixMilli()})
}

// Hold lets the consumer hold an entry that it has for so long from now on, instead of its AckTimeout; 0: as long as it is
// connected. Nobody else gets the entry before. Only shared groups take anything back.
func (c *Consumer) Hold(partition int32, base core.Offset, d time.Duration) {
	in := input{kind: inputHold, partition: partition, a: base}
	if d > 0 {
		in.b = c.group.topic.eng.now().Add(d).UnixMilli()
	}
	c.post(in)
}

// NackAll asks for everything that the consumer holds.
func (c *Consumer) NackAll() {
	for _, x := range c.places() {
		x.r.mail.post(input{kind: inputNackAll, consumer: c.id})
	}
}

func (c *Consumer) post(in input) {
	p := c.group.topic.Partition(in.partition)
	if p == nil {
		return
	}
	in.consumer = c.id
	for _, x := range c.places() {
		if x.r.log == p.log {
			x.r.mail.post(in)
			return
		}
	}
}
