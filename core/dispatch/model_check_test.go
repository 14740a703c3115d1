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
		if s.mode == core.Shared {
			s.checkShared(t, p, last, a)
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

// checkShared wants what waits for redelivery first, then what is new, each in order.
func (s *sim) checkShared(t *rapid.T, p *simPart, last, a Assignment) {
	if a.Attempt != p.attempt[a.Entry.Base] {
		t.Fatalf("%v: attempt should be %d", a, p.attempt[a.Entry.Base])
	}
	for o := a.Entry.Base; o < a.Entry.end(); o++ {
		if id, ok := p.holder[o]; ok {
			t.Fatalf("%v: %d is at %d", a, o, id)
		}
	}
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
		able := slices.ContainsFunc(s.members, func(c Consumer) bool {
			return s.credit[c.ID] > 0 && (c.ID == p.active || s.mode == core.Shared && p.holds(c.ID) < s.limit)
		})
		for o, acked := range p.acked {
			if _, held := p.holder[core.Offset(o)]; able && !acked && !held {
				t.Fatalf("partition %d: %d waits beside credit", p.Partition, o)
			}
		}
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
		if h, ok := p.State.(*shared); ok && len(h.replay) > len(p.log) {
			t.Fatalf("%d wait for redelivery of a log of %d", len(h.replay), len(p.log))
		}
	}
}

// drain: quiet and enough credit bring everything to its end.
func (s *sim) drain(t *rapid.T) {
	if len(s.members) == 0 {
		s.join(t)
	}
	for _, c := range s.members {
		c.Account.Permits += 1 << 20
		s.credit[c.ID] += 1 << 20
	}
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
