package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/core"
)

// gate stands before the producers of a topic whose backlog is bounded. On the hot path it costs an addition: producers
// take from room what they write, and only when that is used up somebody measures the backlog again. What waits in memory
// for the disk is not in the measure, so a backlog may exceed its size by the blocks under way.
type gate struct {
	backlog Backlog
	room    atomic.Int64 // bytes
	aged    atomic.Bool  // the oldest message is too old

	mu struct { // before the leaves that a measure takes
		sync.Mutex
		looked time.Time
		full   bool // then there was no room
	}
}

const (
	// lookEvery is how often producers may have a full backlog measured again.
	lookEvery = 10 * time.Millisecond
	// holdEvery is how often a producer that waits looks again.
	holdEvery = 25 * time.Millisecond
)

func newGate(b Backlog) *gate {
	if !b.limited() || b.WhenFull == DropOldest {
		return nil
	}
	return &gate{backlog: b} // without room: the first producer has it measured
}

// take asks for room for an entry. The last one may be larger than what is left, or the largest could never pass.
func (g *gate) take(size int) bool {
	if g.aged.Load() {
		return false
	}
	if g.backlog.Size == 0 || g.room.Add(-int64(size)) > -int64(size) {
		return true
	}
	g.room.Add(int64(size))
	return false
}

// find measures the backlog and asks again. Where there was no room a moment ago there is none.
func (g *gate) find(t *Topic, size int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.take(size) {
		return true // somebody else has measured meanwhile
	}
	now := time.Now()
	if g.mu.full && now.Sub(g.mu.looked) < lookEvery {
		return false
	}
	g.room.Store(g.backlog.Size - t.backlog())
	ok := g.take(size)
	g.mu.looked, g.mu.full = now, !ok
	return ok
}

// measure is what the warden does now and then: a new group may be far behind.
func (g *gate) measure(t *Topic) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room.Store(g.backlog.Size - t.backlog())
}

// backlog is how many bytes the slowest durable group has before it.
func (t *Topic) backlog() (most int64) {
	for _, g := range t.Groups() {
		if g.durable {
			_, total := g.weigh()
			most = max(most, total)
		}
	}
	return most
}

// weigh is how many bytes lie before the group, by partition and together. Acknowledgements beyond a mark do not count.
func (g *Group) weigh() (parts []int64, total int64) {
	ps := g.parts()
	parts = make([]int64, len(ps))
	for i, gp := range ps {
		parts[i] = max(0, gp.p.total()-gp.p.written(gp.mark.Load()))
		total += parts[i]
	}
	return parts, total
}

// Wait says how long Publish may wait for room in a backlog with when_full: block, while nothing else of its connection is
// read. Without it Publish does not wait.
func (pr *Producer) Wait(d time.Duration) { pr.patience = d }

// Full tells why the topic takes no messages now: ErrBacklogFull, ErrStorageFull, or nil. wait: producers are meant to
// wait, not to be told.
func (t *Topic) Full() (wait bool, err error) {
	if t.eng.full.Load() && !t.Volatile() {
		return false, errStorageFull
	}
	g := t.gate.Load()
	if g == nil {
		return false, nil
	}
	if g.find(t, 1) {
		return false, nil
	}
	return g.backlog.WhenFull == Block, t.fullError()
}

var errStorageFull = fmt.Errorf("less disk space than limits.disk_free asks for: %w", core.ErrStorageFull)

func (t *Topic) fullError() error {
	return fmt.Errorf("a group of %s is further behind than its backlog allows: %w", t.name, core.ErrBacklogFull)
}

// admit lets an entry pass the gate of its topic, or waits there, or refuses it.
func (pr *Producer) admit(p *Partition, size int) error {
	if pr.eng.full.Load() && !p.log.volatile {
		return errStorageFull
	}
	if g := p.topic.gate.Load(); g != nil && !g.take(size) && !g.find(p.topic, size) {
		return pr.hold(p, g, size)
	}
	return nil
}

// hold waits as long as the producer may. A topic that is deleted or declared anew lets everybody pass to find out.
func (pr *Producer) hold(p *Partition, g *gate, size int) error {
	t := p.topic
	wait := pr.patience
	if g.backlog.WhenFull != Block {
		wait = 0
	}
	var tick *time.Ticker
	for deadline := time.Now().Add(wait); ; {
		if t.gate.Load() != g || g.find(t, size) {
			return nil
		}
		if !time.Now().Before(deadline) {
			return t.fullError()
		}
		if tick == nil {
			tick = time.NewTicker(holdEvery)
			defer tick.Stop()
		}
		select {
		case <-tick.C:
		case <-pr.eng.tasks.ctx.Done():
			return core.ErrClosed
		}
	}
}
