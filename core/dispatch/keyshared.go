package dispatch

import (
	"slices"

	"isthmus/core"
)

// keyShared hands each entry to the member that owns the slot of its key, and a slot's entries in order. When a slot moves
// to another member while the old one holds some of it, the slot drains: it waits until that is acknowledged, asked for
// again, or the old one leaves. So no slot, and no key, is ever in flight at two members, and no other slot waits for it.
//
// What cannot be handed out yet (its slot drains, its owner has no credit, nobody owns it) waits in its slot, and reading
// goes on beyond it: up to Limits.Ahead messages for each member and AheadGroup for all. There reading stops, for all
// members, until some of that is handed out.
// Spec: Pulsar PersistentStickyKeyDispatcherMultipleConsumers; PIP-379
type keyShared struct {
	feed
	place    Placement
	limits   Limits
	anyOrder bool
	split    splitter
	members  []*keyMember // in the order in which they joined
	byID     map[ConsumerID]*keyMember
	known    index
	slots    slots
	messages int64 // not acknowledged: in flight or waiting
	waiting  int64 // of these, the ones that wait
	alarms   alarms
}

// keyMember is a member with what it could be sent at once.
type keyMember struct {
	member
	namesake int   // tells apart members of one name on the ring
	line     line  // its slots of which something could go out
	lined    int64 // messages that wait in those slots
}

func newKeyShared(p Placement, cur core.Cursor) *keyShared {
	return &keyShared{
		feed: newFeed(cur), place: p, limits: p.Limits, anyOrder: p.Keys.OutOfOrder, split: newSplitter(p.Keys.Split),
		byID: map[ConsumerID]*keyMember{},
	}
}

// Join moves slots to the newcomer. It gets none of a slot's messages before what was handed out of it is acknowledged.
func (k *keyShared) Join(c Consumer) error {
	base, err := newMember(c, k.byID[c.ID] != nil)
	if err != nil {
		return err
	}
	m := &keyMember{member: *base}
	if err := k.split.add(m); err != nil {
		return err
	}
	k.members = append(k.members, m)
	k.byID[c.ID] = m
	k.assign()
	return nil
}

// Leave puts what the member held up for redelivery at the new owners, without raising the attempt. With the last one all
// attempts are forgotten and reading begins again at the mark; acknowledgements stay.
func (k *keyShared) Leave(id ConsumerID) {
	m := k.byID[id]
	if m == nil {
		return
	}
	k.split.remove(m)
	delete(k.byID, id)
	k.members = slices.DeleteFunc(k.members, func(x *keyMember) bool { return x == m })
	if len(k.members) == 0 {
		k.forget()
		k.rewind()
		return
	}
	k.release(m)
	k.assign()
}

func (k *keyShared) Reset(cur core.Cursor) {
	k.forget()
	k.feed.reset(cur)
}

// forget drops what is known of entries.
func (k *keyShared) forget() {
	k.known.clear()
	k.slots.clear()
	k.messages, k.waiting, k.alarms = 0, 0, k.alarms[:0]
	for _, m := range k.members {
		m.pending, m.lined = 0, 0
		m.line.clear()
	}
}

// assign asks again whose each slot is that something is known of.
func (k *keyShared) assign() {
	for _, m := range k.members {
		m.lined = 0
		m.line.clear()
	}
	for i := range k.slots.list {
		s := &k.slots.list[i]
		if s.slot == 0 {
			continue
		}
		s.lined, s.queued = 0, none
		s.owner = k.split.owner(s.slot)
		k.slots.settle(int32(i), k.free(s))
	}
}

// free tells whether what waits in a slot may go to its owner.
func (k *keyShared) free(s *slot) bool {
	return s.owner != nil && (s.holder == nil || s.holder == s.owner || k.anyOrder)
}

// Add leaves a gap before e alone, as feed does.
func (k *keyShared) Add(e Entry) {
	if e.end() <= k.read {
		return // added already
	}
	k.read = e.end()
	left := k.cur.Unacked(e.span())
	if left == 0 {
		return
	}
	at := k.slots.at(slotOf(e))
	s := &k.slots.list[at]
	if s.idle() {
		s.owner = k.split.owner(s.slot)
	}
	n := k.slots.node(e, at, left)
	k.known.push(e, n)
	s.addFresh(&k.slots, n, left)
	k.messages += left
	k.waiting += left
	k.slots.settle(at, k.free(s))
}

// slotOf spreads what has no key.
// Spec: Pulsar: a message without a key goes to the slot of its producer and sequence; here to that of its place in the log,
// which is the same for all protocols
func slotOf(e Entry) uint32 {
	if e.Hash != 0 {
		return e.Hash % core.KeySlots
	}
	var b [8]byte
	for i := range b {
		b[i] = byte(e.Base >> (8 * i))
	}
	return core.KeySlot(b[:])
}

func (k *keyShared) Skip(r core.Range) {
	if k.skip(r) {
		k.settle(r, true)
	}
}

// Ack counts what of r was handed out, whoever it comes from; what waits between and was only read ahead stays. It is settled
// at the member that has it now: one that lost its connection acknowledges through a new consumer what it got by the old
// one, and applications acknowledge ids through whichever consumer they have. Refusing that would leave messages, and with
// them their slots, with a member that will never acknowledge them. A late ack frees nothing beside its own messages: the
// slot stays where the rest of it is in flight.
// Spec: Pulsar Consumer.individualAckNormal, getAckOwnerConsumer: "Consumer may ack the msg that not belongs to it"
func (k *keyShared) Ack(_ ConsumerID, r core.Range) { k.settle(r, false) }

// AckThrough does nothing: who says it does not know what lies below next at other members.
// Spec: Pulsar: cumulative ack on Key_Shared is ignored
func (k *keyShared) AckThrough(ConsumerID, core.Offset) {}

// settle brings known entries in line with an ack of r. skipped says that the cursor has it already.
func (k *keyShared) settle(r core.Range, skipped bool) {
	for i := k.known.find(r.From); i < len(k.known.items) && k.known.items[i].base < r.To; i++ {
		at := k.known.items[i].node
		if at == 0 {
			continue
		}
		n := &k.slots.nodes[at]
		if !skipped && (!n.given || !k.skip(core.Range{From: max(r.From, n.Base), To: min(r.To, n.end())})) {
			continue
		}
		left := int64(0)
		if n.Base < r.From || n.end() > r.To {
			left = k.cur.Unacked(n.span())
		}
		if left == 0 {
			k.known.drop(i)
		}
		k.shrink(at, left)
	}
	k.known.trim()
}

// shrink notes that only left messages of a node are not acknowledged.
func (k *keyShared) shrink(at int32, left int64) {
	n := &k.slots.nodes[at]
	done, in := n.left-left, n.slot
	s := &k.slots.list[in]
	n.left = left
	k.messages -= done
	if n.owner != nil {
		n.owner.pending -= done
		if left == 0 {
			k.slots.land(s)
			k.slots.drop(at)
		}
	} else {
		k.waiting -= done
		s.messages -= done
		k.slots.sweep(s)
	}
	k.slots.settle(in, k.free(s))
}

// Nack raises the attempt of the entry that holds base, if id has it. It goes out again before anything later of its slot.
// With a delay it counts as id's until then, so that its slot moves to nobody else.
// Spec: Pulsar CommandRedeliverUnacknowledgedMessages: only what is pending at this consumer, redelivery_count + 1
func (k *keyShared) Nack(id ConsumerID, base core.Offset, at int64) {
	if n := k.heldBy(id, base); n != 0 {
		k.ask(n, at)
	}
}

// ask takes a node back from its owner: now, or at its time.
func (k *keyShared) ask(n int32, at int64) {
	if at <= k.now {
		at = k.place.backoff(k.now, k.slots.nodes[n].attempt)
	}
	if at > k.now {
		k.alarm(n, at)
		return
	}
	k.put(n, 1)
}

func (k *keyShared) Return(id ConsumerID, base core.Offset) {
	if n := k.heldBy(id, base); n != 0 {
		k.put(n, 0)
	}
}

func (k *keyShared) Hold(id ConsumerID, base core.Offset, until int64) {
	if n := k.heldBy(id, base); n != 0 {
		k.alarm(n, until)
	}
}

// heldBy returns the node of the entry that holds base, 0 if it is not id that has it.
func (k *keyShared) heldBy(id ConsumerID, base core.Offset) int32 {
	at := k.known.at(base)
	if at == 0 {
		return 0
	}
	if n := &k.slots.nodes[at]; n.owner == nil || n.owner.ID != id {
		return 0
	}
	return at
}

// alarm sets when a node is taken back from its owner; 0: never. Alarms that are set anew or whose node is settled stay in
// the heap and ring for nobody; when those are the most, the heap is made anew.
func (k *keyShared) alarm(at int32, when int64) {
	n := &k.slots.nodes[at]
	n.due = when
	if when == 0 {
		return
	}
	k.alarms.push(alarm{when, n.Base})
	if !stale(k.alarms, len(k.known.items)-k.known.head) {
		return
	}
	k.alarms = k.alarms[:0]
	for i := k.known.head; i < len(k.known.items); i++ {
		if at := k.known.items[i].node; at != 0 && k.slots.nodes[at].due != 0 {
			k.alarms.push(alarm{k.slots.nodes[at].due, k.slots.nodes[at].Base})
		}
	}
}

// Expire takes back what was held for too long, and what was asked for again with a delay; both raise the attempt.
func (k *keyShared) Expire(now int64) {
	k.tick(now)
	for len(k.alarms) > 0 && k.alarms[0].at <= k.now {
		a := k.alarms.pop()
		at := k.known.at(a.base)
		if at == 0 {
			continue
		}
		if n := &k.slots.nodes[at]; n.owner != nil && n.due == a.at && n.Base == a.base {
			k.put(at, 1)
		}
	}
}

func (k *keyShared) NackAll(id ConsumerID) {
	m := k.byID[id]
	if m == nil {
		return
	}
	for i := k.known.head; i < len(k.known.items) && m.pending > 0; i++ {
		if at := k.known.items[i].node; at != 0 && k.slots.nodes[at].owner == m {
			k.ask(at, 0)
		}
	}
}

// release puts all that m holds up for redelivery, for no fault of its own.
func (k *keyShared) release(m *keyMember) {
	for i := k.known.head; i < len(k.known.items) && m.pending > 0; i++ {
		if at := k.known.items[i].node; at != 0 && k.slots.nodes[at].owner == m {
			k.put(at, 0)
		}
	}
}

func (k *keyShared) put(at int32, raise int32) {
	n := &k.slots.nodes[at]
	s := &k.slots.list[n.slot]
	n.owner.pending -= n.left
	n.owner, n.due = nil, 0
	n.attempt += raise
	k.waiting += n.left
	k.slots.land(s)
	s.addAgain(&k.slots, at, n.left)
	k.slots.settle(n.slot, k.free(s))
}

func (k *keyShared) InFlight() int { return int(k.messages - k.waiting) }

// Want reads on as long as somebody could take more than what is lined up for it, however much waits for others.
func (k *keyShared) Want() int {
	room := min(k.ahead()-k.waiting, k.limits.Group-k.messages)
	if room <= 0 {
		return 0
	}
	spare := int64(0)
	for _, m := range k.members {
		spare += max(0, min(m.Account.Permits, k.limits.Consumer-m.pending)-m.lined)
		if spare >= room {
			break
		}
	}
	return int(min(spare, room))
}

// ahead bounds what waits.
func (k *keyShared) ahead() int64 {
	return min(k.limits.Ahead*int64(len(k.members)), k.limits.AheadGroup)
}

// Ready hands each member its slots as long as it has credit, the lowest offset first.
func (k *keyShared) Ready() Ready {
	k.begin()
	for _, m := range k.members {
		for m.lined > 0 && m.Account.Permits > 0 && m.pending < k.limits.Consumer {
			q, ok := m.line.pop()
			if !ok {
				break
			}
			if k.slots.list[q.slot].queued == q.base {
				k.give(m, q.slot)
			}
		}
	}
	r := k.end()
	r.Wake = soonest(k.alarms)
	return r
}

// give hands m the first entry of a slot.
func (k *keyShared) give(m *keyMember, in int32) {
	s := &k.slots.list[in]
	at := s.pop(&k.slots)
	n := &k.slots.nodes[at]
	n.owner, n.given = m, true
	s.holder, s.queued = m, none
	s.flying++
	s.messages -= n.left
	m.pending += n.left
	k.waiting -= n.left
	k.hand(&m.member, n.Entry, n.attempt, n.left)
	if m.Timeout > 0 {
		k.alarm(at, k.now+m.Timeout)
	}
	k.slots.sweep(s)
	k.slots.settle(in, k.free(s))
}
