package rocketmq

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// maxReconsume is how often a group tries a message, unless its clients say otherwise.
//
// Spec: RocketMQ SubscriptionGroupConfig.retryMaxTimes@5.x
const maxReconsume = 16

// firstRetry is the delay level of the first retry: 10 s, then 30 s, 1 m, 2 m … 2 h.
const firstRetry = 3

// sendBack handles code 36: a message that a consumer could not cope with comes again later through %RETRY%group, and
// after its last try it goes to %DLQ%group. The consumer's offset moves on.
// Deviates: the group need not be known, and its retry topic has one queue.
//
// Spec: RocketMQ RequestCode.CONSUMER_SEND_MSG_BACK=36; SendMessageProcessor.consumerSendMsgBack@5.x
func (s *session) sendBack(ctx context.Context, h *wire.Header, _ []byte) error {
	var b wire.SendBack
	if err := wire.ParseSendBack(h, &b); err != nil {
		return err
	}
	group := string(b.Group)
	if err := checkName("group", group, maxTopic-len(wire.RetryPrefix)); err != nil {
		return err
	}
	p := s.srv.eng.PartitionByNumber(uint32(b.Phys >> 43))
	if p == nil || b.Phys < 0 {
		return fmt.Errorf("%w at offset %d", errNoMessage, b.Phys)
	}
	if err := s.allow(auth.Consume, p.Topic().Name().String()+"#"+group); err != nil {
		return err
	}
	n, born, err := s.stored(ctx, p, b.Phys)
	if err != nil {
		return err
	}
	n.again(&b)
	limit := b.MaxReconsume
	if limit < 0 {
		limit = maxReconsume
	}
	topic, level := wire.RetryPrefix+group, b.Level
	if level == 0 {
		level = firstRetry + n.reconsume
	}
	if level < 0 || n.reconsume >= limit {
		topic, level = wire.DLQPrefix+group, 0
	}
	n.reconsume++
	t, err := s.srv.ensureTopic(topic)
	if err != nil {
		return err
	}
	due := int64(0)
	if level > 0 {
		due = s.srv.eng.In(s.srv.cfg.levelDelay(int64(level)))
	}
	e := entryOf(&n, born)
	e.Data = n.append(nil)
	token := tokenKept | tokenDecision | uint64(uint32(h.Opaque))
	if h.Oneway() {
		token |= tokenOneway
	}
	s.flight.add(1)
	if err = s.producer.PublishAt(t.Partition(0), &e, due, token); err != nil {
		s.flight.add(-1)
	}
	return err
}

// bury has what a consumer sends to the retry topic itself go to the dead letters instead, when it was tried often enough, or
// when the consumer has its queues locked: an orderly one tries again without us, and comes here when it gives up.
//
// Spec: RocketMQ SendMessageProcessor.handleRetryAndDLQ@5.x
func (s *session) bury(m *wire.Send, now time.Time) {
	group, ok := bytes.CutPrefix(m.Topic, []byte(wire.RetryPrefix))
	if !ok {
		return
	}
	limit := m.MaxReconsume
	if limit < 0 {
		limit = maxReconsume
	}
	if m.Reconsume <= limit && !s.orderly(string(group), now) {
		return
	}
	m.Topic, m.QueueID = append([]byte(wire.DLQPrefix), group...), 0
	m.Properties = wire.AppendWithout(nil, m.Properties, wire.PropDelay)
}

// orderly tells whether the connection has a queue locked for the group.
func (s *session) orderly(group string, now time.Time) bool {
	for key, granted := range s.locks {
		if key.group == group && now.Sub(granted) < s.srv.cfg.LockTime {
			return true
		}
	}
	return false
}

// stored reads one message as a consumer of this protocol sees it.
func (s *session) stored(ctx context.Context, p *engine.Partition, phys int64) (n native, born int64, err error) {
	offset := core.Offset(phys & (1<<43 - 1))
	es, err := p.Read(ctx, offset, 1, 1)
	if err != nil {
		return n, 0, err
	}
	if len(es) == 0 || es[0].Base > offset {
		return n, 0, fmt.Errorf("%w at offset %d", errNoMessage, phys)
	}
	e := &es[0]
	st := wire.Stored{PhysOffset: phys}
	if e.Format == core.FormatRocketMQ {
		err = n.parse(e.Data)
		fillNative(&st, &n, nil)
		n.properties = st.Properties
		return n, e.PublishTime, err
	}
	ms, err := s.srv.decoded.messages(s.srv.eng, p.Number(), e)
	if err != nil {
		return n, 0, err
	}
	m := &ms[offset-e.Base]
	fillForeign(&st, m, nil)
	return native{born: s.remote, properties: st.Properties, body: st.Body}, m.PublishTime, nil
}

// again adds what a retry is known by: where it comes from, and its first id.
func (n *native) again(b *wire.SendBack) {
	props := append([]byte(nil), n.properties...)
	if len(props) > 0 && props[len(props)-1] != wire.ValueEnd {
		props = append(props, wire.ValueEnd)
	}
	for name, value := range map[string][]byte{wire.PropRetryTopic: b.OriginTopic, wire.PropOriginID: b.OriginID} {
		if len(value) > 0 && wire.FindProperty(props, name) == nil && len(props)+len(name)+len(value)+2 <= wire.MaxProperties {
			props = wire.AppendProperty(props, name, value)
		}
	}
	n.properties = props
}
