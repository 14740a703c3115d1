package dispatch

import "slices"

// turnMost is how many entries a member gets in one turn: fewer if not everybody with credit could get as many. So members
// with equal credit are one entry apart at most whenever all was handed out.
// Spec: Pulsar dispatcherMaxRoundRobinBatchSize
const turnMost = 20

// ranks are the members of a shared group, by priority, and whose turn it is.
type ranks struct {
	levels []*level // by priority, none empty
	byID   map[ConsumerID]*member
	turn   *Turn
	start  int // where the first turn of a level begins: lest the first in line gets the first message of each partition
}

// level is the members of one priority, in the order in which they joined.
type level struct {
	priority int
	members  []*member
	next     int // index of the one whose turn it is, modulo their number
}

func newRanks(p Placement) ranks {
	r := ranks{byID: map[ConsumerID]*member{}, turn: p.Turn, start: int(max(p.Partition, 0))}
	if r.turn == nil {
		r.turn = new(Turn)
	}
	return r
}

func (r *ranks) add(m *member) {
	i := 0
	for i < len(r.levels) && r.levels[i].priority < m.Priority {
		i++
	}
	if i == len(r.levels) || r.levels[i].priority != m.Priority {
		r.levels = slices.Insert(r.levels, i, &level{priority: m.Priority, next: r.start})
	}
	l := r.levels[i]
	m.level, m.at = l, len(l.members)
	l.members = append(l.members, m)
	r.byID[m.ID] = m
}

// remove leaves the turn at the one who came after m.
func (r *ranks) remove(m *member) {
	l := m.level
	if r.turn.set && r.turn.last == m.ID {
		before := l.members[(m.at+len(l.members)-1)%len(l.members)]
		r.turn.last, r.turn.set = before.ID, before != m
	}
	if m.at < l.next {
		l.next--
	}
	l.members = slices.Delete(l.members, m.at, m.at+1)
	for _, behind := range l.members[m.at:] {
		behind.at--
	}
	r.levels = slices.DeleteFunc(r.levels, func(l *level) bool { return len(l.members) == 0 })
	delete(r.byID, m.ID)
}

// best returns the level of the best priority where somebody is ready, and how many are; it counts no further than most.
// Spec: Pulsar priority_level: lower levels only when all of a higher level have no permits
func (r *ranks) best(ready func(*member) bool, most int) (l *level, able int) {
	for _, l := range r.levels {
		for i := 0; i < len(l.members) && able < most; i++ {
			if ready(l.members[i]) {
				able++
			}
		}
		if able > 0 {
			return l, able
		}
	}
	return nil, 0
}

func (r *ranks) served(m *member) {
	r.turn.last, r.turn.set = m.ID, true
	m.level.next = m.at + 1
}

// first is the index in l of the one whose turn it is. The turn is shared as far as the States have the same members; where
// each partition has members of its own, as Pulsar clients make them, each keeps its own.
func (r *ranks) first(l *level) int {
	next := l.next
	if m := r.byID[r.turn.last]; r.turn.set && m != nil && m.level == l {
		next = m.at + 1
	}
	return next % len(l.members)
}
