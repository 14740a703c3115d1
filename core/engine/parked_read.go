package engine

import (
	"context"
	"errors"
	"slices"
	"sort"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/parked"
)

// errBudget: the bodies are more than is to be held at once.
var errBudget = errors.New("over the budget")

// bodies collects records of an internal partition by offset: recent ones from the tail, others in one pass over the
// journal, which is left out where nothing is wanted. It copies what it finds, for a body in a block would hold the block.
type bodies struct {
	wanted []int // indexes into the items, by offset
	found  []body
	arena  []byte
	tail   []tailExtent
}

// body is where a record lies in the arena; end 0: not found.
type body struct {
	start, end int
	commit     int64
}

func (b body) size() int { return b.end - b.start }

// read finds the records of the items. With more than one of them, and more than budget bytes, it gives up with errBudget.
func (b *bodies) read(ctx context.Context, p *Partition, items []parked.Item, budget int) error {
	b.wanted, b.arena = b.wanted[:0], b.arena[:0]
	b.found = append(b.found[:0], make([]body, len(items))...)
	for i := range items {
		b.wanted = append(b.wanted, i)
	}
	slices.SortFunc(b.wanted, func(x, y int) int { return int(items[x].Offset() - items[y].Offset()) })
	from := func(rest []int) core.Offset { return items[rest[0]].Offset() }

	p.log.tail.RLock()
	at := sort.Search(len(p.tail), func(i int) bool { return p.tail[i].end > from(b.wanted) })
	b.tail = append(b.tail[:0], p.tail[at:]...)
	cached := p.committed.Load()
	if len(p.tail) > 0 {
		cached = p.tail[0].first
	}
	p.log.tail.RUnlock()
	defer func() { clear(b.tail) }()

	old := sort.Search(len(b.wanted), func(i int) bool { return items[b.wanted[i]].Offset() >= cached })
	for rest := b.wanted[:old]; len(rest) > 0; {
		left, err := b.scan(ctx, p, items, rest, budget)
		if err != nil {
			return err
		}
		if len(left) == len(rest) {
			left = left[1:] // it is not there
		}
		rest = left
	}
	rest := b.wanted[old:]
	for _, x := range b.tail {
		var err error
		if rest, err = b.pick(x, items, rest, budget); err != nil {
			return err
		}
	}
	return nil
}

// scan reads the journal from the first wanted offset to the last, or to a wide gap, and returns what is still wanted.
func (b *bodies) scan(ctx context.Context, p *Partition, items []parked.Item, rest []int, budget int) ([]int, error) {
	from := items[rest[0]].Offset()
	mark := func() journal.Seq {
		p.log.tail.RLock()
		defer p.log.tail.RUnlock()
		return p.log.marked(p.number, items[rest[0]].Offset())
	}
	hint := journal.Hint{Partition: p.number, HasPartition: true, From: from}
	for rec, err := range p.log.journal.Read(ctx, mark(), hint) {
		if err != nil {
			return rest, err
		}
		blk, err := journal.Header(rec.Block)
		if err != nil {
			return rest, err
		}
		before := len(rest)
		for x := range blk.Of(p.number) {
			if rest, err = b.pick(tailExtent{x.First, x.Next(), blk.Time, x.Data}, items, rest, budget); err != nil {
				return rest, err
			}
		}
		if len(rest) == 0 || len(rest) < before && mark() > rec.Seq {
			return rest, nil
		}
	}
	return rest, nil
}

// pick copies what is wanted of an extent and returns what is wanted of later ones.
func (b *bodies) pick(x tailExtent, items []parked.Item, rest []int, budget int) ([]int, error) {
	var e core.Entry
	for len(rest) > 0 && items[rest[0]].Offset() < x.first {
		rest = rest[1:]
	}
	for len(rest) > 0 && len(x.data) > 0 && items[rest[0]].Offset() < x.end {
		if err := x.next(&e); err != nil {
			return rest, err
		}
		for len(rest) > 0 && items[rest[0]].Offset() < e.Base {
			rest = rest[1:]
		}
		if len(rest) == 0 || items[rest[0]].Offset() != e.Base {
			continue
		}
		if len(items) > 1 && len(b.arena)+len(e.Data) > budget {
			return rest, errBudget
		}
		start := len(b.arena)
		b.arena = append(b.arena, e.Data...)
		b.found[rest[0]] = body{start, len(b.arena), e.Commit}
		rest = rest[1:]
	}
	return rest, nil
}

// shrink gives back what a crowd needed.
func (b *bodies) shrink() {
	if cap(b.arena) > smallRelease.bytes {
		*b = bodies{}
	}
}
