package engine

import (
	"fmt"
	"time"

	"isthmus/core"
	"isthmus/core/meta"
)

// sinceOf returns from which offset on a partition of the record de-duplicates.
func sinceOf(rec *meta.TopicRecord, index int) core.Offset {
	if index < len(rec.DedupSince) {
		return rec.DedupSince[index]
	}
	return 0
}

// deduplicate switches de-duplication of a topic on or off in a record that is about to be stored; done completes it when
// it is stored, undo takes it back. What was published without it says nothing about what producers have sent since, so
// each time it is switched on a partition counts from its end on. The caller holds e.meta.
func (t *Topic) deduplicate(on bool, rec *meta.TopicRecord) (done, undo func()) {
	nothing := func() {}
	if on == rec.Deduplicate {
		return nothing, nothing
	}
	off := func() {
		for _, p := range t.parts() {
			p.log.buf.Lock()
			p.dedup = nil
			p.log.buf.Unlock()
		}
	}
	rec.Deduplicate, rec.DedupSince, rec.DedupBegun = on, nil, 0
	if !on {
		return off, nothing
	}
	rec.DedupBegun = t.eng.now().UnixMilli() + 1
	for _, p := range t.parts() { // commit times never go back, clocks do
		p.log.tail.RLock()
		rec.DedupBegun = max(rec.DedupBegun, p.log.tail.time+1)
		p.log.tail.RUnlock()
	}
	for _, p := range t.parts() {
		p.log.buf.Lock()
		p.dedup = newDedup(p.next, rec.DedupBegun)
		rec.DedupSince = append(rec.DedupSince, p.next)
		p.log.buf.Unlock()
	}
	return nothing, off
}

// followDefaults gives topics that nobody has declared the de-duplication of the defaults. Recovery is alone.
func (e *Engine) followDefaults() error {
	for _, t := range e.Topics() {
		if t.record.Declared {
			continue
		}
		rec := t.record
		done, undo := t.deduplicate(e.cfg.Defaults.Deduplicate, &rec)
		if rec.Deduplicate == t.record.Deduplicate {
			continue
		}
		if err := e.applyTopic(t.name, rec); err != nil {
			undo()
			return fmt.Errorf("deduplication of %s: %w", t.name, err)
		}
		done()
		t.record = rec
	}
	return nil
}

// Deduplicates tells whether the topic drops what numbered producers send again.
func (t *Topic) Deduplicates() bool {
	p := t.parts()[0]
	p.log.buf.Lock()
	defer p.log.buf.Unlock()
	return p.dedup != nil
}

// LastSequence returns the highest sequence that is durable of a producer, by its name and handle, over all partitions;
// -1 when there is none, or the topic does not de-duplicate. It waits for what is on its way to the disk.
func (t *Topic) LastSequence(producer string, handle int32) int64 {
	last := int64(-1)
	for _, p := range t.parts() {
		last = max(last, p.lastSequence(source{producer, handle}))
	}
	return last
}

func (p *Partition) lastSequence(of source) int64 {
	l := p.log
	l.buf.Lock()
	defer l.buf.Unlock()
	if p.dedup == nil || p.dedup.known[of] == nil {
		return -1
	}
	for block := p.dedup.known[of].block; l.buf.failed == nil && l.buf.landed < block; {
		l.buf.settling++
		l.buf.space.Wait()
		l.buf.settling--
	}
	if p.dedup == nil {
		return -1
	}
	s := p.dedup.known[of]
	if s == nil || s.seen == 0 || s.expired(time.Now().UnixMilli()) {
		return -1
	}
	return s.durable
}
