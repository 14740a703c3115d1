package engine

import (
	"fmt"
	"slices"

	"isthmus/core"
	"isthmus/core/dispatch"
)

// Keys, Split and SlotRange say how a key_shared group shares out its keys; see dispatch.
type (
	Keys      = dispatch.Keys
	Split     = dispatch.Split
	SlotRange = dispatch.SlotRange
)

// The ways to split.
const (
	SplitRing     = dispatch.Ring
	SplitHalves   = dispatch.Halves
	SplitDeclared = dispatch.Declared
)

// ErrSlots says that the slots of a member cannot be declared.
var ErrSlots = dispatch.ErrSlots

// Splitter takes a native entry of several messages apart, for a group that cares for keys. It appends to dst either one
// entry, which is e with the key that all of its messages share, or one for each message: Count 1, the message's own key
// and native bytes. What it cannot read stays whole, under the key that e has. It runs on runners; slices of what it
// appends may be views into e.
type Splitter func(e *core.Entry, dst []core.Entry) ([]core.Entry, error)

// keySlot is the slot of an entry of one key, 0 without a key.
// Spec: ACCEPTANCE S1.37: the ordering key before the key
func keySlot(e *core.Entry) uint32 {
	switch {
	case len(e.OrderingKey) > 0:
		return core.KeySlot(e.OrderingKey)
	case e.Flags&core.FlagHasKey != 0:
		return core.KeySlot(e.Key)
	}
	return 0
}

// addByKey adds an entry to a key_shared state: whole if one slot holds all of it, else message by message.
func (r *runner) addByKey(rp *runnerPart, e *core.Entry) {
	pieces, slot := r.cut(rp, e)
	if len(pieces) <= 1 {
		rp.state.Add(dispatch.Entry{Base: e.Base, Count: e.Count, Hash: slot})
		rp.pieces = append(rp.pieces, *e)
		return
	}
	for i := range pieces {
		rp.state.Add(dispatch.Entry{Base: pieces[i].Base, Count: 1, Hash: keySlot(&pieces[i])})
	}
	rp.pieces = append(rp.pieces, pieces...)
}

// cut returns the messages of an entry that lies in several slots, or the one slot. The pieces are valid until the next cut.
func (r *runner) cut(rp *runnerPart, e *core.Entry) (pieces []core.Entry, slot uint32) {
	split := r.log.eng.cfg.Splitters[e.Format]
	if e.Count == 1 || split == nil || e.Flags&core.FlagEncrypted != 0 {
		return nil, keySlot(e)
	}
	pieces, err := split(e, rp.cutting[:0])
	rp.cutting = pieces
	if err != nil || len(pieces) > 1 && len(pieces) != int(e.Count) {
		r.log.eng.cfg.Log.Warn("batch not taken apart, it goes by its outer key", "topic", rp.gp.p.topic.name.String(),
			"partition", rp.gp.p.index, "group", r.group.name, "offset", e.Base, "err", err)
		return nil, keySlot(e)
	}
	if len(pieces) == 0 {
		return nil, keySlot(e)
	}
	slot = keySlot(&pieces[0])
	if !slices.ContainsFunc(pieces, func(p core.Entry) bool { return keySlot(&p) != slot }) {
		return nil, slot
	}
	return pieces, 0
}

// piece finds what was assigned in an entry that was read again: the entry itself, or one message of it.
func (r *runner) piece(rp *runnerPart, e core.Entry, want core.Range) (core.Entry, bool) {
	if e.Base == want.From && e.End() == want.To {
		return e, true
	}
	if e.Base > want.From || e.End() < want.To || !r.byKey {
		return e, false
	}
	if rp.again.Base != e.Base || len(rp.againPieces) == 0 {
		pieces, _ := r.cut(rp, &e)
		rp.again, rp.againPieces = e, append(rp.againPieces[:0], pieces...)
	}
	for i := range rp.againPieces {
		if p := &rp.againPieces[i]; p.Base == want.From && p.End() == want.To {
			return *p, true
		}
	}
	return e, false
}

// complete says how the keys of a member are split that left it open.
func (e *Engine) complete(m *Member) {
	if m.Mode == core.KeyShared && m.Keys.Split == SplitRing {
		m.Keys.Split = e.cfg.Defaults.Split
	}
}

// sameKeys tells whether a member may join those that are there, whose policy is have.
// Spec: Pulsar PersistentSubscription: hasSameKeySharedPolicy
func sameKeys(m *Member, have Keys) error {
	if m.Mode == core.KeyShared && m.Keys != have {
		return fmt.Errorf("its members share keys by %v, not by %v: %w", have, m.Keys, core.ErrBusy)
	}
	return nil
}
