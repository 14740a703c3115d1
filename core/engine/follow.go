package engine

import (
	"context"
	"fmt"
	"slices"

	"isthmus/core"
	"isthmus/core/journal"
)

// Follower reads what is committed, of all logs, from the tail. One goroutine runs it.
type Follower struct {
	eng  *Engine
	bell chan struct{} // capacity 1
	at   map[*log]journal.Seq
}

// notifyFollowers is called by committers.
func (e *Engine) notifyFollowers() {
	e.mu.RLock()
	fs := e.mu.followers
	e.mu.RUnlock()
	for _, f := range fs {
		select {
		case f.bell <- struct{}{}:
		default:
		}
	}
}

// Follower takes its place at the end of every log, now. Run it, or it is told of every commit for nothing.
func (e *Engine) Follower() *Follower {
	fw := &Follower{eng: e, bell: make(chan struct{}, 1), at: map[*log]journal.Seq{}}
	e.mu.Lock()
	e.mu.followers = append(slices.Clone(e.mu.followers), fw)
	e.mu.Unlock()
	for _, l := range e.allLogs() {
		fw.at[l] = l.position()
	}
	return fw
}

// Run calls f with every entry that is committed after the Follower took its place, in order per partition, until ctx
// ends. While active says no, entries are passed over. Give an entry to somebody who asked at Stamp s only if its stamp is
// greater. The slice is valid during the call, the entries' bytes for ever. What cannot be read is logged and passed over.
func (fw *Follower) Run(ctx context.Context, active func() bool, f func(p *Partition, stamp uint64, es []core.Entry)) {
	e := fw.eng
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.mu.followers = slices.DeleteFunc(slices.Clone(e.mu.followers), func(x *Follower) bool { return x == fw })
	}()
	var es []core.Entry
	var ends []journal.Seq
	for {
		select {
		case <-ctx.Done():
			return
		case <-fw.bell:
		}
		// Positions before active: who subscribes and is told no yet took its Stamp after what is passed over here.
		ls, ends := e.allLogs(), ends[:0]
		for _, l := range ls {
			ends = append(ends, l.position())
		}
		on := active()
		for i, l := range ls {
			if !on {
				fw.at[l] = ends[i]
				continue
			}
			var err error
			if es, err = fw.catchUp(ctx, l, es, f); err != nil && ctx.Err() == nil {
				e.cfg.Log.Error("follower passes over what it cannot read", "journal", l.name, "err", err)
				fw.at[l] = l.position()
			}
		}
	}
}

func (l *log) position() journal.Seq {
	l.tail.RLock()
	defer l.tail.RUnlock()
	return l.tail.seq
}

func (fw *Follower) catchUp(ctx context.Context, l *log, es []core.Entry, f func(*Partition, uint64, []core.Entry)) ([]core.Entry, error) {
	for {
		blocks, gap := l.after(fw.at[l])
		if gap > 0 {
			if err := fw.fromJournal(ctx, l, gap, f); err != nil {
				return es, err
			}
			continue
		}
		if len(blocks) == 0 {
			return es, nil
		}
		for _, b := range blocks {
			var err error
			if es, err = l.each(b, es, f); err != nil {
				return es, err
			}
			fw.at[l] = b.seq
		}
	}
}

// after returns the cached blocks after a Seq, or how far to read from the journal first, when the cache has already
// forgotten some.
func (l *log) after(seq journal.Seq) (blocks []tailBlock, gap journal.Seq) {
	l.tail.RLock()
	defer l.tail.RUnlock()
	bs := l.tail.blocks
	if l.tail.seq <= seq {
		return nil, 0
	}
	if len(bs) == 0 || bs[0].seq > seq+1 {
		return nil, l.tail.seq
	}
	return slices.Clone(bs[seq+1-bs[0].seq:]), 0
}

// fromJournal reads what the cache has forgotten. Its stamps are forgotten too: everybody gets it.
func (fw *Follower) fromJournal(ctx context.Context, l *log, to journal.Seq, f func(*Partition, uint64, []core.Entry)) error {
	for rec, err := range l.journal.Read(ctx, fw.at[l]+1, journal.Hint{}) {
		if err != nil {
			return fmt.Errorf("follow journal %s: %w", l.name, err)
		}
		if rec.Seq > to {
			break
		}
		b, err := journal.Header(slices.Clone(rec.Block))
		if err != nil {
			return fmt.Errorf("follow journal %s: %w", l.name, err)
		}
		if _, err := l.each(tailBlock{rec.Seq, ^uint64(0), b}, nil, f); err != nil {
			return err
		}
		fw.at[l] = rec.Seq
	}
	fw.at[l] = max(fw.at[l], to)
	return nil
}

func (l *log) each(b tailBlock, es []core.Entry, f func(*Partition, uint64, []core.Entry)) ([]core.Entry, error) {
	for x := range b.block.Extents() {
		l.tail.RLock()
		p := l.tail.parts[x.Partition]
		l.tail.RUnlock()
		if p == nil || p.internal {
			continue
		}
		es = es[:0]
		for left := (tailExtent{x.First, x.Next(), b.block.Time, x.Data}); len(left.data) > 0; {
			var e core.Entry
			if err := left.next(&e); err != nil {
				return es, fmt.Errorf("follow journal %s block %d: %w", l.name, b.seq, err)
			}
			es = append(es, e)
		}
		f(p, b.stamp, es)
	}
	return es, nil
}
