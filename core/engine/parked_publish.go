package engine

import (
	"fmt"
	"time"

	"isthmus/core"
	"isthmus/core/parked"
)

// In returns the time, in unix ms, that lies this far ahead: rounded up, because early is what nobody may be.
func (e *Engine) In(d time.Duration) int64 { return e.now().Add(d + time.Millisecond - 1).UnixMilli() }

// PublishAt is Publish for an entry that is to enter the log at a time (unix ms), which has come already or is at most
// ParkedLimits.MaxDelay away. Its receipt comes when it is parked, and names it.
func (pr *Producer) PublishAt(p *Partition, e *core.Entry, due int64, token uint64) error {
	now := pr.eng.now()
	if due <= now.UnixMilli() {
		return pr.Publish(p, e, token)
	}
	if most := pr.eng.cfg.Parked.MaxDelay; due > now.Add(most).UnixMilli() {
		return fmt.Errorf("it is due in %v, %v is allowed: %w", time.UnixMilli(due).Sub(now).Truncate(time.Millisecond), most, ErrDelayTooLong)
	}
	return pr.park(p, e, &parked.Record{Kind: parked.Delay, Due: due}, token)
}

// HalfMessage says what becomes of a half message. Times are in unix ms.
type HalfMessage struct {
	Check int64         // when its producer is asked first
	Due   int64         // once committed, it is not released before
	Wait  time.Duration // or this long after the commit
}

// PublishHalf parks an entry until Commit or Rollback.
func (pr *Producer) PublishHalf(p *Partition, e *core.Entry, h HalfMessage, token uint64) error {
	if most := pr.eng.cfg.Parked.MaxDelay; h.Due > pr.eng.now().Add(most).UnixMilli() || h.Wait > most {
		return fmt.Errorf("it is due once committed, %v is allowed: %w", most, ErrDelayTooLong)
	}
	return pr.park(p, e, &parked.Record{Kind: parked.Half, Due: h.Due, Wait: h.Wait.Milliseconds(), Check: h.Check}, token)
}

func (pr *Producer) park(p *Partition, e *core.Entry, r *parked.Record, token uint64) error {
	if p.log.volatile {
		return fmt.Errorf("%s keeps nothing, so nothing for later: %w", p.topic.name, core.ErrUnsupported)
	}
	size, err := pr.check(e)
	if err == nil {
		err = pr.admit(p, size)
	}
	if err != nil {
		return err
	}
	k, err := pr.eng.parkingOf(p.log)
	if err != nil {
		return err
	}
	half := r.Kind == parked.Half
	if err := k.reserve(half); err != nil {
		return err
	}
	r.Target = p.number
	duplicate, err := pr.record(k, r, e, token, &alongside{target: p})
	if err != nil || duplicate {
		k.release(half)
	}
	switch {
	case err != nil:
		return fmt.Errorf("park for %s: %w", p.topic.name, err)
	case duplicate:
		pr.dropped.Add(float64(e.Count))
	default:
		pr.published.Add(float64(e.Count))
	}
	return nil
}

// maxScratch bounds the memory that a producer keeps for its next record.
const maxScratch = 64 << 10

// record writes a record into the internal partition: with the entry that it holds, nil for none, whose producer and
// sequence are told outside too.
func (pr *Producer) record(k *parking, r *parked.Record, holds *core.Entry, token uint64, with *alongside) (duplicate bool, err error) {
	pr.scratch = r.Append(pr.scratch[:0])
	e := core.Entry{Count: 1, Format: core.FormatParked}
	if holds != nil {
		pr.scratch = core.AppendEntry(pr.scratch, holds)
		e.Flags = holds.Flags & (core.FlagSequenced | core.FlagMoreChunks)
		e.PublishTime, e.Producer, e.Handle, e.SeqLow, e.SeqHigh = holds.PublishTime, holds.Producer, holds.Handle, holds.SeqLow, holds.SeqHigh
	}
	e.Data = pr.scratch
	duplicate, err = pr.appender(k.log).append(k.part, &e, token, core.EntrySize(&e), with)
	if cap(pr.scratch) > maxScratch {
		pr.scratch = nil
	}
	return duplicate, err
}

// reserve makes sure that the record will be within the limits when it is durable.
func (k *parking) reserve(half bool) error {
	limits := &k.log.eng.cfg.Parked
	k.mu.Lock()
	defer k.mu.Unlock()
	all, halves := k.mu.index.Len()
	all, halves = all+k.mu.reserved[0]+k.mu.reserved[1], halves+k.mu.reserved[1]
	switch {
	case all >= limits.Max:
		return fmt.Errorf("%d messages are parked in journal %s already: %w", all, k.log.name, core.ErrOverloaded)
	case half && halves >= limits.MaxHalf:
		return fmt.Errorf("%d half messages wait in journal %s already: %w", halves, k.log.name, core.ErrOverloaded)
	case half:
		k.mu.reserved[1]++
	default:
		k.mu.reserved[0]++
	}
	return nil
}

func (k *parking) release(half bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if half {
		k.mu.reserved[1]--
	} else {
		k.mu.reserved[0]--
	}
}

// claim makes the caller the only one who may write the tombstone of a message.
func (k *parking) claim(off core.Offset, r *parked.Record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, parkedHalf := k.mu.index.Half(off)
	if _, settled := k.mu.settled[off]; settled || !parkedHalf && !k.mu.index.Delayed(r.Due, off) {
		return false
	}
	k.mu.settled[off] = struct{}{}
	return true
}

func (k *parking) unclaim(off core.Offset) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.mu.settled, off)
}

// tombstone is the entry that ends a parked message.
func (k *parking) tombstone(off core.Offset, r *parked.Record) core.Entry {
	done := parked.Record{Kind: parked.Done, Of: off}
	if r.Kind == parked.Delay {
		done.Due = r.Due
	}
	return core.Entry{Count: 1, Format: core.FormatParked, Data: done.Append(nil)}
}
