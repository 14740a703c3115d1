package pulsar

import (
	"fmt"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// GET_LAST_MESSAGE_ID. The position of the subscription goes with it: Go compares the two by ledger and entry, so the
// position is below the next entry, and equal to the last id when nothing is left.
// Spec: Pulsar CommandGetLastMessageIdResponse: (-1,-1) on an empty topic; consumer_mark_delete_position always
func (s *session) lastMessageID(b []byte) error {
	var q wire.GetLastMessageID
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	c := s.consumer(q.ConsumerID)
	if c == nil {
		s.fail(q.RequestID, fmt.Errorf("consumer %d: %w", q.ConsumerID, errNotConnected))
		return nil
	}
	if c.part == nil {
		s.fail(q.RequestID, fmt.Errorf("last message id of a whole partitioned topic: %w", core.ErrUnsupported))
		return nil
	}
	last, err := c.last()
	if err != nil {
		s.fail(q.RequestID, err)
		return nil
	}
	s.send(wire.TypeGetLastMessageIDReply, &wire.GetLastMessageIDReply{
		RequestID: q.RequestID, Last: last, HasMark: true, MarkDelete: c.mark(&last),
	})
	return nil
}

// last is the id of the last message.
func (c *consumer) last() (wire.MessageID, error) {
	none := wire.MessageID{Ledger: wire.NoRequest, Entry: wire.NoRequest, Partition: c.index, BatchIndex: -1}
	first, next := c.part.Bounds()
	if next == 0 || next == first {
		return none, nil
	}
	es, err := c.part.Read(c.sess.ctx, next-1, 1, 1)
	if err != nil {
		return none, err
	}
	if len(es) == 0 {
		return none, nil
	}
	e := &es[0]
	id := idOf(c.part, e.Base, c.index)
	if isBatch(e) {
		id.BatchIndex, id.BatchSize = e.Count-1, e.Count
	}
	return id, nil
}

// isBatch tells whether clients see the entry as a batch, maybe of one.
func isBatch(e *core.Entry) bool {
	if e.Format != core.FormatPulsar {
		return false
	}
	_, checked, err := stored(e)
	if err != nil {
		return false
	}
	p, err := wire.ParseChecked(checked)
	if err != nil {
		return false
	}
	var m wire.Metadata
	return m.Parse(p.Metadata) == nil && m.Batch
}

// mark is the position below which everything is acknowledged, as an id.
func (c *consumer) mark(last *wire.MessageID) wire.MessageID {
	m := c.group.Mark(c.part.Index())
	if _, next := c.part.Bounds(); m >= next {
		return wire.MessageID{Ledger: last.Ledger, Entry: last.Entry, Partition: c.index, BatchIndex: -1}
	}
	at := m - 1
	if int64(last.Entry) >= 0 {
		at = min(at, int64(last.Entry)-1) // inside the last batch
	}
	return idOf(c.part, at, c.index)
}

var _ engine.Sink = (*consumer)(nil)
