package engine

import (
	"cmp"
	"maps"
	"slices"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// An offset is given before anybody knows that its message reaches the disk. With durability interval a power loss takes
// messages that were acknowledged, and a repair takes what was broken; their offsets must not be given to others, because
// clients know them. So metadata holds for each partition a limit that lies beyond every offset given, and after such a loss
// the partition goes on at its limit. A clean shutdown says that nothing was lost, so it leaves no jump.

// How many offsets a reservation goes beyond what is given: each next one of a log doubles that, so that a busy log asks
// the metadata about once per million messages, and a quiet one jumps little.
const (
	reserveLeast = 1 << 12
	reserveMost  = 1 << 20
)

// reserve is what a log has reserved. Recovery sets it, then the committer owns it, and at last the one who shuts down.
type reserve struct {
	deferred bool // acknowledged does not mean synced: see journal.Syncer
	pending  bool // metadata says that offsets may have been lost
	size     core.Offset
	limits   map[uint32]core.Offset // no offset of a partition at or beyond it was given
	floors   map[uint32]core.Offset // where partitions went on after a loss
}

// loadReserves gives each log what metadata knows of it.
func (e *Engine) loadReserves() error {
	return e.cfg.Meta.Load(meta.Limits, func(key string, v []byte) error {
		rec, err := meta.DecodeLimits(v)
		if err != nil {
			return err
		}
		e.mu.RLock()
		l := e.mu.logs[key]
		e.mu.RUnlock()
		if l == nil {
			return nil
		}
		l.reserve.pending = rec.Lossy
		l.reserve.limits, l.reserve.floors = offsetMap(rec.Limits), offsetMap(rec.Floors)
		return nil
	})
}

// jump lets partitions go on where no offset was given before. Called when the log was replayed; the caller holds l.tail.
func (l *log) jump() {
	r := &l.reserve
	for n, p := range l.tail.parts {
		to := r.floors[n]
		if r.pending {
			to = max(to, r.limits[n])
		}
		if to <= p.next {
			continue
		}
		l.eng.cfg.Log.Warn("offsets may have been given to messages that are lost; going on behind them", "topic", p.topic.name.String(),
			"partition", p.index, "from", p.next, "to", to, "epoch", l.epoch)
		p.next = to
		l.reserve.floors[n] = to
	}
}

// covers sees to it that metadata knows of the offsets of a block before it is written. When it cannot be told and offsets
// may be lost for it, the block must not be written.
func (l *log) covers(xs []journal.Extent) error {
	r := &l.reserve
	said := r.pending || !r.deferred // a clean shutdown has settled what was given before it, and nothing else
	if l.volatile || said && !slices.ContainsFunc(xs, func(x journal.Extent) bool { return x.Next() > r.limits[x.Partition] }) {
		return nil
	}
	r.size = min(max(2*r.size, reserveLeast), reserveMost)
	for _, x := range xs {
		r.limits[x.Partition] = max(r.limits[x.Partition], x.Next()+r.size)
	}
	r.pending = r.deferred
	err := l.eng.cfg.Meta.Apply([]meta.Write{l.limits()})
	if err != nil && !r.deferred {
		l.eng.cfg.Log.Error("offsets not reserved: a repair would not know of them", "journal", l.name, "err", err)
		return nil
	}
	return err
}

// limits is the record of what is reserved, without the partitions that were deleted.
func (l *log) limits() meta.Write {
	l.tail.RLock()
	defer l.tail.RUnlock()
	gone := func(n uint32, _ core.Offset) bool { return l.tail.parts[n] == nil }
	maps.DeleteFunc(l.reserve.limits, gone)
	maps.DeleteFunc(l.reserve.floors, gone)
	rec := meta.LimitsRecord{Lossy: l.reserve.pending, Limits: offsetsOf(l.reserve.limits), Floors: offsetsOf(l.reserve.floors)}
	return meta.Write{Bucket: meta.Limits, Key: l.name, Value: rec.Encode()}
}

func offsetsOf(m map[uint32]core.Offset) (ps []meta.PartitionOffset) {
	for n, o := range m {
		ps = append(ps, meta.PartitionOffset{Partition: n, Offset: o})
	}
	slices.SortFunc(ps, func(a, b meta.PartitionOffset) int { return cmp.Compare(a.Partition, b.Partition) })
	return ps
}

// settleReserves says in metadata that nothing was lost: of logs whose last block is on the disk, and known to be. Called
// when no committer is alive.
func (e *Engine) settleReserves() error {
	var ws []meta.Write
	for _, l := range e.allLogs() {
		l.tail.RLock()
		saved := l.tail.seq == l.tail.savedSeq
		l.tail.RUnlock()
		if !l.reserve.pending || !saved || l.broken() != nil {
			continue
		}
		l.reserve.pending = false
		ws = append(ws, l.limits())
	}
	if len(ws) == 0 {
		return nil
	}
	return e.cfg.Meta.Apply(ws)
}
