package dispatch

import "isthmus/core"

// feed is what both machines share: the cursor, how far was read, and what was read and not handed out yet.
type feed struct {
	cur   core.Cursor
	read  core.Offset // end of what was added since the last rewind
	high  core.Offset // end of what was handed out since New or Reset; no ack reaches beyond it
	queue queue
	dirty bool

	// reused from Ready to Ready
	deliver []Assignment
	notices []Notice
	ranges  []core.Range
}

func newFeed(cur core.Cursor) feed {
	cur = cur.Clone()
	return feed{cur: cur, read: cur.Next, high: cur.Next}
}

func (f *feed) Next() core.Offset   { return f.cur.NextUnacked(f.read) }
func (f *feed) Cursor() core.Cursor { return f.cur }

// Add leaves a gap before e alone: what lies in it is neither handed out nor acknowledged, unless Skip says so.
func (f *feed) Add(e Entry) {
	if e.end() <= f.Next() {
		return // added already, or acknowledged as a whole
	}
	f.read = e.end()
	f.queue.push(e)
}

// rewind goes back to the mark. What is acknowledged beyond it will be skipped.
func (f *feed) rewind() {
	f.read = f.cur.Next
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
	changed := f.cur.Ack(r)
	f.dirty = f.dirty || changed
	return changed
}

func (f *feed) skip(r core.Range) bool {
	changed := f.cur.Ack(r)
	f.dirty = f.dirty || changed
	return changed
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

// queue holds entries that were added and not handed out: no more than Want asked for, plus the rest of an entry.
type queue struct {
	entries  []Entry
	head     int
	messages int64
}

func (q *queue) len() int { return len(q.entries) - q.head }

func (q *queue) push(e Entry) {
	if q.head > 0 && len(q.entries) == cap(q.entries) { // make room from what is gone rather than grow
		q.entries = q.entries[:copy(q.entries, q.entries[q.head:])]
		q.head = 0
	}
	q.entries = append(q.entries, e)
	q.messages += int64(e.Count)
}

func (q *queue) pop() Entry {
	e := q.entries[q.head]
	q.head++
	q.messages -= int64(e.Count)
	if q.head == len(q.entries) {
		q.clear()
	}
	return e
}

func (q *queue) clear() { q.entries, q.head, q.messages = q.entries[:0], 0, 0 }
