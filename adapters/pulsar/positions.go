package pulsar

import (
	"time"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// ledgerOf is the ledger id of a partition: its number, which is never reused, plus one.
func ledgerOf(p *engine.Partition) uint64 { return uint64(p.Number()) + 1 }

// idOf is the message id of an entry.
func idOf(p *engine.Partition, base core.Offset, index int32) wire.MessageID {
	return wire.MessageID{Ledger: ledgerOf(p), Entry: uint64(base), Partition: index, BatchIndex: -1}
}

// position reads an id as a point in the order of a partition: the offset of its entry. Ids of elsewhere, or from before
// retention, are points too: before everything, or after.
// Spec: Pulsar MessageIdData: earliest (-1,-1), latest (2^63-1, 2^63-1); any position is a point, none has to be exact
func position(p *engine.Partition, id *wire.MessageID) core.Offset {
	first, next := p.Bounds()
	ledger := int64(id.Ledger)
	switch own := int64(ledgerOf(p)); {
	case ledger < own:
		return first
	case ledger > own:
		return next
	}
	return min(max(int64(id.Entry), first), next)
}

// startOf is where a new group begins. parts are the partitions that it is about; an id counts for one partition only.
// Spec: Pulsar CommandSubscribe.start_message_id: inclusive for the broker, the client drops what it does not want;
// absent means latest
func startOf(q *wire.Subscribe, p *engine.Partition, now time.Time) engine.Start {
	s := engine.Start{At: engine.Latest, NonDurable: !q.Durable}
	switch {
	case q.RollbackSeconds > 0:
		s.At, s.Time = engine.AtTime, now.Add(-time.Duration(min(q.RollbackSeconds, 1<<31))*time.Second).UnixMilli()
	case q.Durable:
		if q.Earliest == 1 {
			s.At = engine.Earliest
		}
	case !q.HasStart || q.Start.Latest():
	case q.Start.Earliest():
		s.At = engine.Earliest
	case p != nil:
		s.At, s.Offset = engine.AtOffset, position(p, &q.Start)
	}
	return s
}
