package dispatch

import "slices"

// turnMost is how many entries a member gets in one turn: fewer if not everybody with credit could get as many. So members
// with equal credit are one entry apart at most whenever all was handed out.
// Spec: Pulsar dispatcherMaxRoundRobinBatchSize
const turnMost = 20

// ranks are the members of a shared group: by priority, then time of joining, and whose turn it is.
type ranks struct {
	all    []*member
	levels [][]*member // all, cut by priority
	turn   *Turn
	start  int // where the first turn begins: lest the first in line gets the first message of each partition
	hint   int // where in its level the one who was served last was found
}

func (r *ranks) add(m *member) {
	i := len(r.all)
	for i > 0 && r.all[i-1].Priority > m.Priority {
		i--
	}
	r.all = slices.Insert(r.all, i, m)
	r.cut()
}

// remove returns nil for one who is not there.
func (r *ranks) remove(id ConsumerID) *member {
	i := indexOf(r.all, id)
	if i < 0 {
		return nil
	}
	m := r.all[i]
	if r.turn.set && r.turn.last == id { // the one after m stays the next
		r.turn.last = r.all[(i+len(r.all)-1)%len(r.all)].ID
	}
	r.all = slices.Delete(r.all, i, i+1)
	r.cut()
	return m
}

func (r *ranks) cut() {
	r.levels = r.levels[:0]
	for lo, hi := 0, 0; lo < len(r.all); lo = hi {
		for hi < len(r.all) && r.all[hi].Priority == r.all[lo].Priority {
			hi++
		}
		r.levels = append(r.levels, r.all[lo:hi])
	}
}

// level returns the members of the best priority where somebody is ready, and how many are; it counts no further than most.
// Spec: Pulsar priority_level: lower levels only when all of a higher level have no permits
func (r *ranks) level(ready func(*member) bool, most int) (level []*member, able int) {
	for _, level := range r.levels {
		for i := 0; i < len(level) && able < most; i++ {
			if ready(level[i]) {
				able++
			}
		}
		if able > 0 {
			return level, able
		}
	}
	return nil, 0
}

func (r *ranks) served(m *member) { r.turn.last, r.turn.set = m.ID, true }

// after is the place in level behind the one who was served last, or start if that was somebody else.
func (r *ranks) after(level []*member) int {
	if !r.turn.set {
		return r.start % len(level)
	}
	for i := range level { // the hint is right, or one short
		if k := (r.hint + i) % len(level); level[k].ID == r.turn.last {
			r.hint = k
			return k + 1
		}
	}
	return r.start % len(level)
}
