package engine_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
)

// What the model does to an engine.

// logTopic is a topic and what is known of it. Its groups begin with it.
type logTopic struct {
	name   core.TopicName
	spec   engine.TopicSpec
	parts  []*logPart
	groups []*logGroup
}

// logPart is what is known of one partition.
type logPart struct {
	index   int32
	there   []*logSent  // what was read lately, in order, and what was seen before it went
	first   core.Offset // of what is retained
	end     core.Offset // offsets below it were given away
	emptied core.Offset // what lies below was dropped by order
}

// told is what a producer knows of a message.
type told uint8

const (
	nothingTold told = iota
	heardOf          // it is durable
	errorsTold       // it may be, or not
)

// fate is what was decided about a parked message.
type fate uint8

const (
	unsaid fate = iota
	wantedIn
	wantedOut
)

// logSent is an entry that a producer has sent.
type logSent struct {
	token  uint64
	part   *logPart
	count  int32
	size   int
	told   told
	resent bool
	base   core.Offset // -1: nobody knows
	commit int64       // unix ms, as it was read
	gone   bool        // it was there, and rightly is not any more
	loose  bool        // it could have been gone when a group was reset to it: thinned, and still in memory

	due     int64 // unix ms: parked until then; 0: never
	half    bool
	id      engine.ParkedID
	wish    fate // what its producer asked for
	decided fate // and was told that it is so
}

func (s *logSent) end() core.Offset { return s.base + core.Offset(s.count) }

func (s *logSent) age() time.Duration { return time.Since(time.UnixMilli(s.commit)) }

func (s *logSent) body() string {
	return fmt.Sprintf("%d:%s", s.token, strings.Repeat(string(rune('a'+s.token%26)), int(s.token*37%500)))
}

// modelPolicies are what topics are declared with.
var modelPolicies = []engine.Policy{
	{},
	{Retention: engine.Retention{Age: 8 * time.Second}},
	{Retention: engine.Retention{Size: 2 << 10}},
	{TTL: 12 * time.Second},
	{Backlog: engine.Backlog{Size: 6 << 10}},
	{Backlog: engine.Backlog{Size: 6 << 10, WhenFull: engine.DropOldest}},
	{Backlog: engine.Backlog{Age: 10 * time.Second, WhenFull: engine.DropOldest}},
	{Backlog: engine.Backlog{Age: 10 * time.Second}},
	{Backlog: engine.Backlog{Size: 6 << 10, WhenFull: engine.Block}},
}

func (w *logWorld) create(s step) error {
	if w.topics[s.a%2] != nil {
		return nil
	}
	t := &logTopic{
		name: core.TopicName{Tenant: "public", Namespace: "default", Name: string(rune('a' + s.a%2))},
		spec: engine.TopicSpec{Partitions: []int32{0, 2, 3}[s.n%3], Policy: modelPolicies[s.b%len(modelPolicies)],
			Deduplicate: s.n > 3, ByKey: s.n%2 == 0},
	}
	t.spec.Groups = []string{core.Shared.String(), core.Exclusive.String()}
	t.groups = []*logGroup{{mode: core.Shared, topic: t}, {mode: core.Exclusive, topic: t}}
	w.topics[s.a%2] = t
	t.extend(max(1, t.spec.Partitions))
	return t.open(w)
}

func (t *logTopic) extend(partitions int32) {
	for i := int32(len(t.parts)); i < partitions; i++ {
		t.parts = append(t.parts, &logPart{index: i})
		for _, g := range t.groups {
			g.places = append(g.places, newLogPlace())
		}
	}
}

// open declares the topic and joins its groups.
func (t *logTopic) open(w *logWorld) error {
	topic, err := w.bed.Engine.DeclareTopic(t.name, t.spec)
	if err != nil {
		return err
	}
	for _, g := range t.groups {
		if err := g.join(topic); err != nil {
			return err
		}
	}
	return nil
}

func (w *logWorld) topic(t *logTopic) *engine.Topic {
	topic, err := w.bed.Engine.Topic(t.name)
	if err != nil {
		w.t.Fatal(err)
	}
	return topic
}

// alter changes the topic as a whole.
func (w *logWorld) alter(t *logTopic, s step) error {
	switch s.op {
	case "grow":
		if t.spec.Partitions == 0 || t.spec.Partitions > 4 {
			return nil
		}
		t.spec.Partitions++
		t.extend(t.spec.Partitions)
		return w.bed.Engine.GrowTopic(t.name, t.spec.Partitions, true)
	case "empty":
		for _, p := range t.parts {
			p.emptied = p.end
		}
		return w.bed.Engine.EmptyTopic(t.name)
	}
	w.topics[s.a%2] = nil
	maps.DeleteFunc(w.sent, func(_ uint64, x *logSent) bool { return slices.Contains(t.parts, x.part) })
	return w.bed.Engine.DeleteTopic(t.name, true)
}

// produce does something of a producer.
func (w *logWorld) produce(t *logTopic, s step) error {
	switch s.op {
	case "send":
		return w.send(t, s)
	case "resend":
		return w.resend(t, s)
	case "delay", "half":
		p := t.parts[s.b%len(t.parts)]
		x := w.new(p, s.n)
		x.half = s.op == "half"
		x.due = w.bed.Engine.In(time.Duration(s.n*s.n) * 170 * time.Millisecond)
		return w.publish(t, x)
	}
	for _, token := range slices.Sorted(maps.Keys(w.sent)) {
		x := w.sent[token]
		waits := x.id != 0 && x.told == heardOf && x.wish == unsaid && x.base < 0
		if !waits || !slices.Contains(t.parts, x.part) || x.half != (s.op == "decide") {
			continue
		}
		return w.decide(x, s)
	}
	return nil
}

// decide settles the oldest message that waits.
func (w *logWorld) decide(x *logSent, s step) error {
	if !x.half && time.Now().UnixMilli() >= x.due-5 {
		return nil // it may be on its way
	}
	call := w.pub.Cancel
	switch x.wish = wantedOut; {
	case x.half && s.n%2 == 0:
		x.wish, call = wantedIn, w.pub.Commit
	case x.half:
		call = w.pub.Rollback
	}
	return call(x.id, x.token|decision)
}

func (w *logWorld) new(p *logPart, n int) *logSent {
	w.tokens++
	x := &logSent{token: w.tokens, part: p, count: int32(1 + n%3), base: -1}
	w.sent[x.token] = x
	return x
}

// send publishes several entries to one partition.
func (w *logWorld) send(t *logTopic, s step) error {
	p := t.parts[s.b%len(t.parts)]
	for i := range s.n {
		if err := w.publish(t, w.new(p, i)); err != nil {
			return err
		}
	}
	return nil
}

// resend sends again what was acknowledged: a topic that compares sequences stores nothing of it.
func (w *logWorld) resend(t *logTopic, s step) error {
	if !t.spec.Deduplicate {
		return nil
	}
	for _, token := range slices.Sorted(maps.Keys(w.sent)) {
		x := w.sent[token]
		if x.told != heardOf || x.part != t.parts[s.b%len(t.parts)] || token%8 != uint64(s.n%8) {
			continue
		}
		x.resent = true
		if err := w.publish(t, x); err != nil {
			return err
		}
	}
	return nil
}

// resendLost is what a client does after a lost connection: all it heard nothing of, in its order. Without sequences it
// would be there twice, so then it gives up.
func (w *logWorld) resendLost(t *logTopic) error {
	for _, token := range slices.Sorted(maps.Keys(w.sent)) {
		x := w.sent[token]
		if x.told == heardOf || !slices.Contains(t.parts, x.part) {
			continue
		}
		if !t.spec.Deduplicate {
			continue
		}
		x.resent = true
		if err := w.publish(t, x); err != nil {
			return err
		}
	}
	return nil
}

// publish sends an entry.
func (w *logWorld) publish(t *logTopic, x *logSent) error {
	e := message("k", x.body())
	e.Count, e.SeqLow, e.SeqHigh = x.count, int64(x.token), int64(x.token)
	if t.spec.Deduplicate {
		e.Flags |= core.FlagSequenced
		e.Producer, e.Handle = []byte("p"), x.part.index
	}
	x.size = core.EntrySize(e)
	w.sentAt = time.Now()
	p := w.topic(t).Partition(x.part.index)
	var err error
	switch {
	case x.half:
		err = w.pub.PublishHalf(p, e, engine.HalfMessage{Check: w.bed.Engine.In(1000 * time.Hour)}, x.token)
	case x.due > 0:
		err = w.pub.PublishAt(p, e, x.due, x.token)
	default:
		err = w.pub.Publish(p, e, x.token)
	}
	if err != nil {
		return w.refused(t, x, err)
	}
	return errors.Join(w.disk.mayAccept(w.up), t.mayAccept(w))
}

// step is something that a group's consumer, or an operator, does.
func (g *logGroup) step(w *logWorld, s step) error {
	i := s.b % len(g.places)
	place, index := g.places[i], int32(i)
	held := bases(place.held)
	switch s.op {
	case "ack":
		held = held[min(s.b/6, len(held)):] // maybe with a hole before
		for _, base := range held[:min(2*s.n, len(held))] {
			x := place.held[base]
			g.consumer.Ack(index, core.Range{From: x.base, To: x.end()})
			place.ack(x)
		}
	case "through":
		if g.mode == core.Exclusive && len(held) > 0 {
			last := place.held[held[min(s.n, len(held))-1]]
			g.consumer.AckThrough(index, last.end())
			for _, base := range held[:min(s.n, len(held))] {
				place.ack(place.held[base])
			}
		}
	case "nack":
		if len(held) == 0 {
			return nil
		}
		base := held[s.n%len(held)]
		g.consumer.Nack(index, base)
		if delete(place.held, base); g.mode == core.Exclusive {
			clear(place.held) // all comes again, in its order
		}
	case "reset":
		return g.reset(w, i, s)
	case "skip":
		synctest.Wait()
		if err := w.groupOf(g).Skip(index, int64(s.n)); err != nil {
			return err
		}
		place.skipped = w.groupOf(g).Mark(index)
	case "rejoin":
		g.consumer.Leave()
		return g.join(w.topic(g.topic))
	}
	return nil
}

// drink acknowledges everything but the first few messages of each partition.
func (g *logGroup) drink(but int) {
	for i, place := range g.places {
		held := bases(place.held)
		for _, base := range held[min(but, len(held)):] {
			x := place.held[base]
			g.consumer.Ack(int32(i), core.Range{From: x.base, To: x.end()})
			place.ack(x)
		}
	}
}

// reset moves the cursor to the beginning of an entry, maybe of one that is not there any more, or to the end.
func (g *logGroup) reset(w *logWorld, i int, s step) error {
	p, to := g.topic.parts[i], core.Offset(0)
	if n := len(p.there); n > 0 {
		to = p.there[(s.n*7)%n].base
	}
	if s.n == 8 {
		to = p.end
	}
	to = max(to, p.first)
	for _, x := range p.there {
		x.loose = x.loose || p.mayGo(g.topic, x) == nil
	}
	if err := w.groupOf(g).Reset(p.index, to); err != nil {
		return err
	}
	place := g.places[i]
	g.resetAt = time.Now()
	place.acked, place.mark, place.skipped = map[core.Offset]time.Time{}, to, to
	clear(place.held)
	for _, x := range p.there {
		if x.base < to {
			place.acked[x.base] = time.Now()
		}
	}
	return nil
}

func (w *logWorld) groupOf(g *logGroup) *engine.Group {
	eg, err := w.topic(g.topic).Group(g.mode.String())
	if err != nil {
		w.t.Fatal(err)
	}
	return eg
}

// weight is how many bytes lie before the slowest group.
func (t *logTopic) weight() (most int) {
	for _, g := range t.groups {
		sum := 0
		for i, p := range t.parts {
			sum += p.weight(g.places[i].mark)
		}
		most = max(most, sum)
	}
	return most
}

func (p *logPart) weight(from core.Offset) (sum int) {
	for _, x := range p.there {
		if x.end() > from {
			sum += x.size
		}
	}
	return sum
}

// vague is by how many bytes a backlog may be judged wrongly: sizes are known at marks, and what is under way is not counted.
func (t *logTopic) vague() int { return len(t.parts)*2*modelMarks + 8*512 }

func (t *logTopic) mayRefuse(w *logWorld) error {
	b := t.spec.Policy.Backlog
	switch {
	case time.Since(w.moved) < 2*time.Second: // a tick may lie before
	case b.WhenFull == engine.DropOldest || b == (engine.Backlog{}):
		return errors.New("a publish is refused, and the backlog is not bounded so")
	case b.Size > 0 && t.weight()+t.vague() < int(b.Size):
		return fmt.Errorf("a publish is refused with a backlog of %d bytes", t.weight())
	case b.Size == 0 && t.oldest() < b.Age-b.Age/50-time.Second:
		return fmt.Errorf("a publish is refused with a backlog that is %v old", t.oldest())
	}
	return nil
}

func (t *logTopic) mayAccept(w *logWorld) error {
	b := t.spec.Policy.Backlog
	if time.Since(w.moved) < 2*time.Second {
		return nil
	}
	if b.WhenFull != engine.DropOldest && b.Size > 0 && t.weight() > int(b.Size)+len(t.parts)*(2*modelMarks+512) {
		return fmt.Errorf("a publish is accepted with a backlog of %d bytes", t.weight())
	}
	return nil
}

// oldest is the age of the oldest message that lies behind some group's mark.
func (t *logTopic) oldest() (age time.Duration) {
	for _, g := range t.groups {
		for i, p := range t.parts {
			j, _ := slices.BinarySearchFunc(p.there, g.places[i].mark, func(x *logSent, o core.Offset) int { return cmp.Compare(x.end()-1, o) })
			if j < len(p.there) {
				age = max(age, p.there[j].age())
			}
		}
	}
	return age
}
