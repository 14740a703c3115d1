package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

const (
	maxMessages  = 32        // of one answer, as the real store gives
	maxBytes     = 256 << 10 // of one answer, but for a single larger message
	maxHold      = 60 * time.Second
	recheckLock  = time.Second     // a queue that somebody else has locked
	recheckEmpty = 5 * time.Second // a retry topic to which nothing was sent yet
)

// pull is one request for messages, kept until it is answered. One goroutine at a time has it.
type pull struct {
	session  *session
	opaque   int32
	group    string
	topic    string
	queueID  int32
	part     *engine.Partition // nil: a retry topic to which nothing was sent yet
	cursor   *engine.Group     // nil: broadcasting, or a group that never said hello
	client   string            // its id in the group; "": unknown
	from     core.Offset
	until    core.Offset // from there on the group has acknowledged some
	moved    bool        // from has gone past messages that nobody wants
	messages int
	bytes    int
	filter   filter
	own      bool      // the filter came with the request
	deadline time.Time // zero: answer at once
}

// pull handles codes 11 and 361.
//
// Spec: RocketMQ RequestCode.PULL_MESSAGE=11, LITE_PULL_MESSAGE=361; PullMessageProcessor@5.x
func (s *session) pull(ctx context.Context, h *wire.Header, _ []byte) error {
	var r wire.Pull
	if err := wire.ParsePull(h, &r); err != nil {
		return err
	}
	p := &pull{session: s, opaque: h.Opaque, group: string(r.Group), topic: string(r.Topic), queueID: r.QueueID, from: r.Offset}
	var err error
	p.part, err = s.queue(p.topic, r.QueueID)
	if err != nil && !(isRetry(p.topic) && errors.Is(err, core.ErrTopicNotFound)) {
		return err
	}
	if err := s.subscribed(p, &r); err != nil {
		return err
	}
	if r.SysFlag&wire.PullCommit != 0 && r.Commit > 0 && p.part != nil {
		if err := s.commit(p.part, p.topic, p.group, r.Commit); err != nil {
			s.srv.log.Debug("commit with a pull refused", "protocol", protocol, "group", p.group, "topic", p.topic, "err", err)
		}
	}
	p.messages = int(min(max(r.MaxMessages, 1), maxMessages))
	if p.bytes = maxBytes; r.MaxBytes > 0 {
		p.bytes = min(p.bytes, int(r.MaxBytes))
	}
	if r.SysFlag&wire.PullSuspend != 0 && r.SuspendMillis > 0 {
		p.deadline = time.Now().Add(min(time.Duration(r.SuspendMillis)*time.Millisecond, maxHold))
	}
	if h.Oneway() {
		return nil
	}
	s.srv.answerPull(ctx, p)
	return nil
}

// subscribed finds out what the pull wants: its own expression, or what the group's last heartbeat said.
//
// Spec: RocketMQ PullMessageProcessor.processRequest (subscription group and data)@5.x
func (s *session) subscribed(p *pull, r *wire.Pull) error {
	if err := checkName("group", p.group, maxGroup); err != nil {
		return err
	}
	if err := s.mayConsume(p.part, p.group); err != nil {
		return err
	}
	in := s.srv.registry.interest(p.group, p.topic)
	switch {
	case r.SysFlag&wire.PullSubscription != 0 && len(r.Subscription) > 0:
		var err error
		if p.filter, err = parseFilter(string(r.ExpressionType), string(r.Subscription)); err != nil {
			return err
		}
		p.own = true
	case in.known:
		p.filter = in.filter
	default:
		return fmt.Errorf("group %s, topic %s: %w", p.group, p.topic, errNoSubscription)
	}
	if in.broadcasting || p.part == nil {
		return nil
	}
	g, err := s.group(p.part.Topic(), p.topic, p.group, in)
	if err != nil || g == nil {
		return err
	}
	p.cursor = g
	return nil
}

// answerPull answers a pull, or holds it when there is nothing to answer with. Readers call it first, workers again.
func (s *Server) answerPull(ctx context.Context, p *pull) {
	again := p.part == nil && isRetry(p.topic)
	if again { // the topic may have come meanwhile
		p.part, _ = p.session.queue(p.topic, p.queueID)
	}
	if p.part == nil {
		s.nothing(p, time.Now().Add(recheckEmpty), nil)
		return
	}
	if p.cursor != nil {
		p.client = s.registry.clientOf(p.session, p.group) // which a held pull may know better by now
		// Exclusivity does not depend on the client's arithmetic: somebody else's queue looks empty.
		if !p.cursor.Pull(p.queueID, p.client) {
			s.nothing(p, time.Now().Add(recheckLock), nil)
			return
		}
	}
	if !p.own && !p.deadline.IsZero() { // what the group wants may have changed while the pull was held
		if in := s.registry.interest(p.group, p.topic); in.known {
			p.filter = in.filter
		}
	}
	first, end := p.part.Bounds()
	switch {
	case p.from < first:
		p.from = first
		s.reply(p, wire.PullOffsetMoved, nil)
		return
	case p.from > end:
		p.from = end
		s.reply(p, wire.PullOffsetMoved, nil)
		return
	}
	p.until = math.MaxInt64
	if p.cursor != nil {
		p.from, p.until = p.cursor.From(p.queueID, p.client, p.from)
	}
	var c catch
	if err := c.collect(ctx, s.eng, &s.decoded, p); err != nil {
		s.failPull(p, err)
		return
	}
	if p.cursor != nil {
		if !p.cursor.Pulled(p.queueID, p.client, c.next) { // it has changed hands while we looked
			s.nothing(p, time.Now().Add(recheckLock), nil)
			return
		}
		p.cursor.Filtered(c.missed)
	}
	p.moved = p.moved || c.next > p.from
	p.from = c.next
	switch {
	case len(c.items) > 0:
		s.reply(p, wire.Success, &c)
	case c.more:
		s.reply(p, wire.PullRetryImmediately, nil)
	default:
		from := p.from
		s.nothing(p, p.deadline, func(wake func()) func() { return p.part.Await(from, wake) })
	}
}

// nothing holds the pull until its deadline, or look before; past the deadline it says so.
//
// Spec: RocketMQ PullRequestHoldService@5.x; ResponseCode.PULL_NOT_FOUND=19, PULL_RETRY_IMMEDIATELY=20
func (s *Server) nothing(p *pull, look time.Time, await func(wake func()) func()) {
	if time.Now().Before(p.deadline) {
		if look.After(p.deadline) {
			look = p.deadline
		}
		if !s.holder.hold(p, look, await) {
			s.failPull(p, errHeldPulls)
		}
		return
	}
	code := wire.PullNotFound
	if p.moved {
		code = wire.PullRetryImmediately
	}
	s.reply(p, code, nil)
}

// reply answers with a status and, when there are, messages. All four numbers are wanted with every status.
//
// Spec: RocketMQ PullMessageResponseHeader@5.x
func (s *Server) reply(p *pull, code wire.Code, c *catch) {
	first, end := bounds(p.part)
	p.session.out.Append(func(dst []byte) []byte {
		a := wire.Begin(dst, code, p.opaque, "")
		a.Int("suggestWhichBrokerId", 0)
		a.Int("nextBeginOffset", p.from)
		a.Int("minOffset", first)
		a.Int("maxOffset", end)
		a.Body()
		if c != nil {
			a.Dst = c.append(a.Dst, p)
		}
		return a.End()
	})
	p.session.out.Flush() // a failed connection is its reader's business
	if c != nil {
		s.deliveries.Add(float64(len(c.items)))
	}
}

func (s *Server) failPull(p *pull, err error) {
	code, known := codeOf(err)
	if !known {
		s.log.Error("pull failed", "protocol", protocol, "topic", p.topic, "partition", p.queueID, "offset", p.from, "err", err)
	}
	p.session.out.Append(func(dst []byte) []byte {
		a := wire.Begin(dst, code, p.opaque, err.Error())
		return a.End()
	})
	p.session.out.Flush()
}
