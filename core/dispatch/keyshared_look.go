package dispatch

import (
	"fmt"

	"isthmus/core"
)

// Look tells how the state of a key_shared group stands.
func (k *keyShared) Look() Look {
	l := Look{InFlight: k.messages - k.waiting, Holds: map[ConsumerID]int64{}}
	first := int32(0) // of what waits
	for _, x := range k.known.items[k.known.head:] {
		n := &k.slots.nodes[x.node]
		switch {
		case x.node == 0:
			continue
		case n.owner == nil && first == 0:
			first = x.node
		}
		l.Attempts = max(l.Attempts, n.attempt)
		if n.owner == nil && n.given {
			l.Waiting += n.left
		}
	}
	credit := false
	for id, m := range k.byID {
		l.Holds[id] = m.pending
		credit = credit || m.Account.Permits > 0
	}
	switch ahead := k.ahead(); {
	case len(k.members) == 0:
		l.Stall = "no consumer"
	case k.messages >= k.limits.Group:
		l.Stall = fmt.Sprintf("%d messages are not acknowledged: the limit of the group", k.messages)
	case first != 0:
		l.Stall = k.reason(&k.slots.nodes[first])
		if k.waiting >= ahead {
			l.Stall += fmt.Sprintf("; nothing more is read, since %d messages wait", k.waiting)
		}
	case !credit:
		l.Stall = "no consumer takes more: no permits"
	}
	return l
}

// reason tells why a node waits.
func (k *keyShared) reason(n *node) string {
	switch s := &k.slots.list[n.slot]; {
	case s.owner == nil:
		return fmt.Sprintf("offset %d waits for a consumer that declares slot %d", n.Base, s.slot)
	case !k.free(s):
		return fmt.Sprintf("offset %d waits until %q has acknowledged what it got of its key", n.Base, s.holder.Name)
	case s.owner.Account.Permits <= 0:
		return fmt.Sprintf("offset %d waits for %q, which takes no more: no permits", n.Base, s.owner.Name)
	case s.owner.pending >= k.limits.Consumer:
		return fmt.Sprintf("offset %d waits for %q, which holds %d messages unacknowledged: the limit of a consumer", n.Base, s.owner.Name, s.owner.pending)
	}
	return ""
}

// Slots tells which slots each member owns, in order. It asks for every one of them, so it is for people.
func (k *keyShared) Slots() map[ConsumerID][]SlotRange {
	own := map[ConsumerID][]SlotRange{}
	last := ConsumerID(0)
	for slot := uint32(1); slot < core.KeySlots; slot++ {
		m := k.split.owner(slot)
		if m == nil {
			last = 0
			continue
		}
		rs := own[m.ID]
		if m.ID == last {
			rs[len(rs)-1].To = slot
		} else {
			own[m.ID] = append(rs, SlotRange{slot, slot})
		}
		last = m.ID
	}
	return own
}
