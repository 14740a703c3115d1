package engine

import (
	"fmt"
	"time"

	"isthmus/core"
	"isthmus/core/parked"
)

// ParkedMessage is a message that is parked.
type ParkedMessage struct {
	ID        ParkedID
	Half      bool
	Due       int64      // unix ms; of a half message: not before, once committed
	Checks    int        // how often the producer of a half message was asked
	Partition *Partition // where it goes to
	Entry     core.Entry // without a base offset; Commit is when it was parked

	record parked.Record
}

// Parked returns a parked message. The error wraps ErrNotParked when it is not there, or no longer. It may read from the
// journal.
func (e *Engine) Parked(id ParkedID) (*ParkedMessage, error) {
	k := e.parkingBy(id)
	if k == nil {
		return nil, fmt.Errorf("%d: %w", id, ErrNotParked)
	}
	return k.message(id.offset())
}

func (e *Engine) parkingBy(id ParkedID) *parking {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.mu.parkings[id.number()]
}

func (k *parking) message(off core.Offset) (*ParkedMessage, error) {
	id := parkedID(k.part.number, off)
	if first, end := k.part.Bounds(); off < first || off >= end {
		return nil, fmt.Errorf("%d: %w", id, ErrNotParked)
	}
	es, err := k.part.Read(k.log.eng.tasks.ctx, off, 1, 1)
	if err != nil {
		return nil, err
	}
	if len(es) == 0 || es[0].Base != off {
		return nil, fmt.Errorf("%d: %w", id, ErrNotParked)
	}
	m := &ParkedMessage{ID: id}
	if err := m.parse(k, es[0].Data, es[0].Commit); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	h, half := k.mu.index.Half(off)
	m.Checks = int(h.Checks)
	if _, settled := k.mu.settled[off]; settled || m.Partition == nil || m.Half != half || !half && !k.mu.index.Delayed(m.Due, off) {
		return nil, fmt.Errorf("%d: %w", id, ErrNotParked)
	}
	return m, nil
}

// parse fills in what the record says.
func (m *ParkedMessage) parse(k *parking, data []byte, commit int64) error {
	if err := m.record.Parse(data); err != nil {
		return err
	}
	if m.record.Kind != parked.Delay && m.record.Kind != parked.Half {
		return fmt.Errorf("%d is a note: %w", m.ID, ErrNotParked)
	}
	m.Half, m.Due, m.Partition = m.record.Kind == parked.Half, m.record.Due, k.target(&m.record)
	_, err := core.ParseEntry(m.record.Entry, 0, &m.Entry)
	m.Entry.Commit = commit
	return err
}

// Commit lets a half message enter the log, or has it wait for the delay that it was given. The receipt names it, its
// partition, and its offset unless it waits.
func (pr *Producer) Commit(id ParkedID, token uint64) error {
	k, m, err := pr.decide(id, true)
	if err != nil {
		return err
	}
	at := m.record.Due
	if m.record.Wait > 0 {
		at = max(at, pr.eng.In(time.Duration(m.record.Wait)*time.Millisecond))
	}
	if at > pr.eng.now().UnixMilli() {
		return pr.wait(k, m, at, token)
	}
	if err := k.enter(pr, m, token); err != nil {
		k.unclaim(id.offset())
		return err
	}
	return nil
}

// wait makes a delayed message of a half one, in one block.
func (pr *Producer) wait(k *parking, m *ParkedMessage, due int64, token uint64) error {
	off := m.ID.offset()
	k.mu.Lock()
	k.mu.reserved[0]++ // its place as a half message becomes free in the same block
	k.mu.Unlock()
	done := k.tombstone(off, &m.record)
	r := parked.Record{Kind: parked.Delay, Target: m.record.Target, Due: due}
	if _, err := pr.record(k, &r, &m.Entry, token, &alongside{target: m.Partition, p: k.part, e: &done}); err != nil {
		k.release(false)
		k.unclaim(off)
		return err
	}
	return nil
}

// Rollback forgets a half message.
func (pr *Producer) Rollback(id ParkedID, token uint64) error { return pr.forget(id, true, token) }

// Cancel takes a delayed message back.
func (pr *Producer) Cancel(id ParkedID, token uint64) error { return pr.forget(id, false, token) }

func (pr *Producer) forget(id ParkedID, half bool, token uint64) error {
	k, m, err := pr.decide(id, half)
	if err != nil {
		return err
	}
	done := k.tombstone(id.offset(), &m.record)
	_, err = pr.appender(k.log).append(k.part, &done, token, core.EntrySize(&done), &alongside{target: m.Partition, id: id})
	if err != nil {
		k.unclaim(id.offset())
	}
	return err
}

// decide finds a parked message and claims it.
func (pr *Producer) decide(id ParkedID, half bool) (*parking, *ParkedMessage, error) {
	m, err := pr.eng.Parked(id)
	if err != nil {
		return nil, nil, err
	}
	k := pr.eng.parkingBy(id)
	if m.Half != half || !k.claim(id.offset(), &m.record) {
		return nil, nil, fmt.Errorf("%d: %w", id, ErrNotParked)
	}
	return k, m, nil
}

// enter puts a claimed message into its partition, and its tombstone into the same block.
func (k *parking) enter(pr *Producer, m *ParkedMessage, token uint64) error {
	done := k.tombstone(m.ID.offset(), &m.record)
	m.Entry.Flags &^= core.FlagSequenced // it was counted when it was parked
	size := core.EntrySize(&m.Entry) + core.EntrySize(&done)
	with := alongside{target: m.Partition, id: m.ID, p: k.part, e: &done, notBefore: m.record.Due}
	_, err := pr.appender(k.log).append(m.Partition, &m.Entry, token, size, &with)
	return err
}
