package rocketmq

import (
	"context"
	"fmt"
	"sync"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// sendBatch handles code 320: n entries, answered together. They go to one queue, but for those that a topic with
// placement by key wants elsewhere; the answer names the queue of the first.
//
// Spec: RocketMQ RequestCode.SEND_BATCH_MESSAGE=320; SendMessageProcessor.sendBatchMessage@5.x
func (s *session) sendBatch(_ context.Context, h *wire.Header, body []byte) error {
	m := &s.send
	if err := wire.ParseSend(h, m); err != nil {
		return err
	}
	if isRetry(string(m.Topic)) {
		return fmt.Errorf("a batch to a retry topic: %w", errIllegalMessage)
	}
	t, err := s.targetOf(m)
	if err != nil {
		return err
	}
	n := native{sysFlag: m.SysFlag, reconsume: m.Reconsume, born: s.remote}
	count, err := s.checkBatch(&n, body)
	if err != nil {
		return err
	}
	id := s.batches.open(&batch{opaque: h.Opaque, oneway: h.Oneway(), left: count, results: make([]engine.Receipt, count)})
	for i, rest := 0, body; i < count; i++ {
		var e wire.BatchEntry
		e, rest, _ = wire.NextBatchEntry(rest) // checkBatch has been over it
		n.flag, n.body, n.properties = e.Flag, e.Body, e.Properties
		entry := entryOf(&n, m.Born)
		p, err := place(t, &entry, m.QueueID)
		if err == nil {
			if m.QueueID < 0 {
				m.QueueID = p.Index() // the choice is ours: the others follow the first
			}
			err = s.publish(p, &entry, &n, batchToken(id, i))
		}
		if err != nil {
			// What is on its way cannot be called back; the rest of the batch fails with it.
			s.sentBatch(engine.Receipt{Token: batchToken(id, i), Err: err}, count-i)
			return nil
		}
	}
	return nil
}

// checkBatch goes over a batch before any of it is stored: a malformed batch is refused whole.
func (s *session) checkBatch(n *native, body []byte) (count int, err error) {
	if len(body) > s.srv.cfg.MaxBody {
		return 0, fmt.Errorf("a batch of %d bytes, %d are allowed: %w", len(body), s.srv.cfg.MaxBody, core.ErrTooLarge)
	}
	for rest := body; len(rest) > 0; count++ {
		var e wire.BatchEntry
		if e, rest, err = wire.NextBatchEntry(rest); err != nil {
			return 0, fmt.Errorf("%w: %w", errIllegalMessage, err)
		}
		n.body, n.properties = e.Body, e.Properties
		if err := s.check(n); err != nil {
			return 0, err
		}
		w, err := s.timingOf(n)
		if err == nil && w.parks() {
			err = fmt.Errorf("a delayed or half message in a batch: %w", errIllegalMessage)
		}
		if err != nil {
			return 0, err
		}
	}
	if count == 0 {
		return 0, fmt.Errorf("an empty batch: %w", errIllegalMessage)
	}
	return count, nil
}

// batch is a batch send on its way, guarded by batches.mu until it is settled.
type batch struct {
	opaque  int32
	oneway  bool
	left    int
	results []engine.Receipt // by place
	err     error
}

// batches are the batch sends of one connection that are not answered yet. The mutex is a leaf.
type batches struct {
	mu struct {
		sync.Mutex
		next uint32
		open map[uint32]*batch
	}
}

func (b *batches) open(x *batch) uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.open == nil {
		b.mu.open = make(map[uint32]*batch)
	}
	b.mu.next++
	b.mu.open[b.mu.next] = x
	return b.mu.next
}

// settle notes a receipt that counts for n messages and returns the batch when it was the last.
func (b *batches) settle(r engine.Receipt, n int) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := uint32(r.Token)
	x := b.mu.open[id]
	if x == nil {
		return nil
	}
	if r.Err != nil {
		x.err = r.Err
	}
	x.results[r.Token>>tokenPlace] = r
	if x.left -= n; x.left > 0 {
		return nil
	}
	delete(b.mu.open, id)
	return x
}

func (s *session) sentBatch(r engine.Receipt, n int) {
	x := s.batches.settle(r, n)
	if x == nil || x.oneway {
		return
	}
	s.out.Append(func(dst []byte) []byte {
		if x.err != nil {
			return s.appendSent(dst, x.opaque, &engine.Receipt{Err: x.err})
		}
		var ids []byte
		for i := range x.results {
			if i > 0 {
				ids = append(ids, ',')
			}
			ids = wire.AppendMessageID(ids, s.store, physOffset(x.results[i].Partition.Number(), x.results[i].Base))
		}
		a := wire.Begin(dst, wire.Success, x.opaque, "")
		a.Bytes("msgId", ids)
		s.fillSent(&a, x.results[0].Partition, x.results[0].Base)
		return a.End()
	})
}
