package rocketmq

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// Which status for which offset.
// Spec: RocketMQ PullMessageProcessor, DefaultMessageStore.getMessage (status table)
func TestPullStatuses(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	g.Topic(t, "T", 2)
	c.heartbeat("g", "T", "a", "")
	check := func(code wire.Code, offset, next int64) {
		t.Helper()
		if r := c.pull(code, "g", "T", 0, offset); r.int("nextBeginOffset") != next || r.ext["minOffset"] == "" || r.ext["maxOffset"] == "" || r.ext["suggestWhichBrokerId"] != "0" {
			t.Errorf("offset %d: %q, want next %d", offset, r.ext, next)
		}
	}
	check(wire.PullNotFound, 0, 0)
	check(wire.PullOffsetMoved, 5, 0)
	check(wire.PullOffsetMoved, -1, 0)
	c.send(wire.Success, "T", 0, "TAGS\x01b\x02", "x")
	check(wire.PullRetryImmediately, 0, 1) // there is something, and all of it is unwanted
	c.send(wire.Success, "T", 0, "TAGS\x01a\x02", "y")
	c.send(wire.Success, "T", 0, "", "untagged")
	check(wire.Success, 0, 3)
	check(wire.PullNotFound, 3, 3)
	check(wire.PullOffsetMoved, 4, 3)
	c.pull(wire.InvalidParameter, "g", "T", 2, 0)
	c.pull(wire.InvalidParameter, "g", "T", -1, 0)
	c.pull(wire.TopicNotExist, "g", "Missing", 0, 0)
	c.pull(wire.SubscriptionMissing, "stranger", "T", 0, 0)
	c.pull(wire.PullNotFound, "g", "%RETRY%g", 0, 0)
	c.call(wire.SystemError, wire.PullMessage, nil, "topic", "T")
}

// A pull may bring its own expression.
func TestPullWithSubscription(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	for _, tag := range []string{"a", "b", "c"} {
		c.send(wire.Success, "T", 0, "TAGS\x01"+tag+"\x02", tag)
	}
	ask := func(want wire.Code, kind, text string) reply {
		t.Helper()
		ext := pullExt("g", "T", 0, 0, 0)
		ext = append(ext, "sysFlag", "4", "subscription", text, "expressionType", kind)
		return c.call(want, wire.LitePullMessage, nil, ext...)
	}
	if ms := ask(wire.Success, "TAG", " b||c ").messages(t); len(ms) != 2 || string(ms[0].Body) != "b" {
		t.Errorf("%+v", ms)
	}
	ask(wire.SubscriptionBad, "TAG", " || ")
	ask(wire.SubscriptionBad, "XPATH", "x")
	ask(wire.SubscriptionBad, "SQL92", "a >")
	if ms := ask(wire.Success, "SQL92", "TAGS IN ('a', 'c')").messages(t); len(ms) != 2 || string(ms[1].Body) != "c" {
		t.Errorf("%+v", ms)
	}
}

// A group that has subscribed with SQL92 gets what its expression is true of, whatever protocol it came by; what is passed
// over counts as read.
func TestPullBySQL(t *testing.T) {
	g := newGateway(t, nil)
	topic := g.Topic(t, "T", 1)
	c := g.dial(t)
	beat := `{"clientID":"` + c.id + `","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T","subString":"n > 3 AND TAGS = 'a'","expressionType":"SQL92"}]}]}`
	c.call(wire.Success, wire.HeartBeat, []byte(beat))
	for i := range 6 {
		c.send(wire.Success, "T", 0, fmt.Sprintf("TAGS\x01a\x02n\x01%d\x02", i), fmt.Sprint("native ", i))
	}
	m := core.Message{Body: []byte("foreign"), Tag: "a", Properties: []core.Property{{Key: "n", Value: "7"}}}
	done := make(chan bool, 1)
	p := g.Engine.NewProducer("http", func([]engine.Receipt) { done <- true })
	if err := p.Publish(topic.Partition(0), &core.Entry{Count: 1, Data: m.AppendNeutral(nil)}, 0); err != nil {
		t.Fatal(err)
	}
	<-done
	r := c.pull(wire.Success, "g", "T", 0, 0)
	var got []string
	for _, m := range r.messages(t) {
		got = append(got, string(m.Body))
	}
	if fmt.Sprint(got) != "[native 4 native 5 foreign]" || r.int("nextBeginOffset") != 7 {
		t.Errorf("%v, next %d", got, r.int("nextBeginOffset"))
	}
}

// A held pull is answered by what comes, by its time, and not at all when its client is gone.
// Spec: RocketMQ PullRequestHoldService
func TestHeldPull(t *testing.T) {
	g := newGateway(t, nil)
	c, p := g.dial(t), g.dial(t)
	topic := g.Topic(t, "T", 2)
	c.heartbeat("g", "T", "a", "")
	held := c.start(wire.PullMessage, nil, pullExt("g", "T", 0, 0, 20*time.Second)...)
	other := c.start(wire.PullMessage, nil, pullExt("g", "T", 1, 0, 300*time.Millisecond)...)
	began := time.Now()
	if r := c.answer(other); r.code != wire.PullNotFound || time.Since(began) < 250*time.Millisecond || time.Since(began) > 5*time.Second {
		t.Errorf("code %d after %v", r.code, time.Since(began))
	}
	p.send(wire.Success, "T", 0, "TAGS\x01b\x02", "unwanted")
	p.send(wire.Success, "T", 0, "TAGS\x01a\x02", "wanted")
	if r := c.answer(held); r.code != wire.Success || r.int("nextBeginOffset") != 2 || len(r.messages(t)) != 1 {
		t.Errorf("%+v", r)
	}
	// What nobody wants moves the client on, but only at the end of its time.
	held = c.start(wire.PullMessage, nil, pullExt("g", "T", 0, 2, 300*time.Millisecond)...)
	p.send(wire.Success, "T", 0, "TAGS\x01b\x02", "unwanted")
	if r := c.answer(held); r.code != wire.PullRetryImmediately || r.int("nextBeginOffset") != 3 {
		t.Errorf("%+v", r)
	}
	for i := range 100 {
		c.start(wire.PullMessage, nil, pullExt("g", "T", 1, 0, 20*time.Second)...)
		_ = i
	}
	eventually(t, "pulls are held", 5*time.Second, func() bool { return g.held() == 100 })
	c.c.Close()
	eventually(t, "pulls of a dead client are dropped", 5*time.Second, func() bool { return g.held() == 0 })
	p.send(wire.Success, "T", 1, "", "x")
	if _, next := topic.Partition(1).Bounds(); next != 1 {
		t.Error(next)
	}
}

func (g *gateway) held() int {
	h := &g.server.holder
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.mu.held)
}

// One answer has at most 32 messages, and few of them when they are large; offsets go on without a gap.
func TestPullCaps(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	for i := range 40 {
		c.send(wire.Success, "T", 0, "", fmt.Sprint(i))
	}
	for range 4 {
		c.send(wire.Success, "T", 0, "", strings.Repeat("x", 150<<10))
	}
	c.heartbeat("g", "T", "*", "")
	var sizes []int
	for next := int64(0); next < 44; {
		r := c.pull(wire.Success, "g", "T", 0, next)
		ms := r.messages(t)
		for i, m := range ms {
			if m.QueueOffset != next+int64(i) {
				t.Fatalf("offset %d at %d", m.QueueOffset, next+int64(i))
			}
		}
		sizes = append(sizes, len(ms))
		next = r.int("nextBeginOffset")
	}
	if fmt.Sprint(sizes) != "[32 9 1 1 1]" {
		t.Errorf("%v", sizes)
	}
}

// Messages of other protocols are shown as this protocol's clients expect them, one by one.
// Spec: I10
func TestPullForeign(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	topic := g.Topic(t, "T", 1)
	done := make(chan struct{}, 10)
	p := g.publish(t, done)
	m := core.Message{Tag: "tag", Address: "devices/1/up", Body: []byte("body"),
		Properties: []core.Property{{Key: "p", Value: "v\x01\x02w"}, {Key: "DELAY", Value: "3"}, {Key: "empty", Value: ""}, {Key: "UNIQ_KEY", Value: "theirs"}},
		Routed:     []core.Property{{Key: "deviceId", Value: "1"}}}
	e := core.Entry{Count: 1, Format: core.FormatNeutral, PublishTime: 1796075311183, Key: []byte("dev 1"), Flags: core.FlagHasKey, Data: m.AppendNeutral(nil)}
	if err := p.Publish(topic.Partition(0), &e, 0); err != nil {
		t.Fatal(err)
	}
	<-done
	c.heartbeat("g", "T", "tag", "")
	ms := c.pull(wire.Success, "g", "T", 0, 0).messages(t)
	if len(ms) != 1 {
		t.Fatal(ms)
	}
	want := "UNIQ_KEY\x01" + strings.Repeat("0", 16) + fmt.Sprintf("%016X", physOffset(topic.Partition(0).Number(), 0)) + "\x02TAGS\x01tag\x02__SHARDINGKEY\x01dev 1\x02" +
		"SHARDING_KEY\x01dev 1\x02KEYS\x01dev 1\x02p\x01v  w\x02deviceId\x011\x02"
	if string(ms[0].Properties) != want || string(ms[0].Body) != "body" || ms[0].Born != 1796075311183 || ms[0].Topic != "T" {
		t.Errorf("%q\n%+v", ms[0].Properties, ms[0])
	}
	again := c.pull(wire.Success, "g", "T", 0, 0).messages(t)
	if string(again[0].Properties) != string(ms[0].Properties) {
		t.Error("a redelivery has another id")
	}
}

// A batch of another protocol that is larger than an answer is read piece by piece, and decoded once.
func TestPullLargeForeignBatch(t *testing.T) {
	const format, n = core.Format(200), 100
	var decodes atomic.Int32
	g := newGateway(t, func(c *engine.Config) {
		c.Decoders[format] = func(e *core.Entry, dst []core.Message) ([]core.Message, error) {
			decodes.Add(1)
			for i := range e.Count {
				dst = append(dst, core.Message{Body: fmt.Append(nil, i), Tag: fmt.Sprint("t", i%2)})
			}
			return dst, nil
		}
	})
	topic := g.Topic(t, "T", 1)
	done := make(chan struct{}, 10)
	e := core.Entry{Count: n, Format: format, Data: []byte("x")}
	if err := g.publish(t, done).Publish(topic.Partition(0), &e, 0); err != nil {
		t.Fatal(err)
	}
	<-done
	c := g.dial(t)
	c.heartbeat("g", "T", "*", "")
	c.heartbeat("h", "T", "t1", "")
	next := int64(0)
	for next < n {
		r := c.pull(wire.Success, "g", "T", 0, next)
		for _, m := range r.messages(t) {
			if m.QueueOffset != next || string(m.Body) != fmt.Sprint(next) {
				t.Fatalf("offset %d, body %s, want %d", m.QueueOffset, m.Body, next)
			}
			next++
		}
		if r.int("nextBeginOffset") != next {
			t.Fatalf("%q", r.ext)
		}
	}
	if ms := c.pull(wire.Success, "h", "T", 0, 50).messages(t); len(ms) != 25 || ms[0].QueueOffset != 51 {
		t.Errorf("%d messages", len(ms))
	}
	if decodes.Load() != 1 {
		t.Errorf("decoded %d times", decodes.Load())
	}
}

// What cannot be decoded is skipped, counted, and stops nobody.
func TestPullSkipsUndecodable(t *testing.T) {
	g := newGateway(t, nil)
	topic := g.Topic(t, "T", 1)
	done := make(chan struct{}, 10)
	e := core.Entry{Count: 3, Format: core.FormatPulsar, Data: []byte("broken")}
	if err := g.publish(t, done).Publish(topic.Partition(0), &e, 0); err != nil {
		t.Fatal(err)
	}
	<-done
	c := g.dial(t)
	c.send(wire.Success, "T", 0, "", "after")
	c.heartbeat("g", "T", "*", "")
	if ms := c.pull(wire.Success, "g", "T", 0, 0).messages(t); len(ms) != 1 || ms[0].QueueOffset != 3 {
		t.Errorf("%+v", ms)
	}
}

func TestExpiredIsNotShown(t *testing.T) {
	g := newGateway(t, nil)
	topic := g.Topic(t, "T", 1)
	done := make(chan struct{}, 10)
	m := core.Message{Body: []byte("old")}
	e := core.Entry{Count: 1, Expiry: 1, Data: m.AppendNeutral(nil)}
	if err := g.publish(t, done).Publish(topic.Partition(0), &e, 0); err != nil {
		t.Fatal(err)
	}
	<-done
	c := g.dial(t)
	c.heartbeat("g", "T", "*", "")
	if r := c.pull(wire.PullRetryImmediately, "g", "T", 0, 0); r.int("nextBeginOffset") != 1 {
		t.Errorf("%q", r.ext)
	}
}
