package rocketmq

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// stored returns the messages of a queue, which has to have n.
func (c *client) stored(topic string, queue, n int) []wire.Stored {
	c.t.Helper()
	var ms []wire.Stored
	eventually(c.t, fmt.Sprint(n, " messages in ", topic), 5*time.Second, func() bool {
		r := c.answer(c.start(wire.PullMessage, nil, pullExt("g", topic, queue, 0, 0)...))
		ms = r.messages(c.t)
		return len(ms) >= n
	})
	if len(ms) != n {
		c.t.Fatalf("%d messages, want %d", len(ms), n)
	}
	return ms
}

// Levels and timers hold a message back; a level wins over timers, seconds over milliseconds over a time. What was due
// long ago is there at once. Properties say what they said, but for DELAY.
// Spec: RocketMQ ScheduleMessageService, TimerMessageStore
func TestS3_30_DelayedSends(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	c.heartbeat("g", "T", "*", "")
	start := time.Now()
	at := func(d time.Duration) string { return strconv.FormatInt(start.Add(d).UnixMilli(), 10) }
	wait := map[string]time.Duration{}
	for _, x := range []struct {
		wait  time.Duration
		props string
	}{
		{0, "DELAY\x010\x02"},
		{0, "TIMER_DELIVER_MS\x01" + at(-time.Hour) + "\x02"},
		{0, "TIMER_DELAY_MS\x01-5\x02"},
		{300 * time.Millisecond, "TIMER_DELAY_MS\x01300\x02TIMER_DELIVER_MS\x01" + at(time.Hour) + "\x02"},
		{400 * time.Millisecond, "TIMER_DELIVER_MS\x01" + at(400*time.Millisecond) + "\x02"},
		{500 * time.Millisecond, "__STARTDELIVERTIME\x01" + at(500*time.Millisecond) + "\x02"},
		{time.Second, "DELAY\x0101\x02p\x01q\x02TIMER_DELAY_SEC\x013600\x02"},
		{time.Second, "TIMER_DELAY_SEC\x011\x02TIMER_DELAY_MS\x01100000\x02"},
	} {
		wait[x.props] = x.wait
		r := c.send(wire.Success, "T", 2, "UNIQ_KEY\x01U\x02"+x.props, x.props)
		if _, phys, err := wire.ParseMessageID(r.ext["msgId"]); err != nil || r.int("queueId") != 2 || (r.ext["recallHandle"] != "") != (x.wait > 0) ||
			(g.Engine.PartitionByNumber(uint32(phys>>43)) == nil) != (x.wait > 0) {
			t.Errorf("%q: send result %q %v", x.props, r.ext, err)
		}
	}
	for _, m := range c.stored("T", 2, len(wait)) {
		props := string(m.Body)
		if early := start.Add(wait[props]).UnixMilli() - m.StoreTime; early > 0 {
			t.Errorf("%q: stored %d ms early", props, early)
		}
		if want := "UNIQ_KEY\x01U\x02" + strings.Replace(props, "DELAY\x0101\x02", "", 1); string(m.Properties) != want {
			t.Errorf("properties %q, want %q", m.Properties, want)
		}
		if m.SysFlag != 0 || m.Topic != "T" {
			t.Errorf("%+v", m)
		}
	}
	for _, props := range []string{"DELAY\x01x\x02", "TIMER_DELAY_SEC\x01-\x02", "TIMER_DELAY_SEC\x01999999999999\x02", "TIMER_DELIVER_MS\x01" + at(400*24*time.Hour) + "\x02"} {
		c.send(wire.MessageIllegal, "T", 0, props, "x")
	}
	var std, own Config
	own.DelayLevels = []time.Duration{time.Minute, time.Second}
	std.setDefaults()
	own.setDefaults()
	for level, want := range map[int64]time.Duration{-1: 0, 0: 0, 1: time.Second, 3: 10 * time.Second, 18: 2 * time.Hour, 19: 2 * time.Hour, 1 << 40: 2 * time.Hour} {
		if got := std.levelDelay(level); got != want {
			t.Errorf("level %d is %v", level, got)
		}
	}
	for level, want := range map[int64]time.Duration{0: 0, 1: time.Minute, 2: time.Second, 18: time.Second} {
		if got := own.levelDelay(level); got != want {
			t.Errorf("as configured, level %d is %v", level, got)
		}
	}
	body := appendBatch(nil, "x", "DELAY\x011\x02")
	c.call(wire.MessageIllegal, wire.SendBatch, body, append(sendExt("T", 0, ""), "batch", "true")...)
}

// A delayed message is taken back by the handle in its send result, once, while it waits.
// Spec: RocketMQ RequestCode.RECALL_MESSAGE=370; RecallMessageProcessor
func TestRecall(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	handle := c.send(wire.Success, "T", 0, "UNIQ_KEY\x01U.1\x02TIMER_DELAY_SEC\x013600\x02", "x").ext["recallHandle"]
	gone := c.send(wire.Success, "T", 0, "UNIQ_KEY\x01U2\x02TIMER_DELAY_MS\x011\x02", "y").ext["recallHandle"]
	c.heartbeat("g", "T", "*", "")
	c.stored("T", 0, 1)
	recall := func(code wire.Code, topic, handle string) reply {
		t.Helper()
		return c.call(code, wire.RecallMessage, nil, "producerGroup", "pg", "topic", topic, "recallHandle", handle)
	}
	c.send(wire.Success, "other", 0, "", "x")
	recall(wire.IllegalOperation, "T", "")
	recall(wire.IllegalOperation, "T", "djEgYSBiIGM=")
	recall(wire.IllegalOperation, "other", handle)
	recall(wire.TopicNotExist, "absent", handle)
	recall(wire.IllegalOperation, "T", gone)
	if r := recall(wire.Success, "T", handle); r.ext["msgId"] != "U.1" {
		t.Errorf("%q", r.ext)
	}
	recall(wire.IllegalOperation, "T", handle)
	if n := g.Topic(t, "T", 0).Partition(0).Parked(); n != 0 {
		t.Errorf("%d are parked", n)
	}
}

// half sends a half message and returns what the client has to say again: table offset and physical offset.
func (c *client) half(topic, unique, more string) (table, phys string) {
	c.t.Helper()
	ext := sendExt(topic, 1, "TRAN_MSG\x01true\x02PGROUP\x01pg\x02UNIQ_KEY\x01"+unique+"\x02"+more)
	for i := range ext {
		if ext[i] == "sysFlag" {
			ext[i+1] = "5"
		}
	}
	r := c.call(wire.Success, wire.SendMessage, []byte(unique), ext...)
	_, p, err := wire.ParseMessageID(r.ext["msgId"])
	if err != nil || r.ext["transactionId"] != unique || r.ext["recallHandle"] != "" || r.int("queueId") != 1 {
		c.t.Fatalf("%q %v", r.ext, err)
	}
	return r.ext["queueOffset"], strconv.FormatInt(p, 10)
}

func (c *client) decide(code wire.Code, group, table, phys string, word int) {
	c.t.Helper()
	c.call(code, wire.EndTransaction, nil, "producerGroup", group, "tranStateTableOffset", table, "commitLogOffset", phys,
		"commitOrRollback", strconv.Itoa(word), "msgId", "x", "transactionId", "x", "bname", "")
}

// Half messages are invisible until they are committed, and stay so when they are rolled back. Only who knows all about
// them decides, and only once; DELAY counts from the commit.
// Spec: RocketMQ RequestCode.END_TRANSACTION=37; EndTransactionProcessor, EndTransactionRequestHeader
func TestS3_30_EndTransaction(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	c.heartbeat("g", "T", "*", "")
	table, phys := c.half("T", "yes", "p\x01q\x02")
	table2, phys2 := c.half("T", "no", "")
	table3, phys3 := c.half("T", "later", "DELAY\x011\x02")
	ordinary := c.send(wire.Success, "T", 1, "UNIQ_KEY\x01plain\x02", "plain")
	_, plain, _ := wire.ParseMessageID(ordinary.ext["msgId"])
	delayed := c.send(wire.Success, "T", 0, "PGROUP\x01pg\x02TIMER_DELAY_SEC\x013600\x02", "x")
	_, timer, _ := wire.ParseMessageID(delayed.ext["msgId"])
	c.stored("T", 1, 1)
	c.decide(wire.SystemError, "other", table, phys, wire.DecideCommit)
	c.decide(wire.SystemError, "pg", "77", phys, wire.DecideCommit)
	c.decide(wire.SystemError, "pg", table, phys2, wire.DecideCommit)
	c.decide(wire.SystemError, "pg", "0", strconv.FormatInt(plain, 10), wire.DecideCommit)
	c.decide(wire.SystemError, "pg", delayed.ext["queueOffset"], strconv.FormatInt(timer, 10), wire.DecideCommit)
	c.decide(wire.SystemError, "pg", "-1", "-1", wire.DecideCommit)
	c.decide(wire.SystemError, "pg", table, phys, 7)
	c.decide(wire.Success, "pg", table, phys, wire.DecideUnknown)
	c.call(wire.SystemError, wire.EndTransaction, nil, "producerGroup", "pg")
	c.stored("T", 1, 1)
	c.decide(wire.Success, "pg", table, phys, wire.DecideCommit)
	c.decide(wire.Success, "pg", table2, phys2, wire.DecideRollback)
	c.decide(wire.SystemError, "pg", table, phys, wire.DecideCommit)
	c.decide(wire.SystemError, "pg", table2, phys2, wire.DecideCommit)
	committed := time.Now()
	c.decide(wire.Success, "pg", table3, phys3, wire.DecideCommit)
	m := c.stored("T", 1, 2)[1]
	if string(m.Body) != "yes" || string(m.Properties) != "PGROUP\x01pg\x02UNIQ_KEY\x01yes\x02p\x01q\x02" || m.SysFlag != wire.SysCompressed|wire.SysCommitted || m.QueueOffset != 1 {
		t.Errorf("%+v %q", m, m.Properties)
	}
	later := c.stored("T", 1, 3)[2]
	if string(later.Body) != "later" || later.StoreTime < committed.Add(time.Second).UnixMilli() || strings.Contains(string(later.Properties), "DELAY") {
		t.Errorf("%+v", later)
	}
}

// A silent producer is asked about its half message, in its first connection's absence through any other of its group.
// Spec: RocketMQ RequestCode.CHECK_TRANSACTION_STATE=39; ProducerManager, AbstractTransactionalMessageCheckListener
func TestS3_30_CheckBack(t *testing.T) {
	cfg := Config{Bind: "127.0.0.1:0", TransactionTimeout: 50 * time.Millisecond}
	g := newGatewayWith(t, cfg, func(c *engine.Config) { c.Parked.CheckEvery = 100 * time.Millisecond })
	first := g.dial(t)
	table, phys := first.half("T", "U", "a\x01b\x02")
	asked := func(c *client, times string) {
		t.Helper()
		r, err := c.next()
		if err != nil || !r.call || r.code != wire.CheckTransaction {
			t.Fatalf("%+v %v", r, err)
		}
		if r.ext["tranStateTableOffset"] != table || r.ext["commitLogOffset"] != phys || r.ext["msgId"] != "U" || r.ext["transactionId"] != "U" || r.ext["topic"] != "T" {
			t.Errorf("%q", r.ext)
		}
		ms := r.messages(t)
		if len(ms) != 1 || ms[0].Topic != "T" || string(ms[0].Body) != "U" || ms[0].SysFlag&wire.SysTranMask != wire.SysPrepared || ms[0].QueueID != 1 {
			t.Fatalf("%+v", ms)
		}
		for name, want := range map[string]string{"PGROUP": "pg", "UNIQ_KEY": "U", "TRAN_MSG": "true", "a": "b", "TRANSACTION_CHECK_TIMES": times} {
			if got := string(wire.FindProperty(ms[0].Properties, name)); got != want && times != "" {
				t.Errorf("property %s is %q, want %q", name, got, want)
			}
		}
	}
	asked(first, "1")
	asked(first, "2")
	first.c.Close()
	second := g.dial(t)
	if _, err := second.c.Write(second.frame(wire.HeartBeat, []byte(`{"clientID":"c2","producerDataSet":[{"groupName":"pg"},{"groupName":"x"}]}`))); err != nil {
		t.Fatal(err)
	}
	if r, err := second.next(); err != nil || r.call {
		t.Fatalf("%+v %v", r, err)
	}
	asked(second, "")
	second.start(wire.EndTransaction, nil, "producerGroup", "pg", "tranStateTableOffset", table, "commitLogOffset", phys,
		"commitOrRollback", "8", "fromTransactionCheck", "true")
	reader := g.dial(t)
	reader.heartbeat("g", "T", "*", `"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",`)
	reader.stored("T", 1, 1)
	second.call(wire.Success, wire.UnregisterClient, nil, "clientID", "c2", "producerGroup", "pg", "consumerGroup", "")
	if s := g.server.producers.pick("pg"); s != nil {
		t.Error("a producer that left is asked")
	}
	if s := g.server.producers.pick("x"); s == nil {
		t.Error("its other group is gone")
	}
}

// A producer that nobody hears of any more is not asked.
func TestProducersExpire(t *testing.T) {
	var p producers
	a, b, now := new(session), new(session), time.Now()
	p.add(a, "g", now)
	p.add(b, "g", now.Add(time.Minute))
	p.expire(now.Add(time.Second))
	if p.pick("g") != b || p.pick("other") != nil {
		t.Error("the wrong one")
	}
	for i := range 2 * maxMemberships {
		p.add(a, fmt.Sprint(i), now)
	}
	if len(p.groups) != maxMemberships+1 {
		t.Errorf("%d groups of one connection", len(p.groups))
	}
	p.drop(a, "")
	p.drop(b, "")
	if len(p.groups)+len(p.counts) > 0 {
		t.Errorf("%v are left", p.groups)
	}
}

// What a delayed message is to other protocols: nothing before its time, an ordinary message then.
func TestDelayedMessageCrosses(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	c.send(wire.Success, "T", 1, "KEYS\x01k\x02TAGS\x01a\x02DELAY\x011\x02", "x")
	part := g.Topic(t, "T", 0).Partition(1)
	eventually(t, "release", 5*time.Second, func() bool { _, next := part.Bounds(); return next == 1 })
	es, err := part.Read(t.Context(), 0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	ms, err := g.Engine.Messages(&es[0], nil)
	if err != nil || len(ms) != 1 || string(ms[0].Key) != "k" || ms[0].Tag != "a" || string(ms[0].Body) != "x" || es[0].Format != core.FormatRocketMQ {
		t.Fatalf("%+v %v", ms, err)
	}
	if _, has := ms[0].Property("DELAY"); has {
		t.Error("DELAY is seen by others")
	}
}
