package engine

import (
	"context"

	"isthmus/core"
	"isthmus/core/journal"
)

// arenaSize: what is smaller than a quarter of it is copied into common memory, or small blocks would cost an allocation
// each.
const arenaSize = 64 << 10

// extentCost is what the cache counts for an extent beside its bytes.
const extentCost = 64

// builder collects a run. Owned by the goroutine that scans. The first part is that of the reader.
type builder struct {
	coldRun
	log    *log
	next   journal.Seq // behind the last block that was looked at
	shared bool
	index  map[uint32]int // of parts, by partition number
	arena  []byte
}

func newBuilder(p *Partition, from core.Offset, seq journal.Seq, shared bool) *builder {
	b := &builder{log: p.log, next: seq, shared: shared, index: map[uint32]int{p.number: 0}}
	b.parts = []coldPart{{partition: p, from: from, end: from}}
	return b
}

// read takes blocks until there are enough bytes, or the log ends.
func (b *builder) read(ctx context.Context, hint journal.Hint, want int64) error {
	last := b.log.position() // all that is looked at for certain when the sequence ends by itself
	b.log.scanner.yield(ctx)
	for rec, err := range b.log.journal.Read(ctx, b.next, hint) {
		if err != nil {
			return err
		}
		block, err := journal.Header(rec.Block) // the journal has checked the CRC
		if err != nil {
			return err
		}
		b.next = rec.Seq + 1
		if b.add(block); b.bytes >= want {
			last = 0
			break
		}
		b.log.scanner.yield(ctx)
	}
	b.next = max(b.next, last+1)
	for i := range b.parts {
		b.parts[i].run = &b.coldRun
	}
	return nil
}

// add keeps what is wanted of a block.
func (b *builder) add(block journal.Block) {
	if b.shared {
		b.bytes += int64(len(block.Bytes())) // is ours to keep
	}
	for x := range block.Extents() {
		part := b.part(x)
		if part == nil || x.Next() <= part.from {
			continue
		}
		data := x.Data
		if !b.shared {
			data = b.keep(data)
		}
		part.extents = append(part.extents, tailExtent{x.First, x.Next(), block.Time, data})
		part.end = x.Next()
		b.bytes += extentCost
	}
}

// part returns where an extent belongs, nil if nowhere.
func (b *builder) part(x journal.Extent) *coldPart {
	if i, ok := b.index[x.Partition]; ok {
		return &b.parts[i]
	}
	if !b.shared {
		return nil
	}
	b.log.tail.RLock()
	p := b.log.tail.parts[x.Partition]
	b.log.tail.RUnlock()
	if p == nil {
		return nil // its topic was deleted
	}
	b.index[x.Partition] = len(b.parts)
	b.parts = append(b.parts, coldPart{partition: p, from: x.First, end: x.First})
	return &b.parts[len(b.parts)-1]
}

// keep copies bytes to where they stay: a lone reader's record is gone at the next step.
func (b *builder) keep(data []byte) []byte {
	if len(data) >= arenaSize/4 {
		b.bytes += int64(len(data))
		return append([]byte(nil), data...)
	}
	if len(data) > cap(b.arena)-len(b.arena) {
		b.arena = make([]byte, 0, arenaSize)
		b.bytes += arenaSize
	}
	at := len(b.arena)
	b.arena = append(b.arena, data...)
	return b.arena[at:len(b.arena):len(b.arena)]
}
