package pulsar

import (
	"context"
	"sync"
	"sync/atomic"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// Bounds of what waits in the gateway for one connection. Beyond highWater no more permits reach the engine; portion is
// how much of a client's permits the engine has at a time, guessed from the size of what went before.
const (
	highWater  = 1 << 20
	portion    = 1 << 20
	usualSize  = 16 << 10 // of an entry, where nothing is known
	sampleSize = 8
)

// sample guesses the size of entries from the first ones that the consumer will get. A guess that grew or shrank while
// messages are delivered would share them unevenly.
func (c *consumer) sample(ctx context.Context) {
	if c.part == nil {
		return
	}
	first, _ := c.part.Bounds()
	es, err := c.part.Read(ctx, max(first, c.group.Mark(c.part.Index())), sampleSize, 64<<10)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range es {
		c.mu.size = max(c.mu.size, int64(len(es[i].Data)))
	}
}

// consumer is a client's consumer: the Sink of a group's member. The reader grants, acknowledges and leaves; runners deliver.
type consumer struct {
	sess         *session
	id           uint64
	name         string
	subscription string
	target       target
	topic        *engine.Topic
	part         *engine.Partition // nil: the whole of a partitioned topic
	index        int32
	mode         core.Mode
	durable      bool
	priority     int
	group        *engine.Group
	member       *engine.Consumer
	epoch        atomic.Uint64 // of the client's last SUBSCRIBE or REDELIVER, plus one; 0 = none

	mu struct { // held across Out.Append for the order of notices, otherwise a leaf
		sync.Mutex
		flowed bool  // the client is ready: before its first FLOW Go (0.19) drops what it is told
		notice *bool // the last notice before that
		stash  int64 // permits of the client that the engine does not have yet
		given  int64 // permits that the engine has
		size   int64 // bytes of an entry: the largest of late, falling
		left   bool
	}
	held  []held // per partition; guarded by mu
	ended bool   // guarded by sess.mu: closed, maybe by others before the session knew of it
}

// many tells whether messages of one partition go to several consumers.
func (c *consumer) many() bool { return c.mode == core.Shared || c.mode == core.KeyShared }

func epochOf(has bool, v uint64) uint64 {
	if !has {
		return 0
	}
	return v + 1
}

// FLOW. An unknown consumer is ignored: it may have been closed meanwhile.
// Spec: Pulsar CommandFlow: permits count messages, not entries; a batch may overshoot
func (s *session) flow(b []byte) error {
	var q wire.Flow
	if err := q.Parse(b); err != nil {
		return err
	}
	c := s.consumer(q.ConsumerID)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	c.mu.stash += int64(q.Permits)
	if c.mu.notice != nil && !c.mu.flowed {
		s.send(wire.TypeActiveConsumerChange, &wire.ActiveConsumerChange{ConsumerID: c.id, Active: *c.mu.notice})
	}
	c.mu.flowed = true
	c.mu.Unlock()
	c.grant(s.backlog())
	return nil
}

// backlog is what the client has not read. What only waits for a flush is none: nobody would say when it is gone.
func (s *session) backlog() int {
	n := s.out.Buffered()
	if n > highWater && s.out.Flush() == nil {
		n = s.out.Buffered()
	}
	return n
}

// grant hands the engine a portion of the client's permits, as long as the client reads what it gets.
func (c *consumer) grant(buffered int) {
	c.mu.Lock()
	n := int64(0)
	if buffered <= highWater {
		n = min(c.mu.stash, max(1, portion/max(c.mu.size, 1))-c.mu.given)
	}
	if n > 0 {
		c.mu.stash -= n
		c.mu.given += n
	}
	c.mu.Unlock()
	if n > 0 {
		c.member.Permit(int(n))
	}
}

// drained runs when the client has read what it was slow to read.
func (s *session) drained() {
	s.mu.Lock()
	cs := make([]*consumer, 0, len(s.mu.consumers))
	for _, c := range s.mu.consumers {
		cs = append(cs, c)
	}
	s.mu.Unlock()
	for _, c := range cs {
		c.grant(s.backlog())
	}
}

// Active implements engine.Sink.
// Spec: Pulsar CommandActiveConsumerChange: Failover only
func (c *consumer) Active(_ int32, active bool) {
	if c.mode != core.Failover {
		return
	}
	c.mu.Lock()
	ready := c.mu.flowed
	if ready {
		c.sess.send(wire.TypeActiveConsumerChange, &wire.ActiveConsumerChange{ConsumerID: c.id, Active: active})
	} else {
		c.mu.notice = &active
	}
	c.mu.Unlock()
	if ready {
		_ = c.sess.out.Flush()
	}
}

// Detached implements engine.Sink: the group ended under the consumer, and the client may subscribe again.
func (c *consumer) Detached(error) { c.dismiss() }

// leave takes the consumer out of its group, once.
func (c *consumer) leave() {
	c.mu.Lock()
	left := c.mu.left
	c.mu.left = true
	c.mu.Unlock()
	if !left && c.member != nil {
		c.member.Leave()
	}
}

// forgetConsumer takes a consumer out of the session's list; false when it was not there any more.
func (s *session) forgetConsumer(c *consumer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ended = true
	if s.mu.consumers[c.id] != c {
		return false
	}
	delete(s.mu.consumers, c.id)
	return true
}
