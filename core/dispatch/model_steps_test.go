package dispatch

import (
	"slices"

	"isthmus/core"

	"pgregory.net/rapid"
)

// The steps of the model: each does something to the States and notes what that means.

func (s *sim) draw(t *rapid.T) *simPart {
	return s.parts[rapid.IntRange(0, len(s.parts)-1).Draw(t, "partition")]
}

func (s *sim) someone(t *rapid.T) Consumer {
	if len(s.members) == 0 {
		t.Skip("nobody")
	}
	return s.members[rapid.IntRange(0, len(s.members)-1).Draw(t, "member")]
}

func (p *simPart) place(t *rapid.T) core.Offset {
	return rapid.Int64Range(0, core.Offset(len(p.acked))).Draw(t, "offset")
}

func (s *sim) join(t *rapid.T) {
	s.lastID++
	c := Consumer{
		ID:       s.lastID,
		Name:     rapid.SampledFrom([]string{"a", "b", "c", "d", "é", "😀", "\ue000"}).Draw(t, "name"),
		Priority: rapid.IntRange(0, 1).Draw(t, "priority"),
		Account:  &Account{},
		Timeout:  rapid.SampledFrom([]int64{0, 0, 10}).Draw(t, "timeout"),
	}
	busy := s.mode == core.Exclusive && len(s.members) > 0
	if s.keys.Split == Declared {
		from := rapid.Uint32Range(0, 3).Draw(t, "slots")
		c.Slots = []SlotRange{{from << 14, from<<14 + 1<<14 - 1}}
		busy = slices.ContainsFunc(s.members, func(m Consumer) bool {
			return m.Slots[0] == c.Slots[0] || m.Slots[0].To == core.KeySlots-1 && m.Slots[0].From == 0
		})
	}
	s.enter(t, c, busy)
}

func (s *sim) enter(t *rapid.T, c Consumer, busy bool) {
	for _, p := range s.parts {
		if err := p.Join(c); (err != nil) != busy {
			t.Fatalf("join: %v", err)
		} else if err != nil {
			return
		}
	}
	s.members = append(s.members, c)
	s.credit[c.ID] = c.Account.Permits
	s.changed(func() { s.split.join(c) })
}

// changed is what a change of members means, whoever it was.
func (s *sim) changed(split func()) {
	split()
	for _, p := range s.parts {
		p.owners = map[uint32]ConsumerID{}
	}
	s.elect()
}

func (s *sim) leave(t *rapid.T) { s.exit(s.someone(t)) }

func (s *sim) exit(c Consumer) {
	s.members = slices.DeleteFunc(s.members, func(m Consumer) bool { return m.ID == c.ID })
	delete(s.credit, c.ID)
	for _, p := range s.parts {
		p.Leave(c.ID)
		delete(p.told, c.ID)
		for o, id := range p.holder {
			if id == c.ID && s.many() {
				delete(p.holder, o)
				if e, ok := p.entryAt(o); ok {
					delete(p.alarm, e.Base)
				}
			}
		}
		if s.many() && len(s.members) == 0 {
			p.forget(p.mark())
		}
	}
	s.changed(func() { s.split.leave(c.ID) })
}

func (s *sim) permit(t *rapid.T) {
	c, n := s.someone(t), rapid.Int64Range(1, 12).Draw(t, "permits")
	c.Account.Permits += n
	s.credit[c.ID] += n
}

func (s *sim) publish(t *rapid.T) {
	p := s.draw(t)
	for range rapid.IntRange(1, 12).Draw(t, "entries") {
		n := rapid.SampledFrom([]int32{1, 1, 1, 2, 4}).Draw(t, "count")
		e := Entry{Base: core.Offset(len(p.acked)), Count: n}
		if key := rapid.IntRange(0, 6).Draw(t, "key"); key > 0 {
			e.Hash = core.KeySlot([]byte{byte(key)})
		}
		p.log = append(p.log, e)
		p.acked = append(p.acked, make([]bool, n)...)
	}
}

func (s *sim) read(t *rapid.T) {
	p := s.draw(t)
	s.tick(p)
	for n := rapid.IntRange(1, 9).Draw(t, "entries"); n > 0 && p.Want() > 0; n-- {
		if e, ok := p.entryAt(p.Next()); ok && rapid.IntRange(0, 7).Draw(t, "filtered") == 0 {
			p.Skip(e.span())
			p.settled(e.span())
		} else if ok {
			p.Add(e)
		}
	}
}

func (s *sim) ready(t *rapid.T) { s.hand(t, s.draw(t)) }

// bustle hands out a lot, so that there is something to lose when the next one joins or leaves.
func (s *sim) bustle(t *rapid.T) {
	for range 3 - len(s.members) {
		s.join(t)
	}
	for range 3 {
		s.publish(t)
		s.permit(t)
		s.permit(t)
	}
	s.settle(t)
}

func (s *sim) ack(t *rapid.T) {
	p := s.draw(t)
	from := p.place(t)
	r := core.Range{From: from, To: from + rapid.Int64Range(0, 5).Draw(t, "n")}
	p.Ack(ConsumerID(rapid.Uint64Range(0, 9).Draw(t, "id")), r)
	r.To = min(r.To, p.high)
	if s.mode != core.KeyShared {
		p.settled(r)
		return
	}
	for _, e := range p.log { // between what was handed out lies what was read ahead
		if p.seen[e.Base] {
			p.settled(core.Range{From: max(r.From, e.Base), To: min(r.To, e.end())})
		}
	}
}

func (s *sim) ackHeld(t *rapid.T) {
	p := s.draw(t)
	e, ok := p.entryAt(p.place(t))
	if id, held := p.holder[e.Base]; ok && held {
		p.Ack(id, e.span())
		p.settled(e.span())
	}
}

func (s *sim) ackThrough(t *rapid.T) {
	p := s.draw(t)
	next := p.place(t)
	p.AckThrough(ConsumerID(rapid.Uint64Range(0, 9).Draw(t, "id")), next)
	if !s.many() {
		p.settled(core.Range{From: 0, To: min(next, p.high)})
	}
}

func (s *sim) nack(t *rapid.T) {
	p, c := s.draw(t), s.someone(t)
	o := p.place(t)
	p.Nack(c.ID, o, 0)
	if e, ok := p.entryAt(o); ok && s.many() {
		s.ask(p, e, c.ID, 0)
	} else if !s.many() && c.ID == p.active && o < p.sent {
		p.forget(p.mark())
	}
}

func (s *sim) nackAll(t *rapid.T) {
	p, c := s.draw(t), s.someone(t)
	p.NackAll(c.ID)
	for _, e := range p.log {
		if s.many() {
			s.ask(p, e, c.ID, 0)
		}
	}
	if !s.many() && c.ID == p.active {
		p.forget(p.mark())
	}
}

func (s *sim) nackLater(t *rapid.T) {
	p, c := s.draw(t), s.someone(t)
	e, ok := p.entryAt(p.place(t))
	if !ok {
		t.Skip("nothing to ask for")
	}
	at := s.now + rapid.Int64Range(1, 30).Draw(t, "in")
	p.Nack(c.ID, e.Base, at)
	if s.many() {
		s.ask(p, e, c.ID, at)
	} else if c.ID == p.active && e.Base < p.sent {
		p.forget(p.mark())
		p.pause = at
	}
}

// ask is what a nack means: now, by the back-off, or at its time. By key it stays where it is until then.
func (s *sim) ask(p *simPart, e Entry, id ConsumerID, at int64) {
	if !p.has(e, id) {
		return
	}
	if n := len(p.Backoff); at == 0 && n > 0 {
		if d := p.Backoff[min(int(p.attempt[e.Base]), n-1)]; d > 0 {
			at = s.now + d
		}
	}
	switch {
	case at == 0:
		p.askedAgain(e, id)
	case s.mode == core.KeyShared:
		p.alarm[e.Base] = at
	default:
		p.askedAgain(e, id)
		p.later[e.Base] = at
	}
}

// giveBack: what could not be handed over was never handed over, in an ordered group with all that follows it.
func (s *sim) giveBack(t *rapid.T) {
	p, c := s.draw(t), s.someone(t)
	e, ok := p.entryAt(p.place(t))
	if !ok {
		t.Skip("nothing to return")
	}
	p.Return(c.ID, e.Base)
	switch from := max(e.Base, p.mark()); {
	case s.many() && p.has(e, c.ID):
		delete(p.alarm, e.Base)
		for o := e.Base; o < e.end(); o++ {
			delete(p.holder, o)
		}
	case !s.many() && c.ID == p.active && e.Base < p.sent:
		for o := range p.holder {
			if o >= from {
				delete(p.holder, o)
			}
		}
		p.sent = from
	}
}

func (p *simPart) has(e Entry, id ConsumerID) bool {
	for o := e.Base; o < e.end(); o++ {
		if p.holder[o] == id {
			return true
		}
	}
	return false
}

func (s *sim) hold(t *rapid.T) {
	p, c := s.draw(t), s.someone(t)
	e, ok := p.entryAt(p.place(t))
	if !ok || !s.many() {
		t.Skip("nothing to hold")
	}
	until := rapid.SampledFrom([]int64{0, s.now, s.now + 3, s.now + 25}).Draw(t, "until")
	p.Hold(c.ID, e.Base, until)
	if p.has(e, c.ID) {
		if p.alarm[e.Base] = until; until == 0 {
			delete(p.alarm, e.Base)
		}
	}
}

func (s *sim) time(t *rapid.T) { s.pass(rapid.Int64Range(1, 15).Draw(t, "ms")) }

func (s *sim) pass(ms int64) {
	s.now += ms
	for _, p := range s.parts {
		s.tick(p)
	}
}

// tick tells a State the time, as its runner does before each turn.
func (s *sim) tick(p *simPart) {
	p.Expire(s.now)
	if p.grace && (s.now >= p.until || len(p.holder) == 0) {
		p.takeOver(p.heir)
	}
	if p.pause <= s.now {
		p.pause = 0
	}
	for _, e := range p.log {
		if at, set := p.alarm[e.Base]; set && at <= s.now {
			for o := e.Base; o < e.end(); o++ {
				if id, held := p.holder[o]; held {
					p.askedAgain(e, id)
					break
				}
			}
			delete(p.alarm, e.Base)
		}
	}
}

// askedAgain takes e from id, if id holds what is left of it.
func (p *simPart) askedAgain(e Entry, id ConsumerID) {
	had := false
	for o := e.Base; o < e.end(); o++ {
		if p.holder[o] == id {
			delete(p.holder, o)
			had = true
		}
	}
	if had {
		p.attempt[e.Base]++
		delete(p.alarm, e.Base)
	}
}

func (s *sim) skip(t *rapid.T) {
	p := s.draw(t)
	from := p.place(t)
	r := core.Range{From: from, To: min(from+rapid.Int64Range(0, 3).Draw(t, "n"), core.Offset(len(p.acked)))}
	p.Skip(r)
	p.settled(r)
}

// seek goes on from anywhere, with what was acknowledged beyond it or without, whoever is connected.
func (s *sim) seek(t *rapid.T) {
	p := s.draw(t)
	o := p.place(t)
	cur := core.Cursor{Next: o}
	if from := p.place(t); from > o && int(from) < len(p.acked) && rapid.Bool().Draw(t, "hole") {
		cur.Ack(core.Range{From: from, To: from + 1})
	}
	p.Reset(cur)
	p.goOn(cur)
	p.high, p.sought = o, true
}

// goOn makes a cursor the one that counts.
func (p *simPart) goOn(cur core.Cursor) {
	for i := range p.acked {
		p.acked[i] = cur.Covers(core.Offset(i))
	}
	p.forget(cur.Next)
	p.pause = 0
}

// restart makes the States anew from their cursors; crash from what was there when they were last asked for anything to do.
func (s *sim) restart(t *rapid.T) { s.again(t, func(p *simPart) core.Cursor { return p.Cursor() }) }

func (s *sim) crash(t *rapid.T) { s.again(t, func(p *simPart) core.Cursor { return p.saved }) }

// again ends everybody's connection; some come back as new members, with credit.
func (s *sim) again(t *rapid.T, stored func(*simPart) core.Cursor) {
	back := s.members
	s.members, s.credit, s.split = nil, map[ConsumerID]int64{}, newSimSplit(s.keys.Split)
	for _, p := range s.parts {
		cur := stored(p)
		cur, err := core.ParseCursor(cur.AppendBinary(nil))
		if err != nil {
			t.Fatal(err)
		}
		p.goOn(cur)
		p.begin(t, s.mode, cur)
		p.Expire(s.now)
	}
	for _, c := range back {
		if s.lastID++; s.mode != core.Exclusive && rapid.Bool().Draw(t, "comes back") {
			c.ID, c.Account = s.lastID, &Account{Permits: 5}
			s.enter(t, c, false)
		}
	}
}
