package engine

import (
	"context"
	"fmt"
	"iter"

	"isthmus/core"
	"isthmus/core/dispatch"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// Non-persistent topics live in one log over a journal that keeps nothing: their messages are in the tail cache for a while,
// and metadata does not know them. Groups of them live as long as they have consumers; a message goes to consumers that
// have permits right then, at most once, and is dropped where there are none.
// Spec: Pulsar NonPersistentTopic, NonPersistentDispatcher

const volatileLog = "non-persistent"

// volatile returns the log of all non-persistent topics. The caller holds e.meta.
func (e *Engine) volatile() (*log, error) {
	e.mu.RLock()
	l := e.mu.logs[volatileLog]
	e.mu.RUnlock()
	if l != nil {
		return l, nil
	}
	l = newLog(e, volatileLog, 0, new(sieve))
	l.volatile, l.views.all, l.views.live = true, nil, nil
	if !l.start(l.commit) {
		return nil, core.ErrClosed
	}
	e.mu.Lock()
	e.mu.logs[volatileLog] = l
	e.mu.Unlock()
	return l, nil
}

// createVolatile makes a non-persistent topic. It takes a partition number, which is never used again either. The caller
// holds e.meta.
func (e *Engine) createVolatile(n core.TopicName, spec TopicSpec, declared bool) (*Topic, error) {
	if declared && (spec.Partitions != 0 || spec.Policy != Policy{} || len(spec.Groups) > 0) {
		return nil, fmt.Errorf("%s: a non-persistent topic has no partitions, no policy and no groups of its own: %w", n, core.ErrInvalid)
	}
	l, err := e.volatile()
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", n, err)
	}
	numbers, err := e.moreNumbers(nil, 1)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", n, err)
	}
	number := numbers[0]
	if err := e.cfg.Meta.Apply([]meta.Write{{Bucket: meta.Counters, Key: numberCounter, Value: encodeCounter(uint64(number) + 1)}}); err != nil {
		return nil, fmt.Errorf("create %s: %w", n, err)
	}
	t := &Topic{eng: e, name: n}
	t.mu.groups = map[string]*Group{}
	t.shape.Store(&shape{declared: declared, names: spec.Names})
	p := &Partition{topic: t, number: number, log: l, extent: -1}
	t.list.Store(&[]*Partition{p})
	l.tail.Lock()
	l.tail.parts[number] = p
	l.tail.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.topics[n], e.mu.numbers[number], e.mu.next = t, p, number+1
	for protocol, name := range spec.Names {
		e.mu.aliases[alias{protocol, name}] = n
	}
	return t, nil
}

// Volatile tells whether the topic keeps nothing.
func (t *Topic) Volatile() bool { return t.name.NonPersistent }

// shed takes what was handed out for acknowledged, and drops what nobody can take now.
func (r *runner) shed(rp *runnerPart, handed []dispatch.Assignment) {
	for i := range handed {
		e := &handed[i].Entry
		rp.state.Skip(core.Range{From: e.Base, To: e.Base + core.Offset(e.Count)})
	}
	if rp.state.Want() > 0 {
		return
	}
	from, end := rp.state.Next(), rp.gp.p.committed.Load()
	if from >= end {
		return
	}
	rp.state.Skip(core.Range{From: from, To: end})
	r.log.eng.metrics.GroupDropped.WithLabelValues(reasonCredit).Add(float64(end - from))
}

// sifted counts messages that came while the topic had no group.
func (l *log) sifted(b *buffer) {
	for i := range b.extents[:b.n] {
		x := &b.extents[i]
		if t := x.p.topic; !t.hasGroups() {
			l.eng.metrics.GroupDropped.WithLabelValues(reasonNobody).Add(float64(x.count))
		}
	}
}

func (t *Topic) hasGroups() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.mu.groups) > 0
}

// Why messages of non-persistent topics were dropped; label of a metric.
const (
	reasonCredit = "no_credit"
	reasonNobody = "no_group"
	reasonSlow   = "slow" // gone from memory before they were handed out
)

// sieve is a journal that keeps nothing. Owned by the committer.
type sieve struct{ next journal.Seq }

func (s *sieve) Append(context.Context, []byte) (journal.Seq, error) {
	s.next++
	return s.next, nil
}

func (*sieve) Read(context.Context, journal.Seq, journal.Hint) iter.Seq2[journal.Record, error] {
	return func(func(journal.Record, error) bool) {}
}

func (*sieve) Trim(context.Context, journal.Seq) error { return nil }

func (*sieve) Bounds(context.Context) (first, next journal.Seq, bytes int64, err error) {
	return 1, 1, 0, nil
}

func (*sieve) Close() error { return nil }
