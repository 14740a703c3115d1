package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"isthmus/core"
)

// Split is how the slots of a key_shared group are shared out among its members.
type Split uint8

// The ways to split. Declared leaves a slot that no member has declared to nobody: its messages wait for one who does.
const (
	Ring     Split = iota // consistent hashing: a change of membership moves few slots
	Halves                // whoever joins gets half of the largest range
	Declared              // each member says which slots are its own
)

func (s Split) String() string {
	switch s {
	case Halves:
		return "halves"
	case Declared:
		return "declared"
	default:
		return "ring"
	}
}

// Keys says how a key_shared group treats keys. It is one for all members.
// Spec: Pulsar KeySharedMeta
type Keys struct {
	Split      Split
	OutOfOrder bool // a slot's new owner does not wait until the old one has acknowledged
}

func (k Keys) String() string {
	if k.OutOfOrder {
		return k.Split.String() + ", in any order"
	}
	return k.Split.String()
}

// ErrSlots says that what a member declares is empty, makes no sense, or overlaps what another one has; it comes with
// core.ErrInvalid or core.ErrBusy.
var ErrSlots = errors.New("slots cannot be declared")

// SlotRange is slots From to To, both included.
type SlotRange struct{ From, To uint32 }

// splitter knows whose each slot is. Members are in it in the order in which they joined.
type splitter interface {
	add(m *keyMember) error
	remove(m *keyMember)
	owner(slot uint32) *keyMember // nil: nobody's
}

func newSplitter(s Split) splitter {
	switch s {
	case Halves:
		return new(halves)
	case Declared:
		return new(declared)
	default:
		return new(ring)
	}
}

// ring is consistent hashing: a slot belongs to the first point at or after it, around the end if need be. Of points that
// collide the one of who joined first counts; the others come into their own when it leaves.
// Spec: Pulsar ConsistentHashingStickyKeyConsumerSelector
type ring struct {
	points []point
	spare  []point
	from   [core.KeySlots/ringPage + 1]int32 // the first point of each page of slots
}

const ringPage = 256

type point struct {
	slot uint32
	m    *keyMember
}

// ringPoints is how many points a member has.
// Spec: Pulsar subscriptionKeySharedConsistentHashingReplicaPoints
const ringPoints = 100

func (r *ring) add(m *keyMember) error {
	m.namesake = r.namesake(m.Name)
	var news [ringPoints]point
	key := append([]byte(m.Name), 0)
	key = append(strconv.AppendInt(key, int64(m.namesake), 10), 0)
	for i := range news {
		news[i] = point{core.KeySlot(strconv.AppendInt(key, int64(i), 10)), m}
	}
	slices.SortFunc(news[:], func(a, b point) int { return int(a.slot) - int(b.slot) })
	merged, rest := r.spare[:0], r.points
	for _, p := range news {
		n := sort.Search(len(rest), func(i int) bool { return rest[i].slot > p.slot })
		merged = append(append(merged, rest[:n]...), p)
		rest = rest[n:]
	}
	r.points, r.spare = append(merged, rest...), r.points
	r.turnPages()
	return nil
}

// turnPages is done at each change of membership, so that a look-up need not search the whole ring.
func (r *ring) turnPages() {
	at := 0
	for page := range r.from {
		for at < len(r.points) && r.points[at].slot < uint32(page*ringPage) {
			at++
		}
		r.from[page] = int32(at)
	}
}

// namesake is the lowest number that no other member of this name has.
// Spec: Pulsar ConsumerNameIndexTracker
func (r *ring) namesake(name string) int {
	var taken []int
	for _, p := range r.points {
		if p.m.Name == name && !slices.Contains(taken, p.m.namesake) {
			taken = append(taken, p.m.namesake)
		}
	}
	for n := 0; ; n++ {
		if !slices.Contains(taken, n) {
			return n
		}
	}
}

func (r *ring) remove(m *keyMember) {
	r.points = slices.DeleteFunc(r.points, func(p point) bool { return p.m == m })
	r.turnPages()
}

func (r *ring) owner(slot uint32) *keyMember {
	if len(r.points) == 0 {
		return nil
	}
	lo, hi := r.from[slot/ringPage], r.from[slot/ringPage+1]
	for lo < hi {
		if mid := (lo + hi) / 2; r.points[mid].slot < slot {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if int(lo) == len(r.points) {
		lo = 0
	}
	return r.points[lo].m
}

// halves splits ranges: a newcomer takes the lower half of the largest one, and who leaves gives its range to the upper
// neighbour, the last in line to the lower.
// Spec: Pulsar HashRangeAutoSplitStickyKeyConsumerSelector
type halves struct{ ends []point } // where each member's range ends, itself included

func (h *halves) add(m *keyMember) error {
	if len(h.ends) == 0 {
		h.ends = append(h.ends, point{core.KeySlots, m})
		return nil
	}
	at, from, most, before := 0, uint32(0), uint32(0), uint32(0)
	for i, p := range h.ends {
		if p.slot-before > most {
			at, from, most = i, before, p.slot-before
		}
		before = p.slot
	}
	if most < 2 {
		return fmt.Errorf("join of %q: no slot is left: %w", m.Name, core.ErrBusy)
	}
	h.ends = slices.Insert(h.ends, at, point{h.ends[at].slot - (h.ends[at].slot-from)/2, m})
	return nil
}

func (h *halves) remove(m *keyMember) {
	i := slices.IndexFunc(h.ends, func(p point) bool { return p.m == m })
	if i < 0 {
		return
	}
	if i > 0 && i == len(h.ends)-1 {
		h.ends[i-1].slot = h.ends[i].slot
	}
	h.ends = slices.Delete(h.ends, i, i+1)
}

func (h *halves) owner(slot uint32) *keyMember {
	i := sort.Search(len(h.ends), func(i int) bool { return h.ends[i].slot >= slot })
	if i == len(h.ends) {
		return nil
	}
	return h.ends[i].m
}

// declared gives each member the slots that it has declared.
// Spec: Pulsar HashRangeExclusiveStickyKeyConsumerSelector
type declared struct{ ranges []ownRange } // in order, none overlap

type ownRange struct {
	SlotRange
	m *keyMember
}

// maxRanges bounds what one member declares.
const maxRanges = 4096

func (d *declared) add(m *keyMember) error {
	if len(m.Slots) == 0 || len(m.Slots) > maxRanges {
		return fmt.Errorf("%d slot ranges of %q, from 1 to %d may be declared: %w: %w", len(m.Slots), m.Name, maxRanges, ErrSlots, core.ErrInvalid)
	}
	all := slices.Clone(d.ranges)
	for _, s := range m.Slots {
		if s.From > s.To || s.To >= core.KeySlots {
			return fmt.Errorf("slots %d to %d of %q: %w: %w", s.From, s.To, m.Name, ErrSlots, core.ErrInvalid)
		}
		all = append(all, ownRange{s, m})
	}
	slices.SortStableFunc(all, func(a, b ownRange) int { return int(a.From) - int(b.From) })
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.To < b.From {
			continue
		}
		err := core.ErrBusy
		if a.m == b.m {
			err = core.ErrInvalid
		}
		return fmt.Errorf("slots %d to %d of %q overlap %d to %d of %q: %w: %w", b.From, b.To, b.m.Name, a.From, a.To, a.m.Name, ErrSlots, err)
	}
	d.ranges = all
	return nil
}

func (d *declared) remove(m *keyMember) {
	d.ranges = slices.DeleteFunc(d.ranges, func(r ownRange) bool { return r.m == m })
}

func (d *declared) owner(slot uint32) *keyMember {
	i := sort.Search(len(d.ranges), func(i int) bool { return d.ranges[i].To >= slot })
	if i == len(d.ranges) || d.ranges[i].From > slot {
		return nil
	}
	return d.ranges[i].m
}
