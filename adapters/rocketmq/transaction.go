package rocketmq

import (
	"context"
	"fmt"
	"strconv"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// endTransaction handles code 37: what a producer says about its half message. Whoever knows the message's two numbers and
// its producer group may decide, once.
// Deviates: a decision that comes later than CHECK_IMMUNITY_TIME_IN_SECONDS still counts, as long as the message is there.
//
// Spec: RocketMQ RequestCode.END_TRANSACTION=37; EndTransactionProcessor@5.x
func (s *session) endTransaction(_ context.Context, h *wire.Header, _ []byte) error {
	var d wire.Decision
	if err := wire.ParseDecision(h, &d); err != nil {
		return err
	}
	if d.Word == wire.DecideUnknown {
		return s.ok(h, nil) // it will be asked again
	}
	id := engine.ParkedID(d.Phys)
	m, err := s.srv.eng.Parked(id)
	if err != nil {
		return fmt.Errorf("half message at %d: %w", d.Phys, err)
	}
	var n native
	if err := n.parse(m.Entry.Data); err != nil {
		return err
	}
	if _, offset := id.Place(); !m.Half || offset != d.TableOffset || string(wire.FindProperty(n.properties, wire.PropProducerGroup)) != string(d.Group) {
		return fmt.Errorf("half message at %d is not that of group %.80q at %d: %w", d.Phys, d.Group, d.TableOffset, engine.ErrNotParked)
	}
	if err := s.allow(auth.Produce, m.Partition.Topic().Name().String()); err != nil {
		return err
	}
	token := tokenKept | tokenDecision | uint64(uint32(h.Opaque))
	if h.Oneway() {
		token |= tokenOneway
	}
	decide := s.producer.Commit
	switch d.Word {
	case wire.DecideRollback:
		decide = s.producer.Rollback
	case wire.DecideCommit:
	default:
		return fmt.Errorf("%w: commitOrRollback %d", wire.ErrMalformed, d.Word)
	}
	s.flight.add(1)
	if err = decide(id, token); err != nil {
		s.flight.add(-1)
	}
	return err
}

// ask sends code 39 to one live producer of a half message's group: the engine has not heard what became of it.
//
// Spec: RocketMQ RequestCode.CHECK_TRANSACTION_STATE=39; AbstractTransactionalMessageCheckListener.sendCheckMessage@5.x
func (s *Server) ask(m *engine.ParkedMessage) bool {
	var n native
	if n.parse(m.Entry.Data) != nil {
		return false
	}
	topic, ok := s.clientName(m.Partition.Topic())
	to := s.producers.pick(string(wire.FindProperty(n.properties, wire.PropProducerGroup)))
	if !ok || to == nil {
		return false
	}
	number, offset := m.ID.Place()
	st := wire.Stored{
		QueueID: m.Partition.Index(), QueueOffset: offset, PhysOffset: physOffset(number, offset), Topic: topic,
		Born: m.Entry.PublishTime, StoreTime: m.Entry.Commit, StoreHost: to.store,
	}
	fillNative(&st, &n, nil)
	st.SysFlag = st.SysFlag&^wire.SysTranMask | wire.SysPrepared
	props := wire.AppendProperty([]byte(nil), wire.PropTransaction, "true")
	props = wire.AppendProperty(props, wire.PropCheckTimes, strconv.Itoa(m.Checks+1))
	st.Properties = append(props, st.Properties...)
	unique := wire.FindProperty(st.Properties, wire.PropUniqKey)
	number64 := func(v int64) []byte { return strconv.AppendInt(nil, v, 10) }
	h := wire.Header{Code: wire.CheckTransaction, Version: wire.BrokerVersion, Flag: wire.FlagOneway, Ext: []wire.Field{
		{Key: []byte("topic"), Value: []byte(topic)},
		{Key: []byte("tranStateTableOffset"), Value: number64(offset)},
		{Key: []byte("commitLogOffset"), Value: number64(st.PhysOffset)},
		{Key: []byte("msgId"), Value: unique},
		{Key: []byte("transactionId"), Value: unique},
		{Key: []byte("offsetMsgId"), Value: wire.AppendMessageID(nil, to.store, st.PhysOffset)},
		{Key: []byte("bname"), Value: []byte(brokerName)},
	}}
	body := st.Append(nil)
	if _, err := to.out.Append(func(dst []byte) []byte { return wire.AppendFrame(dst, &h, body) }); err != nil {
		return false
	}
	return to.out.Flush() == nil
}
