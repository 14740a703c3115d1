package dispatch

import "isthmus/core"

// feed is what both machines share: the cursor, how far was read, and what was read and not handed out yet.
type feed struct {
	cur   core.Cursor
	read  core.Offset // end of what was added since the last rewind
	high  core.Offset // end of what was handed out since New or Reset; no ack reaches beyond it
	queue queue
	dirty bool
	now   int64 // unix ms, as last told

	// reused from Ready to Ready
	deliver []Assignment
	notices []Notice
	ranges  []core.Range
}

func newFeed(cur core.Cursor) feed {
	cur = cur.Clone()
	return feed{cur: cur, read: cur.Next, high: cur.Next}
}

func (f *feed) tick(now int64) { f.now = max(f.now, now) }

func (f *feed) Next() core.Offset   { return f.cur.NextUnacked(f.read) }
func (f *feed) Cursor() core.Cursor { return f.cur }

// Add leaves a gap before e alone: what lies in it is neither handed out nor acknowledged, unless Skip says so.
func (f *feed) Add(e Entry) {
	if e.end() <= f.read {
		return // added already
	}
	f.read = e.end()
	if left := f.cur.Unacked(e.span()); left > 0 {
		f.queue.push(waiting{e, left})
	}
}

// lookAhead bounds what is read before it can be handed out, whatever credit clients grant.
const lookAhead = 16_384

// rewind goes back to the mark. What is acknowledged beyond it will be skipped.
func (f *feed) rewind() { f.rewindTo(f.cur.Next) }

func (f *feed) rewindTo(o core.Offset) {
	f.read = o
	f.queue.clear()
}

func (f *feed) reset(cur core.Cursor) {
	f.cur = cur.Clone()
	f.high = f.cur.Next
	f.dirty = true
	f.rewind()
}

// ack acknowledges what of r was ever handed out and tells whether that changed anything.
func (f *feed) ack(r core.Range) bool {
	r.To = min(r.To, f.high)
	return f.skip(r)
}

// skip acknowledges r, handed out or not.
func (f *feed) skip(r core.Range) bool {
	if !f.cur.Ack(r) {
		return false
	}
	f.dirty = true
	if f.queue.len() > 0 && r.From < f.read && r.To > f.queue.items[f.queue.head].Base {
		f.recount()
	}
	return true
}

// recount brings the queue in line with the cursor. That is rare: acks reach into the queue only after a rewind, and what a
// filter refuses lies behind it.
func (f *feed) recount() {
	items := f.queue.items[f.queue.head:]
	f.queue.clear()
	for _, w := range items { // each is written at or before the place where it was read
		if w.left = f.cur.Unacked(w.span()); w.left > 0 {
			f.queue.push(w)
		}
	}
}

// hand gives e to m. left is how many of its messages are not acknowledged.
// Spec: Pulsar permits -= numMessages(entry) - alreadyAckedIndexes; an entry larger than the permits is still sent
func (f *feed) hand(m *member, e Entry, attempt int32, left int64) {
	a := Assignment{To: m.ID, Entry: e, Attempt: attempt}
	if left < int64(e.Count) {
		from := len(f.ranges)
		f.ranges = f.cur.AppendAcked(f.ranges, e.span())
		a.Acked = f.ranges[from:len(f.ranges):len(f.ranges)]
	}
	m.Account.Permits -= left
	f.high = max(f.high, e.end())
	f.deliver = append(f.deliver, a)
}

func (f *feed) begin() { f.deliver, f.notices, f.ranges = f.deliver[:0], f.notices[:0], f.ranges[:0] }

func (f *feed) end() Ready {
	r := Ready{Deliver: f.deliver, Notices: f.notices, Dirty: f.dirty}
	f.dirty = false
	return r
}

// waiting is an entry that was added, and how many of its messages are not acknowledged: one at least.
type waiting struct {
	Entry
	left int64
}

// queue holds what was added and not handed out: no more than Want asked for, plus the rest of an entry.
type queue struct {
	items    []waiting
	head     int
	messages int64 // the sum of left
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) push(w waiting) {
	if q.head > 0 && len(q.items) == cap(q.items) { // make room from what is gone rather than grow
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	q.items = append(q.items, w)
	q.messages += w.left
}

func (q *queue) pop() waiting {
	w := q.items[q.head]
	q.head++
	q.messages -= w.left
	if q.head == len(q.items) {
		q.clear()
	}
	return w
}

func (q *queue) clear() { q.items, q.head, q.messages = q.items[:0], 0, 0 }
