package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// crew is what the members of one group did, from their own words, judged when all is over: their lines come by different
// pipes, so only their clocks (one machine, one clock) say what was before what.
type crew struct {
	mu    sync.Mutex
	open  map[string]map[string]int // member → place of a message → its holding
	all   []holding
	seen  map[int]bool // numbers that were taken
	last  map[string]time.Time
	faint []string // lines that could not be read
}

// holding is one message at one member, from when the application got it to just before it was acknowledged.
type holding struct {
	member    string
	n         int // the message
	partition int // -1: MQTT, which tells none
	offset    int64
	from, to  int64 // ns; to is MaxInt64 when it was never acknowledged
}

func newCrew() *crew {
	return &crew{open: map[string]map[string]int{}, seen: map[int]bool{}, last: map[string]time.Time{}}
}

// note reads a line of clients.RunMember.
func (w *crew) note(member, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := holding{member: member, to: math.MaxInt64}
	var step string
	var at int64
	if _, err := fmt.Sscan(line, &step, &at, &h.partition, &h.offset, &h.n); err != nil {
		w.faint = append(w.faint, line)
		return
	}
	place := fmt.Sprint(h.partition, "/", h.offset, "/", h.n)
	open := w.open[member]
	if open == nil {
		open = map[string]int{}
		w.open[member] = open
	}
	if step == "take" {
		h.from = at
		open[place] = len(w.all)
		w.all = append(w.all, h)
		w.seen[h.n] = true
		w.last[member] = time.Unix(0, at)
		return
	}
	if i, ok := open[place]; ok {
		w.all[i].to = at
		delete(open, place)
	}
}

// gone ends what a member holds: its death is everybody's word that it does.
func (w *crew) gone(member string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.open[member] {
		w.all[i].to = at.UnixNano()
	}
	delete(w.open, member)
}

// total is how many different messages came.
func (w *crew) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// by counts takes by member.
func (w *crew) by() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := map[string]int{}
	for _, h := range w.all {
		n[h.member]++
	}
	return n
}

// holdings returns what there is so far in order of time.
func (w *crew) holdings() []holding {
	w.mu.Lock()
	defer w.mu.Unlock()
	hs := slices.Clone(w.all)
	slices.SortStableFunc(hs, func(a, b holding) int { return int(min(max(a.from-b.from, -1), 1)) })
	return hs
}

// owners tells who worked on each partition last, since a moment.
func (w *crew) owners(since time.Time) map[int]string {
	owner := map[int]string{}
	for _, h := range w.holdings() {
		if h.partition >= 0 && h.from >= since.UnixNano() {
			owner[h.partition] = h.member
		}
	}
	return owner
}

// heirs looks at the partitions that a member worked on last before a moment: how long it took until somebody else worked on
// each, and how many of them nobody has worked on since.
func (w *crew) heirs(member string, at time.Time) (longest time.Duration, left int) {
	owner, heir := map[int]string{}, map[int]time.Duration{}
	for _, h := range w.holdings() {
		switch {
		case h.from < at.UnixNano():
			owner[h.partition] = h.member
		case h.member != member:
			if _, known := heir[h.partition]; !known {
				heir[h.partition] = time.Duration(h.from - at.UnixNano())
			}
		}
	}
	for p, who := range owner {
		if who != member {
			continue
		}
		after, known := heir[p]
		if !known {
			left++
		}
		longest = max(longest, after)
	}
	return longest, left
}

// idle is how long at most a partition was worked on by nobody between two moments: at a time, and in all, where only times
// beyond 3 s count.
func (w *crew) idle(partitions int, from, to time.Time) (longest, sum time.Duration) {
	last, sums := make([]int64, partitions), make([]time.Duration, partitions)
	for i := range last {
		last[i] = from.UnixNano()
	}
	worked := func(p int, at int64) {
		gap := time.Duration(at - last[p])
		last[p] = at
		longest = max(longest, gap)
		if gap > 3*time.Second {
			sums[p] += gap
		}
	}
	for _, h := range w.holdings() {
		if h.partition >= 0 && h.from > from.UnixNano() && h.from < to.UnixNano() {
			worked(h.partition, h.from)
		}
	}
	for p := range partitions {
		worked(p, to.UnixNano())
	}
	return longest, slices.Max(sums)
}

// complete wants the messages 0 … n-1; where nothing was killed each of them once.
func (w *crew) complete(b *bed, n int, once bool) {
	b.Helper()
	hs := w.holdings()
	count := make([]int, n)
	for _, h := range hs {
		if h.n < 0 || h.n >= n {
			b.Fatalf("message %d was never sent", h.n)
		}
		count[h.n]++
	}
	var missing, twice []int
	for i, c := range count {
		if c == 0 {
			missing = append(missing, i)
		}
		if c > 1 {
			twice = append(twice, i)
		}
	}
	if len(missing) > 0 {
		b.Errorf("%d messages are missing: %.200s", len(missing), fmt.Sprint(missing))
	}
	if once && len(twice) > 0 {
		b.Errorf("%d messages came more than once: %.200s", len(twice), fmt.Sprint(twice))
	}
	if len(w.faint) > 0 {
		b.Errorf("lines that nobody understands: %.300q", w.faint)
	}
	b.Logf("%d messages, %d came again; by member: %v", n, len(twice), w.by())
}

// apart wants no two holders to have messages of one thing (a key, a queue) at the same time. An empty thing is not looked at.
func (w *crew) apart(b *bed, name string, what func(h *holding) (thing, holder string)) {
	b.Helper()
	latest := map[string]map[string]holding{} // thing → holder → the holding that ends last
	faults := 0
	for _, h := range w.holdings() {
		thing, holder := what(&h)
		if thing == "" {
			continue
		}
		mine := latest[thing]
		if mine == nil {
			mine = map[string]holding{}
			latest[thing] = mine
		}
		for who, other := range mine {
			if who != holder && other.to > h.from {
				if faults++; faults <= 10 {
					b.Errorf("%s %s: %s took message %d (partition %d) %s before %s was done with %d", name, thing, h.member, h.n, h.partition,
						time.Duration(other.to-h.from), other.member, other.n)
				}
			}
		}
		if o, ok := mine[holder]; !ok || o.to < h.to {
			mine[holder] = h
		}
	}
	if faults > 10 {
		b.Errorf("%s: %d such faults in all", name, faults)
	}
}

// eachKey is for apart: the key of n is in one member's hands.
func eachKey(key func(n int) int) func(h *holding) (string, string) {
	return func(h *holding) (string, string) { return fmt.Sprint(key(h.n)), h.member }
}

// ordered wants every key's messages to come for the first time in the order in which they were sent.
func (w *crew) ordered(b *bed, key func(n int) int) {
	b.Helper()
	last, seen, faults := map[int]holding{}, map[int]bool{}, 0
	for _, h := range w.holdings() {
		if seen[h.n] {
			continue
		}
		seen[h.n] = true
		if prev, ok := last[key(h.n)]; ok && prev.n > h.n {
			if faults++; faults <= 10 {
				b.Errorf("key %d: %s got %d after %s had %d", key(h.n), h.member, h.n, prev.member, prev.n)
			}
			continue
		}
		last[key(h.n)] = h
	}
	if faults > 10 {
		b.Errorf("%d inversions in all", faults)
	}
}

// story is what happened to a key, for a test that failed.
func (w *crew) story(keep func(h *holding) bool) string {
	var s strings.Builder
	for _, h := range w.holdings() {
		if keep(&h) {
			fmt.Fprintf(&s, "%d: %s %d/%d %d–%d\n", h.n, h.member, h.partition, h.offset, h.from/1e6%1e6, h.to/1e6%1e6)
		}
	}
	return s.String()
}
