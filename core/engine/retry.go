package engine

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// Retry says how often a group of many consumers gets a message, and what becomes of it then. Attempts count nacks and
// timeouts, whatever protocol they come by; they are forgotten when the group's last consumer leaves.
type Retry struct {
	MaxAttempts int32           // deliveries of one message before it is a dead letter; 0: without end
	Backoff     []time.Duration // before the second delivery, the third and so on; the last stands for all later ones
	DeadLetter  core.TopicName  // zero: named after topic and group, as Pulsar clients do it
}

// Spec: Pulsar DeadLetterPolicy: {topic}-{subscription}-DLQ
const deadLetterSuffix = "-DLQ"

// deadLetterTopic is where a group's dead letters go.
func (g *Group) deadLetterTopic() core.TopicName {
	if n := g.retry().DeadLetter; n != (core.TopicName{}) {
		return n
	}
	n := g.topic.name
	n.NonPersistent = false
	n.Name += "-" + g.name + deadLetterSuffix
	return n
}

// SetRetry changes the group's retries. Bounds of attempts count at once, delays from the next consumer on that finds the
// group without any.
func (g *Group) SetRetry(r Retry) error {
	if r.MaxAttempts < 0 || slices.ContainsFunc(r.Backoff, func(d time.Duration) bool { return d < 0 }) {
		return fmt.Errorf("retries of group %s: a negative number: %w", g.name, core.ErrInvalid)
	}
	if r.DeadLetter == g.topic.name {
		return fmt.Errorf("group %s of %s: dead letters cannot go back to the topic: %w", g.name, g.topic.name, core.ErrInvalid)
	}
	g.retries.Store(&r)
	return nil
}

// retry is asked in every round of a runner.
func (g *Group) retry() Retry {
	if r := g.retries.Load(); r != nil {
		return *r
	}
	return Retry{}
}

func backoffOf(r Retry) (ms []int64) {
	for _, d := range r.Backoff {
		ms = append(ms, d.Milliseconds())
	}
	return ms
}

// deadLetters puts a runner's messages that were tried often enough into their topic, and acknowledges them for the group
// when they are durable there. The runner publishes; committers settle.
type deadLetters struct {
	producer *Producer
	part     *Partition
	pending  map[uint64]deadLetter // by token; the runner's
	tokens   map[grave]uint64      // of pending
	next     uint64

	mu struct { // a leaf
		sync.Mutex
		settled []Receipt
	}
}

// grave says which entry a dead letter is.
type grave struct {
	rp   *runnerPart
	base core.Offset
}

type deadLetter struct {
	rp   *runnerPart
	to   dispatch.ConsumerID
	span core.Range
}

// bury publishes an entry as a dead letter instead of delivering it. Its permits go back. One that is on its way already, and was
// taken from its consumer meanwhile, goes there once.
func (r *runner) bury(rp *runnerPart, s *seat, a *dispatch.Assignment, e core.Entry) {
	s.account.Permits += a.Left()
	d, at := &r.dead, grave{rp, a.Entry.Base}
	if token, on := d.tokens[at]; on {
		d.pending[token] = deadLetter{rp, a.To, a.Span()}
		return
	}
	err := d.open(r)
	if err == nil {
		e.Base, e.Flags = 0, e.Flags&^core.FlagSequenced
		d.next++
		d.pending[d.next], d.tokens[at] = deadLetter{rp, a.To, a.Span()}, d.next
		if err = d.producer.Publish(d.part, &e, d.next); err != nil {
			delete(d.pending, d.next)
			delete(d.tokens, at)
		}
	}
	if err != nil {
		r.log.eng.cfg.Log.Error("dead letter not stored", "topic", r.group.topic.name.String(), "group", r.group.name, "offset", a.Entry.Base, "err", err)
		rp.missed = append(rp.missed, missed{a.To, a.Entry.Base, time.Now()})
	}
}

// open finds or creates the topic.
func (d *deadLetters) open(r *runner) error {
	if d.producer == nil {
		d.pending, d.tokens = map[uint64]deadLetter{}, map[grave]uint64{}
		d.producer = &Producer{eng: r.log.eng, done: func(rs []Receipt) {
			d.mu.Lock()
			d.mu.settled = append(d.mu.settled, rs...)
			d.mu.Unlock()
			r.mail.wake()
		}}
	}
	n := r.group.deadLetterTopic()
	if d.part != nil && d.part.topic.name == n {
		if t, err := r.log.eng.Topic(n); err == nil && t == d.part.topic {
			return nil
		}
	}
	t, err := r.log.eng.createTopic(n, TopicSpec{}, false) // also where clients may not create topics
	if err != nil {
		return err
	}
	d.part = t.Partition(0)
	return nil
}

// settle acknowledges what has become durable; what has not is tried again.
func (r *runner) settleDeadLetters() {
	d := &r.dead
	if len(d.pending) == 0 {
		return
	}
	d.mu.Lock()
	rs := d.mu.settled
	d.mu.settled = nil
	d.mu.Unlock()
	for i := range rs {
		x := d.pending[rs[i].Token]
		delete(d.pending, rs[i].Token)
		delete(d.tokens, grave{x.rp, x.span.From})
		if rs[i].Err != nil {
			x.rp.missed = append(x.rp.missed, missed{x.to, x.span.From, time.Now()})
			continue
		}
		x.rp.state.Ack(x.to, x.span)
		r.log.eng.metrics.deadLetters.Add(float64(x.span.Len()))
	}
}
