package engine

import (
	"sync"

	"isthmus/core"
	"isthmus/core/journal"
)

// The cold cache holds what catch-up readers have read lately, of all logs, within a budget of its own: they never evict
// the tail. What they need of a place they find here or have scanned (scanner.go).

// coldRun is what one scan brought: the blocks from one Seq on to another, of all their partitions or of one. It is
// immutable; entries point into it for as long as a consumer keeps them. The links are guarded by the cache.
type coldRun struct {
	parts        []coldPart
	bytes        int64
	older, newer *coldRun
}

// coldPart is what a run holds of a partition: everything with an offset from from up to end. Where offsets are missing
// in between, the log has none.
type coldPart struct {
	run       *coldRun
	partition *Partition
	from, end core.Offset
	extents   []tailExtent // in order
}

// bookmark is where a reader goes on: no block before seq has anything of the partition at or after offset.
type bookmark struct {
	offset core.Offset
	seq    journal.Seq
}

// maxPlaces is how many readers of one partition go on where they were; others search from the nearest mark.
const maxPlaces = 8

// coldCache is the cache of a node. The mutex is a leaf; it also guards the partitions' cold parts and places.
type coldCache struct {
	limit int64
	mu    struct {
		sync.Mutex
		bytes          int64
		newest, oldest *coldRun
	}
}

// coldPlace is what the cache knows of a partition. Guarded by the cache's mutex.
type coldPlace struct {
	parts  []*coldPart // the newest last
	places []bookmark
	next   int // which place is forgotten next
}

// find returns the run that covers an offset of the partition.
func (c *coldCache) find(p *Partition, from core.Offset) *coldPart {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(p.cold.parts) - 1; i >= 0; i-- {
		if x := p.cold.parts[i]; x.from <= from && from < x.end {
			c.unlink(x.run)
			c.link(x.run)
			return x
		}
	}
	return nil
}

// add caches a run and notes where its readers go on. What is over the budget goes, the run used longest ago first.
func (c *coldCache) add(run *coldRun, next journal.Seq) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range run.parts {
		x := &run.parts[i]
		if x.end > x.from {
			x.partition.cold.parts = append(x.partition.cold.parts, x)
		}
		x.partition.cold.goOn(x.from, bookmark{x.end, next})
	}
	c.link(run)
	c.mu.bytes += run.bytes
	for c.mu.bytes > c.limit && c.mu.oldest != nil {
		c.drop(c.mu.oldest)
	}
}

// goOn notes a place; it takes that of the reader who stood at from.
func (c *coldPlace) goOn(from core.Offset, to bookmark) {
	for i := range c.places {
		if o := c.places[i].offset; o == from || o == to.offset {
			c.places[i] = to
			return
		}
	}
	if len(c.places) < maxPlaces {
		c.places = append(c.places, to)
		return
	}
	c.places[c.next] = to
	c.next = (c.next + 1) % maxPlaces
}

// placeOf returns the newest known place to read an offset from; exact when a reader stopped right there.
func (c *coldCache) placeOf(p *Partition, from core.Offset) (seq journal.Seq, exact bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range p.cold.places {
		if x.offset <= from && x.seq > seq {
			seq = x.seq
		}
		exact = exact || x.offset == from
	}
	return seq, exact
}

func (c *coldCache) link(r *coldRun) {
	r.older, r.newer = c.mu.newest, nil
	if r.older != nil {
		r.older.newer = r
	} else {
		c.mu.oldest = r
	}
	c.mu.newest = r
}

func (c *coldCache) unlink(r *coldRun) {
	if r.older != nil {
		r.older.newer = r.newer
	} else {
		c.mu.oldest = r.newer
	}
	if r.newer != nil {
		r.newer.older = r.older
	} else {
		c.mu.newest = r.older
	}
	r.older, r.newer = nil, nil
}

func (c *coldCache) drop(r *coldRun) {
	c.unlink(r)
	c.mu.bytes -= r.bytes
	for i := range r.parts {
		x := &r.parts[i]
		ps := x.partition.cold.parts
		for j := range ps {
			if ps[j] == x {
				x.partition.cold.parts = append(ps[:j], ps[j+1:]...)
				ps[len(ps)-1] = nil
				break
			}
		}
	}
}

// bytes is what the cache holds now.
func (c *coldCache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.bytes
}
