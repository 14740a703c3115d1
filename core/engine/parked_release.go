package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"isthmus/core"
	"isthmus/core/parked"
)

// crowd bounds what is released at once: how many messages, and bytes of memory for them.
type crowd struct{ messages, bytes int }

// A log releases small crowds, in between of which live traffic has its turn. When very many are due, one log of the node
// at a time takes large ones: their bodies may lie anywhere, and a pass over the journal should find many of them.
var (
	smallRelease = crowd{1 << 10, 1 << 20}
	largeRelease = crowd{64 << 10, 32 << 20}
)

// portion is how many bytes are released before the releaser waits for the disk: live traffic is not to queue behind it.
const portion = 256 << 10

// lookAgain is how long a jump of the wall clock may go unnoticed.
const lookAgain = time.Second

// breath is how long to wait at least when there is nothing to do now.
const breath = time.Millisecond

// troubled is how long to wait after what is due could not be read.
const troubled = 5 * time.Second

// run is the goroutine of a parking: it waits for the next time at which something is to be done, and does it.
func (k *parking) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		more, err := k.round(ctx)
		wait, armed := k.next()
		switch {
		case k.log.failure() != nil || ctx.Err() != nil:
			return
		case err != nil:
			k.log.eng.cfg.Log.Error("parked messages cannot be released", "journal", k.log.name, "err", err)
			wait, armed = troubled, true
		case more:
			continue
		}
		var alarm <-chan time.Time
		if armed {
			timer.Reset(wait)
			alarm = timer.C
		}
		kick := k.kick
		if err != nil {
			kick = nil
		}
		select {
		case <-kick:
		case <-alarm:
		case <-ctx.Done():
		}
	}
}

// next tells how long nothing is to be done.
func (k *parking) next() (wait time.Duration, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, ok := k.mu.index.Next()
	if !ok {
		return 0, false
	}
	if len(k.mu.settled) > 0 { // they are still first in the index; the committer's word wakes us
		return lookAgain, true
	}
	wait = time.Duration(at-k.log.eng.now().UnixMilli()) * time.Millisecond
	return min(max(wait, breath), lookAgain), true
}

// round releases one crowd of what is due, has producers asked, and waits until that is durable. more tells that there is
// more to do.
func (k *parking) round(ctx context.Context) (more bool, err error) {
	now := k.log.eng.now().UnixMilli()
	size := smallRelease
	items := k.due(now, size.messages)
	if len(items) == size.messages && k.log.eng.crowded.TryLock() {
		defer k.log.eng.crowded.Unlock()
		defer k.reading.shrink()
		size = largeRelease
		items = k.due(now, size.messages)
	}
	n, err := k.releaseAll(ctx, items, size.bytes)
	if err != nil {
		return false, err
	}
	asked, err := k.check(ctx, now)
	k.settle(ctx)
	return n > 0 || asked > 0, err
}

// due returns what is to be released, without what somebody has decided about.
func (k *parking) due(now int64, most int) []parked.Item {
	k.mu.Lock()
	defer k.mu.Unlock()
	items := k.mu.index.Due(now, nil, most)
	out := items[:0]
	for _, it := range items {
		if _, settled := k.mu.settled[it.Offset()]; !settled {
			out = append(out, it)
		}
	}
	return out
}

// releaseAll releases the items, or the first of them if the bytes allow no more, and tells how many. What it wrote is
// not durable yet.
func (k *parking) releaseAll(ctx context.Context, items []parked.Item, bytes int) (n int, err error) {
	if len(items) == 0 {
		return 0, nil
	}
	if k.log.eng.full.Load() {
		return 0, errStorageFull // late, or the rest of the disk would be theirs
	}
	for {
		err = k.reading.read(ctx, k.part, items, bytes)
		if !errors.Is(err, errBudget) {
			break
		}
		items = items[:max(1, len(items)/2)]
	}
	if err != nil {
		return 0, fmt.Errorf("read what is due: %w", err)
	}
	written := 0
	for i, it := range items {
		if written += k.reading.found[i].size(); written > portion {
			k.settle(ctx)
			written = 0
		}
		err := k.releaseOne(it, k.reading.found[i])
		switch {
		case err == nil:
			n++
		case !errors.Is(err, core.ErrTopicNotFound): // its topic is being deleted; if that comes to nothing, it is looked at again
			return n, err
		}
	}
	return n, nil
}

// releaseOne writes a message into its partition, with the tombstone. One that cannot be read, or whose partition is gone,
// gets the tombstone alone.
func (k *parking) releaseOne(it parked.Item, b body) error {
	off := it.Offset()
	m := ParkedMessage{ID: parkedID(k.part.number, off)}
	data, commit := k.reading.arena[b.start:b.end:b.end], b.commit
	if b.end == 0 { // look again, alone: what follows cannot be undone
		es, err := k.part.Read(k.log.eng.tasks.ctx, off, 1, 1)
		if err != nil {
			return fmt.Errorf("read what is due: %w", err)
		}
		if len(es) > 0 && es[0].Base == off {
			data, commit = es[0].Data, es[0].Commit
		}
	}
	err := m.parse(k, data, commit)
	if err != nil {
		k.log.eng.cfg.Log.Error("a parked message is lost", "journal", k.log.name, "parked", int64(m.ID), "err", err)
		m.record = parked.Record{Kind: parked.Delay, Due: it.Due}
	}
	if !k.claim(off, &parked.Record{Due: it.Due}) {
		return nil // cancelled meanwhile
	}
	k.flying.Add(1)
	if err != nil || m.Partition == nil {
		err = k.bury(off, &m.record)
	} else {
		err = k.enter(k.producer, &m, 0)
	}
	if err != nil {
		k.flying.Add(-1)
		k.unclaim(off)
	}
	return err
}

// bury writes a tombstone alone.
func (k *parking) bury(off core.Offset, r *parked.Record) error {
	done := k.tombstone(off, r)
	_, err := k.producer.appender(k.log).append(k.part, &done, 0, core.EntrySize(&done), nil)
	return err
}

// wrote is called by the committer with what became durable.
func (k *parking) wrote(rs []Receipt) {
	if k.flying.Add(-int64(len(rs))) == 0 {
		select {
		case k.landed <- struct{}{}:
		default:
		}
	}
}

// settle waits until what was written is durable, or refused.
func (k *parking) settle(ctx context.Context) {
	for k.flying.Load() > 0 {
		select {
		case <-k.landed:
		case <-ctx.Done():
			return
		}
	}
}
