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
//   - I6: a message is at one member at a time; acknowledged, it never comes back, but for what a crash forgot;
//   - nothing is lost: with credit and quiet all that is not acknowledged is at a member, or the wake is set for it;
//   - exclusive and failover: the right member, in order, from the mark on, attempt zero; in the grace of a hand-over nobody
//     gets anything or is told anything, late acks count, and then the tail goes out from the first unacknowledged on;
//   - shared: attempts are counted; new entries go out in order; nobody is served before one of a better priority;
//   - key_shared: attempts are counted; while nobody joins or leaves a slot is one member's, the one that the published
//     rule says; none is in flight at two, and each goes out in order (S1.36 to S1.41);
//   - what is asked for again comes when it was asked for, or when the back-off says, and not before; what is held for too
//     long is taken back;
//   - credit falls by exactly what was still to deliver.
func TestStateAgainstModel(t *testing.T) {
	total := 0
	for _, mode := range []core.Mode{core.Exclusive, core.Failover, core.Shared, core.KeyShared} {
		t.Run(mode.String(), func(t *testing.T) {
			deep(t, "1200")
			steps := 0
			rapid.Check(t, func(t *rapid.T) {
				s := newSim(t, mode)
				t.Repeat(s.steps(&steps))
				s.drain(t)
			})
			t.Logf("%d steps", steps)
			total += steps
		})
	}
	if !raced && !checksAsked && total < 100_000 {
		t.Errorf("%d steps in all modes, want 100 000", total)
	}
}

func (s *sim) steps(count *int) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
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
		"return":      s.giveBack,
		"hold":        s.hold,
		"time":        s.time,
		"skip":        s.skip,
		"seek":        s.seek,
		"restart":     s.restart,
		"crash":       s.crash,
		"":            func(t *rapid.T) { *count++; s.check(t) },
	}
}

// sim is a group: its members, and a State with its model for each partition.
type sim struct {
	mode    core.Mode
	limits  Limits
	keys    Keys
	grace   int64
	turn    *Turn
	now     int64
	parts   []*simPart
	members []Consumer // in the order of joining
	credit  map[ConsumerID]int64
	lastID  ConsumerID
	split   simSplit
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
	told    map[ConsumerID]bool
	high    core.Offset // end of what was ever handed out
	saved   core.Cursor
	sought  bool

	// exclusive, failover
	active ConsumerID
	heir   ConsumerID  // in a grace: who takes over
	grace  bool        // nobody gets anything
	until  int64       // when the grace ends at the latest
	pause  int64       // when a delayed nack lets things go on
	sent   core.Offset // end of what was handed out since the last rewind

	// key_shared: who got something of a slot since somebody joined or left
	owners map[uint32]ConsumerID
}

func newSim(t *rapid.T, mode core.Mode) *sim {
	s := &sim{mode: mode, credit: map[ConsumerID]int64{}}
	const enough = 1 << 20
	s.limits.Consumer = rapid.SampledFrom([]int64{1, 5, enough}).Draw(t, "limit")
	s.limits.Group = rapid.SampledFrom([]int64{6, enough, enough}).Draw(t, "limit of the group")
	s.limits.Holes = rapid.SampledFrom([]int{2, enough, enough}).Draw(t, "limit of holes")
	s.limits.AheadGroup = enough
	var backoff []int64
	switch mode {
	case core.KeyShared:
		s.keys = Keys{rapid.SampledFrom([]Split{Ring, Halves, Declared}).Draw(t, "split"), rapid.IntRange(0, 3).Draw(t, "any order") == 0}
		s.limits.Ahead = rapid.SampledFrom([]int64{1, 4, enough}).Draw(t, "ahead")
	case core.Shared:
		if rapid.Bool().Draw(t, "one turn") {
			s.turn = new(Turn)
		}
	case core.Exclusive, core.Failover:
		s.grace = rapid.SampledFrom([]int64{0, 10, 40}).Draw(t, "grace")
	}
	if s.many() && rapid.Bool().Draw(t, "back-off") {
		backoff = []int64{0, 5, 20}
	}
	s.split = newSimSplit(s.keys.Split)
	n, topic := rapid.IntRange(0, 3).Draw(t, "partitions"), fmt.Sprint("persistent://t/n/x", rapid.IntRange(0, 99).Draw(t, "topic"))
	for i := range max(1, n) {
		p := &simPart{Placement: Placement{
			Partition: int32(i), Partitioned: n > 0, Topic: topic, Turn: s.turn, Keys: s.keys, Limits: s.limits,
			Backoff: backoff, Grace: s.grace,
		}}
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
	p.State, p.told, p.saved = st, map[ConsumerID]bool{}, cur
	p.takeOver(0)
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

func (s *sim) here(id ConsumerID) bool {
	return slices.ContainsFunc(s.members, func(c Consumer) bool { return c.ID == id })
}
