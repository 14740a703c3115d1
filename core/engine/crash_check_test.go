package engine_test

import (
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/journal/disk"
	"isthmus/core/journal/disk/faultfs"
)

// crashTopics are topics and their partitions; one is declared and has a journal of its own.
var crashTopics = map[string]int32{"a": 3, "b": 0, "declared": 2}

// crashLog is what is known of one partition.
type crashLog struct {
	topic string
	index int32
	sent  map[int64]*crashSent // what may be there, by token
	end   core.Offset          // offsets below it were given to acknowledged messages
	first core.Offset          // of what is retained

	groups []*crashGroup // of the topic
}

// thinned tells whether these messages may be gone: every group has acknowledged them.
func (l *crashLog) thinned(from, to core.Offset) bool {
	for _, g := range l.groups {
		g.mu.Lock()
		for o := from; o < to; o++ {
			if _, acked := g.acks[l.index][o]; !acked {
				g.mu.Unlock()
				return false
			}
		}
		g.mu.Unlock()
	}
	return true
}

func newCrashLogs() (logs []*crashLog, groups []*crashGroup) {
	for _, topic := range []string{"a", "b", "declared"} {
		modes := []core.Mode{core.Shared, core.Exclusive}
		for _, mode := range modes {
			groups = append(groups, &crashGroup{topic: topic, name: mode.String(), mode: mode})
		}
		mine := groups[len(groups)-len(modes):]
		for i := range max(1, crashTopics[topic]) {
			l := &crashLog{topic: topic, index: i, sent: map[int64]*crashSent{}, groups: mine}
			logs = append(logs, l)
			for _, g := range mine {
				g.logs, g.acks = append(g.logs, l), append(g.acks, map[core.Offset]int64{})
			}
		}
	}
	return logs, groups
}

func (w *crashWorld) log(topic string, index int32) *crashLog {
	for _, l := range w.logs {
		if l.topic == topic && l.index == index {
			return l
		}
	}
	return nil
}

// look notes what producers and consumers were told. I2: no offset is given twice.
func (w *crashWorld) look() error {
	for len(w.pub.receipts) > 0 {
		r := <-w.pub.receipts
		if r.Err != nil {
			w.excuse(r.Err)
			continue
		}
		l := w.log(r.Partition.Topic().Name().Name, r.Partition.Index())
		s := l.sent[int64(r.Token&^decision)]
		switch {
		case r.Duplicate && s.base < 0 && s.due == 0:
			return fmt.Errorf("%s/%d: publish %d is called a duplicate, and it is not there", l.topic, l.index, r.Token)
		case r.Token&decision != 0:
			s.half.done, s.at = true, time.Now().UnixNano()
			s.maybe = s.half.rolledBack
			continue
		case r.Duplicate, r.Parked != 0:
			s.at, s.half.id = time.Now().UnixNano(), r.Parked
			continue
		}
		if r.Base < l.end || r.Base > l.end && w.mode == disk.Fsync && !w.parks {
			return fmt.Errorf("%s/%d: offset %d is given to publish %d, but the next one is %d", l.topic, l.index, r.Base, r.Token, l.end)
		}
		s.base, l.end, s.at = r.Base, r.Base+core.Offset(s.count), time.Now().UnixNano()
	}
	for _, g := range w.groups {
		for _, d := range g.take() {
			if err := g.delivered(d); err != nil {
				return fmt.Errorf("group %s of %s, partition %d: %w", g.name, g.topic, d.Partition.Index(), err)
			}
		}
	}
	return nil
}

// delivered holds a delivery against what was published, and what is acknowledged already.
func (g *crashGroup) delivered(d engine.Delivery) error {
	l := g.logs[d.Partition.Index()]
	s := l.sent[d.Entry.SeqLow]
	if s != nil && s.due > 0 && s.base < 0 {
		s.base = d.Entry.Base
	}
	if s == nil || s.base != d.Entry.Base {
		return fmt.Errorf("offset %d holds publish %d, which is not there", d.Entry.Base, d.Entry.SeqLow)
	}
	if d.Entry.Commit < s.due {
		return fmt.Errorf("publish %d is due in %d ms, and it comes now", s.token, s.due-d.Entry.Commit)
	}
	if err := s.same(&d.Entry); err != nil {
		return err
	}
	for o := d.Entry.Base; o < d.Entry.End(); o++ {
		if _, acked := g.acks[d.Partition.Index()][o]; acked {
			return fmt.Errorf("offset %d is acknowledged, and it comes again", o)
		}
	}
	g.held = append(g.held, d)
	return nil
}

func (s *crashSent) same(e *core.Entry) error {
	want := message("k", s.body())
	if e.Count != s.count || string(e.Key) != "k" || string(e.Data) != string(want.Data) {
		return fmt.Errorf("offset %d holds other bytes than publish %d had", e.Base, s.token)
	}
	return nil
}

// recoverAndCheck starts again, maybe with the power failing meanwhile, and compares.
func (w *crashWorld) recoverAndCheck() error {
	down := w.downAt.Load()
	for w.disk.Restart(); ; w.disk.Restart() {
		w.failAt(1 << 40)
		if w.rand.IntN(3) == 0 {
			w.failAt(w.rand.IntN(20))
		}
		err := w.restart()
		synctest.Wait()
		if err == nil && w.downAt.Load() == 0 {
			break
		}
		w.kill()
		if err != nil && !errors.Is(err, faultfs.ErrPower) {
			return err
		}
	}
	w.failAt(1 << 40)
	return w.check(down)
}

// restart starts the engine on what is left.
func (w *crashWorld) restart() error {
	if err := w.start(); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	for _, g := range w.groups {
		g.consumer, g.held, g.got = nil, nil, nil
	}
	return nil
}

// check compares what is there with what was acknowledged until the crash at down.
func (w *crashWorld) check(down int64) error {
	if w.eng.Health() != nil {
		return fmt.Errorf("after the restart: %w", w.eng.Health())
	}
	if w.parks && w.rand.IntN(2) == 0 {
		time.Sleep(9 * time.Second) // until everything that was parked is due
	}
	time.Sleep(250 * time.Millisecond)
	synctest.Wait()
	if err := w.eng.CheckViews(); err != nil {
		return err
	}
	for _, l := range w.logs {
		if err := w.checkLog(l, down); err != nil {
			return fmt.Errorf("%s/%d: %w", l.topic, l.index, err)
		}
	}
	return w.checkGroups(down)
}

// checkLog reads all that there is. I1, I2, I7: whatever was acknowledged is at its offset with its bytes, or no group needs
// it; offsets are dense but for that, the order is that of publishing, and nothing else is there.
func (w *crashWorld) checkLog(l *crashLog, down int64) error {
	topic := w.topic(l.topic)
	if topic == nil {
		return errors.New("no topic")
	}
	p := topic.Partition(l.index)
	first, end := p.Bounds()
	if end < l.end && w.mode == disk.Fsync {
		return fmt.Errorf("ends at %d, and %d was acknowledged", end, l.end)
	}
	next, last := first, int64(0)
	for next < end {
		es, err := p.Read(w.t.Context(), next, 100, 1<<20)
		if err != nil {
			return err
		}
		for i := range es {
			if err := l.found(&es[i], next, last, w.mode); err != nil {
				return err
			}
			if next = es[i].End(); l.sent[es[i].SeqLow].due == 0 {
				last = es[i].SeqLow
			}
		}
		if len(es) == 0 && w.mode == disk.Fsync && !l.thinned(next, end) { // else holes lie between, which nobody acknowledged
			return fmt.Errorf("nothing at offset %d, end %d", next, end)
		}
		if len(es) == 0 {
			break
		}
	}
	for token, s := range l.sent {
		switch {
		case s.found:
			s.found = false
		case s.base >= first && l.thinned(s.base, s.base+core.Offset(s.count)):
			// and it may be there, next time, if the crash came before that was durable
		case s.due > 0 && (s.base < 0 || s.base >= first && w.mode == disk.Interval):
			s.base = -1
			if err := w.checkParked(l, s, down); err != nil {
				return err
			}
		case w.dedup && s.at == 0 && s.base < 0:
			// its producer sends it again
		case s.base >= first && (w.mode == disk.Fsync || s.at < down-int64(syncLag)):
			return fmt.Errorf("publish %d at offset %d was acknowledged and is not there", token, s.base)
		case s.base < 0 || s.base >= first:
			delete(l.sent, token) // nobody was told; it must never come up
		}
	}
	l.first, l.end = first, max(end, l.end)
	return nil
}

// checkParked judges a delayed message that is not in the log: it is not due yet, or it was lost before anybody was told.
func (w *crashWorld) checkParked(l *crashLog, s *crashSent, down int64) error {
	s.maybe = s.maybe || s.at == 0 || w.mode == disk.Interval && s.at >= down-int64(syncLag)
	switch {
	case time.Now().UnixMilli() < s.due+parkedLag:
	case !s.maybe:
		return fmt.Errorf("publish %d was due %v ago and did not come", s.token, time.Since(time.UnixMilli(s.due)))
	case s.at != 0 || !w.dedup:
		delete(l.sent, s.token)
	}
	return nil
}

// parkedLag is how late a delayed message may be, in ms.
const parkedLag = 200

func (l *crashLog) found(e *core.Entry, next core.Offset, last int64, mode disk.SyncMode) error {
	s := l.sent[e.SeqLow]
	switch {
	case s == nil:
		return fmt.Errorf("offset %d holds publish %d, which was lost or never made", e.Base, e.SeqLow)
	case e.Base < next || mode == disk.Fsync && !l.thinned(next, e.Base):
		return fmt.Errorf("offset %d follows, want %d", e.Base, next)
	case s.base >= 0 && s.base != e.Base && (s.due == 0 || mode == disk.Fsync): // a release that was lost comes again
		return fmt.Errorf("publish %d is at offset %d, and %d was acknowledged", e.SeqLow, e.Base, s.base)
	case s.found:
		return fmt.Errorf("publish %d is there twice", e.SeqLow)
	case s.half.rolledBack && s.half.done && mode == disk.Fsync:
		return fmt.Errorf("publish %d was rolled back, and it is there", e.SeqLow)
	case e.Commit < s.due:
		return fmt.Errorf("publish %d came %d ms early", e.SeqLow, s.due-e.Commit)
	case s.due == 0 && e.SeqLow <= last:
		return fmt.Errorf("publish %d comes after %d", e.SeqLow, last)
	}
	s.found, s.base = true, e.Base
	return s.same(e)
}

// syncLag is how long after it was acknowledged a message may be lost with durability interval.
const syncLag = 200 * time.Millisecond

// ackLag is how long an acknowledgement may take to be safe from a crash: a snapshot, a tick.
const ackLag = 1500 * time.Millisecond

// checkGroups sees what every group gets. I6, I7: all that it has not acknowledged, and nothing of what it acknowledged
// long before the power failed.
func (w *crashWorld) checkGroups(down int64) error {
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
	for _, g := range w.groups {
		again := make([]map[core.Offset]bool, len(g.logs))
		for i := range again {
			again[i] = map[core.Offset]bool{}
		}
		got := g.take()
		for _, d := range got {
			for o := d.Entry.Base; o < d.Entry.End(); o++ {
				again[d.Partition.Index()][o] = true
			}
			for _, r := range d.Acked {
				for o := r.From; o < r.To; o++ {
					delete(again[d.Partition.Index()], o)
				}
			}
		}
		for i, l := range g.logs {
			if mark, end := w.mark(g, i); mark > end {
				return fmt.Errorf("group %s of %s, partition %d: its mark is %d, the log ends at %d", g.name, g.topic, i, mark, end)
			}
			if err := g.settle(l, i, again[i], down); err != nil {
				return fmt.Errorf("group %s of %s, partition %d: %w", g.name, g.topic, i, err)
			}
		}
		g.mu.Lock()
		g.got = got
		g.mu.Unlock()
	}
	return w.look()
}

func (w *crashWorld) mark(g *crashGroup, i int) (mark, end core.Offset) {
	_, end = w.topic(g.topic).Partition(int32(i)).Bounds()
	return g.consumer.Group().Mark(int32(i)), end
}

// settle makes what the group did not get again what it has acknowledged.
func (g *crashGroup) settle(l *crashLog, i int, again map[core.Offset]bool, down int64) error {
	for _, s := range l.sent {
		if s.base < 0 {
			continue
		}
		for o := s.base; o < s.base+core.Offset(s.count); o++ {
			at, acked := g.acks[i][o]
			switch {
			case again[o] && acked && at < down-int64(ackLag):
				return fmt.Errorf("offset %d was acknowledged %v before the crash, and it comes again", o, time.Duration(down-at))
			case !again[o] && !acked:
				return fmt.Errorf("offset %d is lost for the group", o)
			case again[o]:
				delete(g.acks[i], o)
			}
		}
	}
	return nil
}
