package engine

import "time"

// pace says when the active block is committed. A commit costs 30 to 50 µs of CPU and a write of the disk, so the rule is a
// trade of latency against fsyncs, and knows three kinds of producer:
//
//   - one that waits for its acknowledgements must not wait for a window: once everyone who wrote lately has something
//     pending, nobody else will come;
//   - many of them, or some with many messages on their way each: what was not acknowledged when the last block landed is
//     all that can come before the next acknowledgement, and half of it is enough to keep disk and producers busy at once;
//   - one that sends at its own pace waits for the window, or 20 000 messages a second would be 10 000 commits.
//
// A producer is known to be of the last kind when it writes although something of it is on its way to the disk, or
// although the committer is waiting for company with something of it in hand. One whose messages are farther apart than a
// sync does neither: so, when commits follow each other fast, now and then one is held back for a window to see whether
// the producer goes on. When it does not, the next such trial is twice as far away.
//
// pace is pure: no clock, no lock. It is guarded by the log's buffer mutex.
type pace struct {
	window time.Duration
	last   int       // producers in the last block
	before int       // in the one before
	both   int       // in both of them
	target int       // entries that were not acknowledged when the last block landed, its own among them
	landed time.Time // when that was

	prompt int       // commits without a wait since the last wait
	since  time.Time // of the first of them
	trial  int       // how many prompt commits make a trial
}

// pending is what the rule has to know of the active block.
type pending struct {
	entries   int
	bytes     int
	producers int  // of the last two blocks that have something here
	open      bool // somebody here does not wait for acknowledgements
	trial     bool // it is being held back to see who goes on
}

const (
	commitBytes = 256 << 10 // make a block worth committing at once
	commitCount = 64        // entries do so, when they are half of what can come
	firstTrial  = 256
	lastTrial   = 8192
	// idleAfter is how long a producer counts as one that may write again at any moment.
	idleAfter = 20 * time.Millisecond
)

// full tells that the block is worth a commit by itself.
func (p *pace) full(x *pending) bool {
	return x.bytes >= commitBytes || x.entries >= max(commitCount, p.target/2)
}

// complete tells that everyone who wrote lately waits for this block, or all that can come is here.
func (p *pace) complete(x *pending) bool {
	return x.entries >= p.target || !x.open && x.producers >= p.last+p.before-p.both
}

// urgent tells whether the committer is to be told, should it be waiting.
func (p *pace) urgent(x *pending) bool {
	return p.full(x) || p.complete(x) && !x.trial
}

// wait returns how long the block is to be held back from now on, 0 for not at all. first is when it got its first entry.
// trial says that it is one.
func (p *pace) wait(x *pending, first, now time.Time) (d time.Duration, trial bool) {
	if p.full(x) || first.Sub(p.landed) > idleAfter {
		return 0, false
	}
	d = max(0, p.window-now.Sub(first))
	if !p.complete(x) {
		return d, false
	}
	if x.trial || p.tryNow(now) {
		return d, d > 0
	}
	return 0, false
}

// tryNow tells whether so many commits followed each other so fast that it is worth knowing for whom.
func (p *pace) tryNow(now time.Time) bool {
	return p.prompt >= max(p.trial, firstTrial) && now.Sub(p.since) < time.Duration(p.prompt)*p.window
}

// took notes that a block was taken to be committed. waited says that it was held back; found, that somebody went on
// meanwhile.
func (p *pace) took(now time.Time, producers, again int, waited, trial, found bool) {
	p.before, p.last, p.both = p.last, producers, again
	switch {
	case !waited:
		if p.prompt == 0 {
			p.since = now
		}
		p.prompt++
		return
	case trial && !found:
		p.trial = min(2*max(p.trial, firstTrial), lastTrial)
	case found:
		p.trial = firstTrial
	}
	p.prompt = 0
}

// land notes that a block is durable: entries of it are going to be acknowledged, rest wait in the active one.
func (p *pace) land(now time.Time, entries, rest int) {
	p.landed, p.target = now, entries+rest
}
