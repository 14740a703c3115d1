package dispatch

import (
	"fmt"
	"slices"
	"sort"
	"testing"

	"isthmus/core"

	"pgregory.net/rapid"
)

// The model knows messages one by one: who holds each, whether it is acknowledged, how often it was asked for again. It
// shares no code with the States, which are checked against it at every step:
//
//   - I6: a message is at one member at a time; acknowledged, it never comes back;
//   - nothing is lost: with credit and quiet all that is not acknowledged is at a member;
//   - exclusive and failover: the right member, in order, from the mark on, attempt zero; all members rightly told;
//   - shared: attempts are counted; new entries go out in order;
//   - key_shared: attempts are counted; no key is in flight at two members, and each goes out in order (S1.38 to S1.40);
//   - what is asked for again comes when it was asked for, or when the back-off says, and not before; what is held for too
//     long is taken back;
//   - credit falls by exactly what was still to deliver.
func TestStateAgainstModel(t *testing.T) {
	for _, mode := range []core.Mode{core.Exclusive, core.Failover, core.Shared, core.KeyShared} {
		t.Run(mode.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := newSim(t, mode)
				t.Repeat(map[string]func(*rapid.T){
					"join":        s.join,
					"leave":       s.leave,
					"permit":      s.permit,
					"publish":     s.publish,
					"read":        s.read,
					"ready":       s.ready,
					"bustle":      s.bustle,
					"settle":      s.settle,
					"ack":         s.ack,
					"ack held":    s.ackHeld,
					"ack through": s.ackThrough,
					"nack":        s.nack,
					"nack all":    s.nackAll,
					"nack later":  s.nackLater,
					"hold":        s.hold,
					"time":        s.time,
					"skip":        s.skip,
					"seek":        s.seek,
					"restart":     s.restart,
					"":            s.check,
				})
				s.drain(t)
			})
		})
	}
}

type sim struct {
	mode    core.Mode
	limit   int // messages that a shared member may hold of a partition
	keys    Keys
	ahead   int64
	now     int64
	parts   []*simPart
	members []Consumer // in the order of joining
	credit  map[ConsumerID]int64
	lastID  ConsumerID
}

type simPart struct {
	Placement
	State
	log     []Entry
	acked   []bool // by offset, to the end of the log
	holder  map[core.Offset]ConsumerID
	attempt map[core.Offset]int32 // by base
	later   map[core.Offset]int64 // by base: not to be handed out before
	alarm   map[core.Offset]int64 // by base: when it is taken from who has it
	seen    map[core.Offset]bool  // bases handed out since the last rewind
	active  ConsumerID
	told    map[ConsumerID]bool
	sent    core.Offset // single: end of what was handed out since the last rewind
	high    core.Offset // end of what was ever handed out
	saved   core.Cursor
	sought  bool
}

func newSim(t *rapid.T, mode core.Mode) *sim {
	s := &sim{mode: mode, credit: map[ConsumerID]int64{}, limit: rapid.SampledFrom([]int{1, 5, 1 << 20}).Draw(t, "limit")}
	if mode == core.KeyShared {
		s.keys = Keys{rapid.SampledFrom([]Split{Ring, Halves, Declared}).Draw(t, "split"), rapid.IntRange(0, 3).Draw(t, "any order") == 0}
		s.ahead = rapid.SampledFrom([]int64{1, 4, 1 << 20}).Draw(t, "ahead")
	}
	var backoff []int64
	if s.many() && rapid.Bool().Draw(t, "back-off") {
		backoff = []int64{0, 5, 20}
	}
	n := rapid.IntRange(0, 3).Draw(t, "partitions")
	for i := range max(1, n) {
		p := &simPart{Placement: Placement{Partition: int32(i), Partitioned: n > 0, Topic: "persistent://t/n/x", Keys: s.keys, Backoff: backoff, Limits: Limits{Consumer: int64(s.limit), Ahead: s.ahead}}}
		s.parts = append(s.parts, p)
		p.begin(t, mode, core.Cursor{})
	}
	return s
}

func (p *simPart) begin(t *rapid.T, mode core.Mode, cur core.Cursor) {
	st, err := New(mode, p.Placement, cur)
	if err != nil {
		t.Fatal(err)
	}
	p.State, p.active, p.told, p.saved = st, 0, map[ConsumerID]bool{}, cur
	p.forget(p.mark())
	p.high = p.mark()
}

// forget is what a rewind does to the model.
func (p *simPart) forget(at core.Offset) {
	p.holder, p.attempt, p.seen, p.sent = map[core.Offset]ConsumerID{}, map[core.Offset]int32{}, map[core.Offset]bool{}, at
	p.later, p.alarm = map[core.Offset]int64{}, map[core.Offset]int64{}
}

func (p *simPart) mark() core.Offset {
	if i := slices.Index(p.acked, false); i >= 0 {
		return core.Offset(i)
	}
	return core.Offset(len(p.acked))
}

func (p *simPart) settled(r core.Range) {
	for o := max(0, r.From); o < min(r.To, core.Offset(len(p.acked))); o++ {
		p.acked[o] = true
		delete(p.holder, o)
	}
}

// entryAt returns the entry that holds o.
func (p *simPart) entryAt(o core.Offset) (Entry, bool) {
	i := sort.Search(len(p.log), func(i int) bool { return p.log[i].end() > o })
	if i == len(p.log) {
		return Entry{}, false
	}
	return p.log[i], true
}

// many tells whether all members are served.
func (s *sim) many() bool { return s.mode == core.Shared || s.mode == core.KeyShared }

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
	s.elect()
}

// elect chooses as the dossier says, with a real ring.
func (s *sim) elect() {
	if s.many() {
		return
	}
	line := slices.Clone(s.members)
	slices.SortStableFunc(line, func(a, b Consumer) int { return javaCompare(a, b) })
	line = slices.DeleteFunc(line, func(c Consumer) bool { return c.Priority != line[0].Priority })
	for _, p := range s.parts {
		chosen := ConsumerID(0)
		if len(line) > 0 && p.Partitioned {
			chosen = line[int(p.Partition)%len(line)].ID
		} else if len(line) > 0 {
			chosen = ringOwner(line, p.Topic)
		}
		if chosen != p.active {
			p.active = chosen
			p.forget(p.mark())
		}
	}
}

func ringOwner(line []Consumer, topic string) ConsumerID {
	ring := map[uint32]ConsumerID{}
	for _, c := range line {
		for j := range 100 {
			ring[core.Murmur3_32(fmt.Append(nil, c.Name, j))&0x7fffffff] = c.ID
		}
	}
	points := []uint32{}
	for h := range ring {
		points = append(points, h)
	}
	slices.Sort(points)
	i, _ := slices.BinarySearch(points, core.Murmur3_32([]byte(topic))&0x7fffffff)
	return ring[points[i%len(points)]]
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
	p.AckThrough(1, next)
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
	if !ok || !s.many() {
		t.Skip("nothing to ask for")
	}
	at := s.now + rapid.Int64Range(1, 30).Draw(t, "in")
	p.Nack(c.ID, e.Base, at)
	s.ask(p, e, c.ID, at)
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
		p.Expire(s.now)
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

func (s *sim) seek(t *rapid.T) {
	p := s.draw(t)
	o := p.place(t)
	p.Reset(core.Cursor{Next: o})
	for i := range p.acked {
		p.acked[i] = core.Offset(i) < o
	}
	p.forget(o)
	p.high, p.sought = o, true
}

func (s *sim) restart(t *rapid.T) {
	s.members, s.credit = nil, map[ConsumerID]int64{}
	for _, p := range s.parts {
		cur := p.Cursor()
		cur, err := core.ParseCursor(cur.AppendBinary(nil))
		if err != nil {
			t.Fatal(err)
		}
		p.begin(t, s.mode, cur)
		p.Expire(s.now)
	}
}
