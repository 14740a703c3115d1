package dispatch

import (
	"slices"

	"isthmus/core"

	"pgregory.net/rapid"
)

// hand calls Ready and holds each assignment against the model.
func (s *sim) hand(t *rapid.T, p *simPart) (moved bool) {
	s.tick(p)
	r := p.Ready()
	s.checkNotices(t, p, r.Notices)
	last := Assignment{Entry: Entry{Base: -1}}
	for _, a := range r.Deliver {
		i := slices.IndexFunc(s.members, func(c Consumer) bool { return c.ID == a.To })
		if i < 0 || s.credit[a.To] <= 0 {
			t.Fatalf("%v to one who is gone or has no credit", a)
		}
		switch s.mode {
		case core.Shared:
			s.checkHeld(t, p, a)
			s.checkTurn(t, p, last, a)
			s.checkPriority(t, p, s.members[i])
		case core.KeyShared:
			s.checkHeld(t, p, a)
			s.checkKey(t, p, a)
		case core.Exclusive, core.Failover:
			s.checkSingle(t, p, a)
		}
		s.handed(t, p, a, s.members[i].Timeout)
		last = a
	}
	s.checkWake(t, p, r.Wake)
	cur := p.Cursor()
	if changed := !cur.Equal(p.saved); changed != r.Dirty && !p.sought {
		t.Fatalf("dirty %v, changed %v", r.Dirty, changed)
	}
	p.saved, p.sought = cur.Clone(), false
	return len(r.Deliver) > 0
}

// handed notes an assignment, and wants to be told what of it is acknowledged.
func (s *sim) handed(t *rapid.T, p *simPart, a Assignment, timeout int64) {
	if n := p.holds(a.To); s.many() && int64(n) >= s.limits.Consumer {
		t.Fatalf("%v to one who holds %d", a, n)
	}
	acked := []core.Range(nil)
	for o := a.Entry.Base; o < a.Entry.end(); o++ {
		if n := len(acked); !p.acked[o] {
			p.holder[o] = a.To
			s.credit[a.To]--
		} else if n > 0 && acked[n-1].To == o {
			acked[n-1].To++
		} else {
			acked = append(acked, core.Range{From: o, To: o + 1})
		}
	}
	if !slices.Equal(acked, a.Acked) || len(acked) == 1 && acked[0] == a.Entry.span() {
		t.Fatalf("%v: acknowledged in it is %v", a, acked)
	}
	delete(p.later, a.Entry.Base)
	delete(p.alarm, a.Entry.Base)
	if s.many() && timeout > 0 {
		p.alarm[a.Entry.Base] = s.now + timeout
	}
	p.high = max(p.high, a.Entry.end())
	p.seen[a.Entry.Base] = true
}

// checkNotices: in failover everybody knows whether it receives, and nobody is told anything in a grace.
func (s *sim) checkNotices(t *rapid.T, p *simPart, ns []Notice) {
	for _, n := range ns {
		if p.grace || !s.here(n.To) || n.Active != (n.To == p.active) {
			t.Fatalf("%+v, active is %d, in a grace %v", n, p.active, p.grace)
		}
		p.told[n.To] = n.Active
	}
	for _, c := range s.members {
		if told, ok := p.told[c.ID]; !p.grace && (ok != (s.mode == core.Failover) || told != (ok && c.ID == p.active)) {
			t.Fatalf("%d was told %v, active is %d", c.ID, told, p.active)
		}
	}
}

// checkWake: whoever sleeps until then misses nothing that is due.
func (s *sim) checkWake(t *rapid.T, p *simPart, wake int64) {
	due := p.pause
	if p.grace {
		due = p.until
	}
	for _, at := range []map[core.Offset]int64{p.alarm, p.later} {
		for base, when := range at {
			if e, _ := p.entryAt(base); p.left(e) > 0 && when > s.now && (due == 0 || when < due) {
				due = when
			}
		}
	}
	if wake != 0 && wake <= s.now || due != 0 && (wake == 0 || wake > due) {
		t.Fatalf("at %d it is to wake at %d, and something is due at %d", s.now, wake, due)
	}
}

func (p *simPart) left(e Entry) (n int64) {
	for o := e.Base; o < e.end(); o++ {
		if !p.acked[o] {
			n++
		}
	}
	return n
}

// checkPriority wants nobody of a better priority able to take anything.
func (s *sim) checkPriority(t *rapid.T, p *simPart, to Consumer) {
	for _, c := range s.members {
		if c.Priority < to.Priority && s.able(p, c) {
			t.Fatalf("%d gets something before %d, of a better priority", to.ID, c.ID)
		}
	}
}

// able tells whether a member of a group of many can take something.
func (s *sim) able(p *simPart, c Consumer) bool {
	return s.credit[c.ID] > 0 && int64(p.holds(c.ID)) < s.limits.Consumer
}

// checkHeld wants the attempt counted, and the entry at nobody.
func (s *sim) checkHeld(t *rapid.T, p *simPart, a Assignment) {
	if a.Attempt != p.attempt[a.Entry.Base] {
		t.Fatalf("%v: attempt should be %d", a, p.attempt[a.Entry.Base])
	}
	for o := a.Entry.Base; o < a.Entry.end(); o++ {
		if id, ok := p.holder[o]; ok {
			t.Fatalf("%v: %d is at %d", a, o, id)
		}
	}
	if at := p.later[a.Entry.Base]; at > s.now {
		t.Fatalf("%v at %d, before its time %d", a, s.now, at)
	}
}

// checkTurn wants what waits for redelivery first, then what is new, each in order.
func (s *sim) checkTurn(t *rapid.T, p *simPart, last, a Assignment) {
	switch again := p.seen[a.Entry.Base]; {
	case a.Entry.Base < last.Entry.Base:
		t.Fatalf("%v after %v", a, last)
	case !again:
		for base := range p.seen {
			if base > a.Entry.Base {
				t.Fatalf("%v is new, after %d", a, base)
			}
		}
	}
}

// checkKey wants the owner of the slot, the same as before unless members changed, nobody else holding any of it, and nothing
// earlier of it waiting.
func (s *sim) checkKey(t *rapid.T, p *simPart, a Assignment) {
	number := slotOf(a.Entry)
	if owner := s.split.owner(number); owner != a.To {
		t.Fatalf("%v: slot %d is %d's", a, number, owner)
	}
	if before, some := p.owners[number]; some && before != a.To {
		t.Fatalf("%v: slot %d was at %d just now", a, number, before)
	}
	p.owners[number] = a.To
	for _, e := range p.log {
		for o := e.Base; o < e.end() && slotOf(e) == number; o++ {
			id, held := p.holder[o]
			if held && id != a.To && !s.keys.OutOfOrder {
				t.Fatalf("%v: %d of the same slot is at %d", a, o, id)
			}
			if !held && !p.acked[o] && o < a.Entry.Base {
				t.Fatalf("%v: %d of the same slot waits", a, o)
			}
		}
	}
}

// checkSingle wants the first entry after the last one sent in which something is not acknowledged.
func (s *sim) checkSingle(t *rapid.T, p *simPart, a Assignment) {
	next := p.sent
	for next < core.Offset(len(p.acked)) && p.acked[next] {
		next++
	}
	want, _ := p.entryAt(next)
	if a.To != p.active || a.Attempt != 0 || a.Entry != want || p.grace || p.pause > s.now {
		t.Fatalf("%v at %d: want %v at %d, in a grace %v, not before %d", a, s.now, want, p.active, p.grace, p.pause)
	}
	p.sent = want.end()
}

// settle does what the engine does until nothing moves; then credit that is left means that nothing waits.
func (s *sim) settle(t *rapid.T) {
	for moved := true; moved; {
		moved = false
		for _, p := range s.parts {
			s.tick(p)
			for p.Want() > 0 {
				e, ok := p.entryAt(p.Next())
				if !ok {
					break
				}
				p.Add(e)
			}
			moved = s.hand(t, p) || moved
		}
	}
	for _, p := range s.parts {
		switch s.mode {
		case core.KeyShared:
			s.checkSlots(t, p)
		case core.Shared:
			s.checkShared(t, p)
		case core.Exclusive, core.Failover:
			s.checkActive(t, p)
		}
	}
}

// checkActive: the active member waits for nothing but credit, the grace, a delayed nack and the limit of holes.
func (s *sim) checkActive(t *rapid.T, p *simPart) {
	holes, end := 0, 0
	for o := int(p.mark()); o < len(p.acked); o++ {
		if p.acked[o] {
			if end != o {
				holes++
			}
			end = o + 1
		}
	}
	full := holes >= s.limits.Holes
	for o, acked := range p.acked {
		_, held := p.holder[core.Offset(o)]
		if s.credit[p.active] > 0 && !acked && !held && !p.grace && p.pause <= s.now && (!full || o < end) {
			t.Fatalf("partition %d: %d waits beside the credit of %d", p.Partition, o, p.active)
		}
	}
}

// checkShared: what nobody holds waits for credit, for its time, or, if it is new, for the limit of the group.
func (s *sim) checkShared(t *rapid.T, p *simPart) {
	out := int64(0)
	for _, e := range p.log {
		if p.seen[e.Base] {
			out += p.left(e)
		}
	}
	able := slices.ContainsFunc(s.members, func(c Consumer) bool { return s.able(p, c) })
	for o, acked := range p.acked {
		e, _ := p.entryAt(core.Offset(o))
		full := !p.seen[e.Base] && out >= s.limits.Group
		if _, held := p.holder[core.Offset(o)]; able && !acked && !held && !full && p.later[e.Base] <= s.now {
			t.Fatalf("partition %d: %d waits beside credit", p.Partition, o)
		}
	}
}

// checkSlots: what was read waits for its slot, for its owner's credit, or for an owner, and nothing else; what was not read
// waits for credit, for the bound of reading ahead or for the limit of the group.
func (s *sim) checkSlots(t *rapid.T, p *simPart) {
	waiting, holders := int64(0), map[uint32]ConsumerID{}
	for _, e := range p.log {
		for o := e.Base; o < e.end(); o++ {
			if id, held := p.holder[o]; held {
				holders[slotOf(e)] = id
			}
		}
	}
	for _, e := range p.log {
		owner := s.split.owner(slotOf(e))
		i := slices.IndexFunc(s.members, func(c Consumer) bool { return c.ID == owner })
		holder, flies := holders[slotOf(e)]
		drains := flies && holder != owner && !s.keys.OutOfOrder
		for o := e.Base; o < e.end(); o++ {
			if _, held := p.holder[o]; held || p.acked[o] || o >= p.Next() {
				continue
			}
			if waiting++; i >= 0 && s.able(p, s.members[i]) && !drains {
				t.Fatalf("partition %d: %d waits beside the credit of %d", p.Partition, o, owner)
			}
		}
	}
	room := waiting < s.limits.Ahead*int64(len(s.members)) && waiting+int64(len(p.holder)) < s.limits.Group
	able := slices.ContainsFunc(s.members, func(c Consumer) bool { return s.able(p, c) })
	if room && able && p.Next() < core.Offset(len(p.acked)) {
		t.Fatalf("partition %d: not read from %d on, beside credit", p.Partition, p.Next())
	}
}

func (p *simPart) holds(id ConsumerID) (n int) {
	for _, owner := range p.holder {
		if owner == id {
			n++
		}
	}
	return n
}

// check holds what is true at any moment.
func (s *sim) check(t *rapid.T) {
	for _, c := range s.members {
		if c.Account.Permits != s.credit[c.ID] {
			t.Fatalf("credit of %d is %d, should be %d", c.ID, c.Account.Permits, s.credit[c.ID])
		}
	}
	for _, p := range s.parts {
		cur := p.Cursor()
		for o, acked := range p.acked {
			if cur.Covers(core.Offset(o)) != acked {
				t.Fatalf("partition %d: %d acknowledged %v, cursor %v", p.Partition, o, acked, cur)
			}
		}
		if cur.Covers(p.Next()) {
			t.Fatalf("reading goes on at %d, which is acknowledged", p.Next())
		}
		if p.InFlight() != len(p.holder) {
			t.Fatalf("in flight %d, should be %d", p.InFlight(), len(p.holder))
		}
		if k, ok := p.State.(*keyShared); ok {
			k.audit(t, p.holder)
		}
		if h, ok := p.State.(*shared); ok && len(h.replay) > len(p.log) {
			t.Fatalf("%d wait for redelivery of a log of %d", len(h.replay), len(p.log))
		}
	}
}

// drain: quiet and enough credit bring everything to its end.
func (s *sim) drain(t *rapid.T) {
	for _, c := range slices.Clone(s.members) {
		if s.keys.Split == Declared { // whose slots may leave some to nobody
			s.exit(c)
		}
	}
	if len(s.members) == 0 {
		s.enter(t, Consumer{ID: 1 << 20, Account: &Account{}, Slots: []SlotRange{{0, core.KeySlots - 1}}}, false)
	}
	for _, c := range s.members {
		c.Account.Permits += 1 << 20
		s.credit[c.ID] += 1 << 20
	}
	s.pass(1000)              // whatever was asked for later is due
	for held := true; held; { // at most a limit goes out at a time
		s.settle(t)
		held = false
		for _, p := range s.parts {
			for o, id := range p.holder {
				p.Ack(id, core.Range{From: o, To: o + 1})
				p.settled(core.Range{From: o, To: o + 1})
				held = true
			}
		}
	}
	for _, p := range s.parts {
		if cur := p.Cursor(); cur.Next != core.Offset(len(p.acked)) || cur.Holes() > 0 || p.InFlight() != 0 {
			t.Fatalf("partition %d ends at %v of %d", p.Partition, cur, len(p.acked))
		}
	}
}

// audit holds the books of a key_shared State against each other.
func (k *keyShared) audit(t *rapid.T, holder map[core.Offset]ConsumerID) {
	lined, messages, flying := map[*keyMember]int64{}, int64(0), int64(0)
	for i := range k.slots.list {
		s := &k.slots.list[i]
		if s.slot == 0 {
			continue
		}
		if s.idle() || (s.holder == nil) != (s.flying == 0) {
			t.Fatalf("slot %+v is of no use", s)
		}
		out, place := s.head() != 0 && k.free(s), queued{s.queued, int32(i)}
		if (s.queued != none) != out || out && (s.lined != s.messages || k.slots.nodes[s.head()].Base != s.queued ||
			!slices.Contains(s.owner.line.items[s.owner.line.head:], place) && !slices.Contains(s.owner.line.rest, place)) {
			t.Fatalf("slot %+v is not in its place", s)
		}
		messages += s.messages
		flying += int64(s.flying)
		if out {
			lined[s.owner] += s.messages
		}
	}
	if messages != k.waiting || k.messages-k.waiting != int64(len(holder)) {
		t.Fatalf("%d wait, counted %d", messages, k.waiting)
	}
	for _, m := range k.members {
		if m.lined != lined[m] {
			t.Fatalf("%d messages lined up for %s, counted %d", lined[m], m.Name, m.lined)
		}
	}
	live := 0
	for _, p := range k.known.items {
		if p.node != 0 {
			live++
		}
	}
	if used := max(0, len(k.slots.nodes)-1) - len(k.slots.freeNodes); k.messages == 0 && used != 0 || used < live {
		t.Fatalf("%d nodes for %d entries, %d messages", used, live, k.messages)
	}
}
