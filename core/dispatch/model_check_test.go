package dispatch

import (
	"cmp"
	"slices"
	"unicode/utf16"

	"isthmus/core"

	"pgregory.net/rapid"
)

// hand calls Ready and holds each assignment against the model.
func (s *sim) hand(t *rapid.T, p *simPart) (moved bool) {
	r := p.Ready()
	for _, n := range r.Notices {
		p.told[n.To] = n.Active
	}
	last := Assignment{Entry: Entry{Base: -1}}
	for _, a := range r.Deliver {
		if !slices.ContainsFunc(s.members, func(c Consumer) bool { return c.ID == a.To }) || s.credit[a.To] <= 0 {
			t.Fatalf("%v to one who is gone or has no credit", a)
		}
		if s.many() {
			if s.checkHeld(t, p, a); s.mode == core.Shared {
				s.checkTurn(t, p, last, a)
			} else {
				s.checkKey(t, p, a)
			}
			if n := p.holds(a.To); n >= s.limit {
				t.Fatalf("%v to one who holds %d", a, n)
			}
		} else {
			s.checkSingle(t, p, a)
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
		if i := slices.IndexFunc(s.members, func(c Consumer) bool { return c.ID == a.To }); s.many() && s.members[i].Timeout > 0 {
			p.alarm[a.Entry.Base] = s.now + s.members[i].Timeout
		}
		p.high = max(p.high, a.Entry.end())
		p.seen[a.Entry.Base], last = true, a
	}
	cur := p.Cursor()
	if changed := !cur.Equal(p.saved); changed != r.Dirty && !p.sought {
		t.Fatalf("dirty %v, changed %v", r.Dirty, changed)
	}
	p.saved, p.sought = cur.Clone(), false
	return len(r.Deliver) > 0
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

// checkKey wants the owner of the slot, nobody else holding any of it, and nothing earlier of it waiting.
func (s *sim) checkKey(t *rapid.T, p *simPart, a Assignment) {
	number := slotOf(a.Entry)
	if owner := p.owner(number); owner == nil || owner.ID != a.To {
		t.Fatalf("%v: slot %d is %v's", a, number, owner)
	}
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

// owner asks the splitter, which has a test of its own.
func (p *simPart) owner(slot uint32) *keyMember { return p.State.(*keyShared).split.owner(slot) }

// checkSingle wants the first entry after the last one sent in which something is not acknowledged.
func (s *sim) checkSingle(t *rapid.T, p *simPart, a Assignment) {
	next := p.sent
	for next < core.Offset(len(p.acked)) && p.acked[next] {
		next++
	}
	want, _ := p.entryAt(next)
	if a.To != p.active || a.Attempt != 0 || a.Entry != want {
		t.Fatalf("%v: want %v at %d", a, want, p.active)
	}
	p.sent = want.end()
}

// settle does what the engine does until nothing moves; then credit that is left means that nothing waits.
func (s *sim) settle(t *rapid.T) {
	for moved := true; moved; {
		moved = false
		for _, p := range s.parts {
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
		if s.mode == core.KeyShared {
			s.checkStall(t, p)
			continue
		}
		able := slices.ContainsFunc(s.members, func(c Consumer) bool {
			return s.credit[c.ID] > 0 && (c.ID == p.active || s.mode == core.Shared && p.holds(c.ID) < s.limit)
		})
		for o, acked := range p.acked {
			e, _ := p.entryAt(core.Offset(o))
			if _, held := p.holder[core.Offset(o)]; able && !acked && !held && p.later[e.Base] <= s.now {
				t.Fatalf("partition %d: %d waits beside credit", p.Partition, o)
			}
		}
	}
}

// checkStall: what was read waits for its slot, for its owner's credit, or for an owner, and nothing else; what was not read
// waits for credit or for the bound of reading ahead.
func (s *sim) checkStall(t *rapid.T, p *simPart) {
	able := func(c Consumer) bool { return s.credit[c.ID] > 0 && p.holds(c.ID) < s.limit }
	waiting := int64(0)
	for _, e := range p.log {
		number := slotOf(e)
		owner, drains := p.owner(number), false
		for _, f := range p.log {
			for o := f.Base; o < f.end() && slotOf(f) == number; o++ {
				id, held := p.holder[o]
				drains = drains || held && owner != nil && id != owner.ID && !s.keys.OutOfOrder
			}
		}
		for o := e.Base; o < e.end(); o++ {
			if _, held := p.holder[o]; held || p.acked[o] || o >= p.Next() {
				continue
			}
			if waiting++; owner != nil && able(owner.Consumer) && !drains {
				t.Fatalf("partition %d: %d waits beside the credit of %d", p.Partition, o, owner.ID)
			}
		}
	}
	room := waiting < min(s.ahead*int64(len(s.members)), 40_000)
	if room && p.Next() < core.Offset(len(p.acked)) && slices.ContainsFunc(s.members, able) {
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
		for _, c := range s.members {
			if told, ok := p.told[c.ID]; ok != (s.mode == core.Failover) || told != (ok && c.ID == p.active) {
				t.Fatalf("partition %d: %d was told %v, active is %d", p.Partition, c.ID, told, p.active)
			}
		}
		if cur := p.Cursor(); cur.Next != core.Offset(len(p.acked)) || cur.Holes() > 0 || p.InFlight() != 0 {
			t.Fatalf("partition %d ends at %v of %d", p.Partition, cur, len(p.acked))
		}
	}
}

func javaCompare(a, b Consumer) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), slices.Compare(utf16.Encode([]rune(a.Name)), utf16.Encode([]rune(b.Name))))
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
