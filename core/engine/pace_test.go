package engine

import (
	"testing"
	"time"
)

func TestWhenABlockIsCommitted(t *testing.T) {
	const window = time.Millisecond
	begin := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	ms := time.Millisecond
	for _, c := range []struct {
		name  string
		pace  pace
		block pending
		first time.Duration // after the last landing
		now   time.Duration
		want  time.Duration
	}{
		{"the first after a pause", pace{last: 5, target: 9}, pending{entries: 1}, 21 * ms, 21 * ms, 0},
		{"one that waits for its acknowledgement", pace{last: 1, before: 1, both: 1, target: 1}, pending{entries: 1, producers: 1}, 0, 0, 0},
		{"one of two that wait", pace{last: 1, before: 1, target: 2}, pending{entries: 1, producers: 1}, 0, ms / 4, ms * 3 / 4},
		{"both of them", pace{last: 1, before: 1, target: 2}, pending{entries: 2, producers: 2}, 0, ms / 4, 0},
		{"all of a burst but one", pace{last: 1, before: 1, both: 1, target: 16}, pending{entries: 15, producers: 1, open: true}, 0, 0, ms},
		{"all of a burst", pace{last: 1, before: 1, both: 1, target: 16}, pending{entries: 16, producers: 1, open: true}, 0, 0, 0},
		{"half of many", pace{last: 64, target: 1024}, pending{entries: 512, producers: 9, open: true}, 0, 0, 0},
		{"less than half of many", pace{last: 64, target: 1024}, pending{entries: 511, producers: 9, open: true}, 0, 0, ms},
		{"many devices, each at its own pace", pace{last: 20, before: 20, target: 22}, pending{entries: 20, producers: 3}, 0, ms / 2, ms / 2},
		{"the same at the end of the window", pace{last: 20, before: 20, target: 22}, pending{entries: 20, producers: 3}, 0, ms, 0},
		{"enough bytes", pace{last: 9, target: 22}, pending{entries: 3, bytes: commitBytes, open: true}, 0, 0, 0},
		{"one that waits, and 256 commits within 20 ms", pace{last: 1, target: 1, prompt: 256, since: at(-20 * ms)}, pending{entries: 1, producers: 1}, 0, 0, ms},
		{"one that waits, and 256 commits within a second", pace{last: 1, target: 1, prompt: 256, since: at(-time.Second)}, pending{entries: 1, producers: 1}, 0, 0, 0},
		{"a trial goes on", pace{last: 1, target: 1}, pending{entries: 1, producers: 1, trial: true}, 0, ms / 2, ms / 2},
		{"a trial ends", pace{last: 1, target: 1}, pending{entries: 1, producers: 1, trial: true}, 0, ms, 0},
	} {
		p := c.pace
		p.window, p.landed = window, begin
		if got, _ := p.wait(&c.block, at(c.first), at(c.first+c.now)); got != c.want {
			t.Errorf("%s: waits %v, want %v", c.name, got, c.want)
		}
	}
}

// simulate runs the rule against producers in virtual time and returns commits and messages of one second.
func simulate(rate int, sync time.Duration, waits bool) (commits, messages int) {
	p := pace{window: time.Millisecond}
	begin := time.Unix(1000, 0)
	gap := time.Second / time.Duration(rate)
	now, next := begin, begin
	openTill := 0
	for n := 1; now.Sub(begin) < time.Second; n++ {
		block, first, held, found, trial := pending{}, next, false, false, false
		now = later(now, next)
		for {
			for !next.After(now) && (!waits || block.entries == 0) {
				if held && block.entries > 0 || flew(next, p.landed, sync) {
					found, openTill = found || held, n+2
				}
				block.entries, block.producers = block.entries+1, 1
				next = next.Add(gap)
			}
			block.open = openTill >= n
			d, try := p.wait(&block, first, now)
			if d == 0 {
				break
			}
			held, trial = true, trial || try
			block.trial = trial
			now = earlier(now.Add(d), next, waits)
		}
		p.took(now, 1, 1, held, trial, found)
		now = now.Add(sync)
		rest := 0
		for x := next; !waits && !x.After(now); x = x.Add(gap) {
			rest++
		}
		p.land(now, block.entries, rest)
		commits, messages = commits+1, messages+block.entries
		if waits {
			next = now.Add(gap)
		}
	}
	return commits, messages
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(end, next time.Time, waits bool) time.Time {
	if waits || end.Before(next) {
		return end
	}
	return next
}

// flew tells whether a message came while the last block was on its way.
func flew(at, landed time.Time, sync time.Duration) bool {
	return !landed.IsZero() && at.Before(landed) && at.After(landed.Add(-sync))
}

// A paced producer costs few commits, whether its messages are closer than a sync or not; one that waits loses next to
// nothing by the trials.
func TestPaceOfPacedAndWaitingProducers(t *testing.T) {
	for _, c := range []struct {
		rate int
		sync time.Duration
	}{
		{20_000, 100 * time.Microsecond}, {20_000, 30 * time.Microsecond}, {5_000, 100 * time.Microsecond},
		{2_000, 50 * time.Microsecond}, {100_000, 100 * time.Microsecond},
	} {
		commits, messages := simulate(c.rate, c.sync, false)
		if most := max(1500, c.rate/commitCount); commits > most+256 || messages < c.rate*9/10 {
			t.Errorf("%d messages a second, sync %v: %d commits for %d messages", c.rate, c.sync, commits, messages)
		}
	}
	sync, think := 100*time.Microsecond, 10*time.Microsecond
	commits, messages := simulate(int(time.Second/think), sync, true)
	if ideal := int(time.Second / (sync + think)); messages < ideal*95/100 {
		t.Errorf("one that waits for each: %d messages in %d commits, %d without trials", messages, commits, ideal)
	}
}
