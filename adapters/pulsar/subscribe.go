package pulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

var modes = map[int32]core.Mode{
	wire.SubExclusive: core.Exclusive, wire.SubShared: core.Shared, wire.SubFailover: core.Failover,
	wire.SubKeyShared: core.KeyShared,
}

// SUBSCRIBE. A group is of the whole topic: the first partition that is subscribed places the cursors of all. Whoever is
// in the way is probed before the client is told that the subscription is busy.
// Deviates: read_compacted reads everything; schemas are not compared; the whole of a
// partitioned topic may be subscribed.
// Spec: Pulsar CommandSubscribe → CommandSuccess
func (s *session) subscribe(b []byte) error {
	q := wire.NewSubscribe()
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	if s.consumer(q.ConsumerID) != nil {
		s.send(wire.TypeSuccess, &wire.Success{RequestID: q.RequestID})
		return nil
	}
	k := waitKey{consumer: true, id: q.ConsumerID}
	if s.waiting(k) {
		s.fail(q.RequestID, fmt.Errorf("consumer %d is already present on the connection: %w", q.ConsumerID, errInProgress))
		return nil
	}
	c, err := s.newConsumer(&q)
	if err == nil {
		err = c.join(s.ctx, &q)
	}
	if rivals := c.rivals(); errors.Is(err, core.ErrBusy) && len(rivals) > 0 {
		s.later(k, func(ctx context.Context) { s.admit(ctx, q.RequestID, c, c.compete(ctx, &q, rivals)) })
		return nil
	}
	s.admit(s.ctx, q.RequestID, c, err)
	return nil
}

// newConsumer checks a request and makes the consumer, not yet in any group.
func (s *session) newConsumer(q *wire.Subscribe) (*consumer, error) {
	if err := s.room(); err != nil {
		return nil, err
	}
	mode, ok := modes[q.SubType]
	if !ok {
		return nil, fmt.Errorf("subscription type %d: %w", q.SubType, core.ErrUnsupported)
	}
	if strings.TrimSpace(q.Subscription) == "" {
		return nil, fmt.Errorf("empty subscription name: %w", errNotAllowed)
	}
	t, err := s.srv.resolve(q.Topic)
	if err != nil {
		return nil, err
	}
	if err := s.allow(t.name, auth.Consume); err != nil {
		return nil, err
	}
	if t, err = s.srv.open(q.Topic, q.ForceCreation); err != nil {
		return nil, err
	}
	if q.HasSchema && q.Schema.Type > 0 { // 0 and less: bytes, or whatever the topic has
		if _, err := s.srv.schemas.declare(t.name.String(), &q.Schema); err != nil {
			return nil, err
		}
	}
	c := &consumer{
		sess: s, id: q.ConsumerID, name: q.ConsumerName, target: t, topic: t.topic, part: t.partition(), index: t.index,
		mode: mode, durable: q.Durable && !t.topic.Volatile(), priority: int(q.Priority), subscription: q.Subscription,
	}
	if c.name == "" {
		c.name = s.srv.newName()
	}
	c.epoch.Store(epochOf(q.HasConsumerEpoch, q.ConsumerEpoch))
	c.mu.size = usualSize
	c.held = make([]held, t.topic.Logs())
	return c, nil
}

// join begins the group if it is new and takes a seat in it.
func (c *consumer) join(ctx context.Context, q *wire.Subscribe) error {
	start := startOf(q, c.part, time.Now())
	if at, ok := c.sess.srv.sought(c.key()); ok && !c.durable {
		// Spec: Pulsar CommandSeek on a reader: the position survives its forced disconnect, start_message_id is stale
		start.At, start.Offset = engine.AtOffset, at
	}
	m := engine.Member{Protocol: protocolName, Name: c.name, Priority: c.priority, Mode: c.mode, Sink: c}
	if c.index >= 0 {
		m.Partitions = []int32{c.index}
	}
	if c.mode == core.KeyShared {
		m.Keys, m.Slots = keysOf(&q.Keys)
	}
	for try := 0; ; try++ {
		g, err := c.topic.BeginGroup(c.groupName(), start)
		if err != nil {
			return subscriptionError(err)
		}
		if g.Durable() != c.durable {
			return fmt.Errorf("subscription %s is durable or not, unlike asked: %w", c.subscription, errNotAllowed)
		}
		c.group = g
		c.sample(ctx)
		c.member, err = g.Join(ctx, m)
		if errors.Is(err, core.ErrGroupNotFound) && try < 3 {
			continue // a reader's group, gone between the two calls
		}
		return c.busyText(err)
	}
}

// keysOf says how a Key_Shared subscription shares out its slots, and which ones a consumer wants for itself.
// Spec: Pulsar KeySharedMeta: STICKY ranges lie in 0..65535, both ends included
func keysOf(m *wire.KeySharedMeta) (engine.Keys, []engine.SlotRange) {
	keys := engine.Keys{Split: engine.SplitRing, OutOfOrder: m.OutOfOrder}
	if m.Mode != wire.KeySharedSticky {
		return keys, nil
	}
	keys.Split = engine.SplitDeclared
	var slots []engine.SlotRange
	for _, r := range m.Ranges {
		slots = append(slots, engine.SlotRange{From: uint32(r.Start), To: uint32(r.End)}) // a negative one is out of range
	}
	return keys, slots
}

// subscriptionError tells a bad subscription name from a bad topic name.
func subscriptionError(err error) error {
	if errors.Is(err, core.ErrInvalid) {
		return fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	return err
}

func (c *consumer) busyText(err error) error {
	if !errors.Is(err, core.ErrBusy) || errors.Is(err, engine.ErrSlots) {
		return err
	}
	if c.group.Mode() != c.mode || c.mode == core.KeyShared {
		return fmt.Errorf("Subscription is of different type: %w", err)
	}
	return fmt.Errorf("Exclusive consumer is already connected: %w", err)
}

// groupName is the engine's name of the subscription. A reader's position is an id of one partition, so its group is of
// one partition too.
func (c *consumer) groupName() string {
	if c.durable || c.index < 0 {
		return c.subscription
	}
	return fmt.Sprintf("%s%s%d", c.subscription, partitionMark, c.index)
}

// rivals are the sessions that stand in the way and may be dead. None when somebody is surely alive: this session, or a
// client of another protocol.
func (c *consumer) rivals() (ss []*session) {
	if c == nil || c.group == nil {
		return nil
	}
	for _, other := range c.group.Consumers() {
		if c.index >= 0 && !other.Reads(c.index) && c.group.Mode() == c.mode {
			continue
		}
		o, ok := other.Sink().(*consumer)
		if !ok || o.sess == c.sess {
			return nil
		}
		ss = append(ss, o.sess)
	}
	return ss
}

// compete probes those in the way, throws out the dead, and joins again.
func (c *consumer) compete(ctx context.Context, q *wire.Subscribe, rivals []*session) error {
	for _, r := range rivals {
		if !r.alive(ctx) {
			r.evict()
			r.dropConsumers(c.group)
		}
	}
	return c.join(ctx, q)
}

// dropConsumers takes a dead session's consumers out of a group without waiting for its reader.
func (s *session) dropConsumers(g *engine.Group) {
	s.mu.Lock()
	var cs []*consumer
	for _, c := range s.mu.consumers {
		if c.group == g {
			cs = append(cs, c)
		}
	}
	s.mu.Unlock()
	for _, c := range cs {
		c.leave()
	}
}

// admit makes a consumer that has joined known, or answers why it could not. A request that waited may have been
// cancelled meanwhile, and is not answered then.
func (s *session) admit(ctx context.Context, request uint64, c *consumer, err error) {
	if err != nil {
		if ctx.Err() == nil {
			s.fail(request, err)
		}
		return
	}
	s.mu.Lock()
	gone, ended := s.mu.over || ctx.Err() != nil, c.ended
	if !gone && !ended {
		s.mu.consumers[c.id] = c
	}
	s.mu.Unlock()
	if gone || ended {
		c.leave()
	}
	if gone {
		return
	}
	s.log.Debug("subscribed", "topic", c.target.String(), "group", c.subscription, "consumer", c.name, "mode", c.mode.String())
	s.send(wire.TypeSuccess, &wire.Success{RequestID: request})
	if ended { // between joining and here: by another's SEEK, or the end of the group
		s.send(wire.TypeCloseConsumer, &wire.Close{ID: c.id, RequestID: wire.NoRequest})
	}
}

func (s *session) consumer(id uint64) *consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.consumers[id]
}
