package rocketmq

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

func (c *client) list(group string) []string {
	c.t.Helper()
	var body struct {
		ConsumerIDList []string `json:"consumerIdList"`
	}
	r := c.call(wire.Success, wire.GetConsumerList, nil, "consumerGroup", group)
	if err := json.Unmarshal(r.body, &body); err != nil {
		c.t.Fatal(err)
	}
	return body.ConsumerIDList
}

// Spec: RocketMQ RequestCode.HEART_BEAT=34, GET_CONSUMER_LIST_BY_GROUP=38, NOTIFY_CONSUMER_IDS_CHANGED=40, UNREGISTER_CLIENT=35
func TestMembership(t *testing.T) {
	g := newGateway(t, nil)
	topic := g.Topic(t, "T", 2)
	a, b := g.dial(t), g.dial(t)
	a.call(wire.SystemError, wire.GetConsumerList, nil, "consumerGroup", "g")
	a.heartbeat("g", "T", "*", "")
	if l := a.list("g"); !slices.Equal(l, []string{a.id}) {
		t.Errorf("%v", l)
	}
	if a.notes != 1 {
		t.Errorf("%d notices", a.notes)
	}
	a.heartbeat("g", "T", "*", "")
	if a.list("g"); a.notes != 1 {
		t.Errorf("%d notices after a heartbeat that says nothing new", a.notes)
	}
	b.heartbeat("g", "T", "*", "")
	both := []string{a.id, b.id}
	slices.Sort(both)
	if !slices.Equal(a.list("g"), both) || !slices.Equal(b.list("g"), both) || a.notes != 2 {
		t.Errorf("%v %v, %d notices", a.list("g"), b.list("g"), a.notes)
	}
	// Only its own connection may take a client off the list.
	a.call(wire.Success, wire.UnregisterClient, nil, "clientID", b.id, "consumerGroup", "g")
	if len(a.list("g")) != 2 {
		t.Error("a stranger unregistered a client")
	}
	b.call(wire.Success, wire.UnregisterClient, nil, "clientID", b.id, "consumerGroup", "g")
	if l := a.list("g"); len(l) != 1 || a.notes < 3 {
		t.Errorf("%v, %d notices", l, a.notes)
	}
	grp, err := topic.Group("g")
	if err != nil || !slices.Equal(grp.Members(), []string{a.id}) {
		t.Errorf("%v %v", err, grp.Members())
	}
	// A dropped connection is noticed at once.
	b.heartbeat("g", "T", "*", "")
	b.c.Close()
	eventually(t, "the dead client has left", 5*time.Second, func() bool { return len(a.list("g")) == 1 })
}

// A client that stays silent leaves its groups; its connection may be half dead.
func TestSilentMemberLeaves(t *testing.T) {
	g := newGateway(t, nil)
	g.Topic(t, "T", 2)
	a := g.dial(t)
	a.heartbeat("g", "T", "*", "")
	g.server.left(g.server.registry.expire(time.Now().Add(-time.Minute)))
	if len(a.list("g")) != 1 {
		t.Error("left too early")
	}
	g.server.left(g.server.registry.expire(time.Now().Add(time.Minute)))
	a.call(wire.SystemError, wire.GetConsumerList, nil, "consumerGroup", "g")
}

// The member that changed its subscription last decides; what it no longer names is gone.
// Spec: RocketMQ ConsumerGroupInfo.updateSubscription (by arrival, not by version)
func TestSubscriptionsFollowTheLastChange(t *testing.T) {
	g := newGateway(t, nil)
	a, b := g.dial(t), g.dial(t)
	a.send(wire.Success, "T", 0, "TAGS\x01a\x02", "a")
	a.send(wire.Success, "T", 0, "TAGS\x01b\x02", "b")
	a.heartbeat("g", "T", "a", "")
	b.heartbeat("g", "T", "b", "")
	a.heartbeat("g", "T", "a", "") // unchanged: b's stays
	if ms := a.pull(wire.Success, "g", "T", 0, 0).messages(t); len(ms) != 1 || string(ms[0].Body) != "b" {
		t.Errorf("%+v", ms)
	}
	a.heartbeat("g", "Other", "*", "")
	a.pull(wire.Success, "g", "T", 0, 0) // b still wants it
	b.heartbeat("g", "Other", "*", "")
	a.pull(wire.SubscriptionMissing, "g", "T", 0, 0)
	a.call(wire.SubscriptionBad, wire.HeartBeat, []byte(`{"clientID":"x","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T","subString":"||"}]}]}`))
	a.call(wire.SystemError, wire.HeartBeat, []byte(`nonsense`))
	a.call(wire.InvalidParameter, wire.HeartBeat, []byte(`{}`))
	a.call(wire.Success, wire.HeartBeat, []byte(`{"clientID":"p","producerDataSet":[{"groupName":"pg"}]}`))
}

// Spec: RocketMQ RequestCode.CHECK_CLIENT_CONFIG=46
func TestCheckConfig(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	for text, code := range map[string]wire.Code{
		`{"subscriptionData":{"topic":"T","subString":"a","expressionType":"TAG"}}`:     wire.Success,
		`{"subscriptionData":{"topic":"T","subString":"a>1","expressionType":"SQL92"}}`: wire.Success,
		`{"subscriptionData":{"topic":"T","subString":"a>","expressionType":"SQL92"}}`:  wire.SubscriptionBad,
		`{"subscriptionData":{"topic":"T","subString":"||","expressionType":"TAG"}}`:    wire.SubscriptionBad,
	} {
		c.call(code, wire.CheckClientConfig, []byte(text))
	}
}

func offset(c *client, want wire.Code, code wire.Code, ext ...string) int64 {
	c.t.Helper()
	return c.call(want, code, nil, ext...).int("offset")
}

// Spec: RocketMQ RequestCode.QUERY_CONSUMER_OFFSET=14, UPDATE_CONSUMER_OFFSET=15, GET_MAX_OFFSET=30, GET_MIN_OFFSET=31
func TestOffsets(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	for range 5 {
		c.send(wire.Success, "T", 1, "", "x")
	}
	q := []string{"topic", "T", "queueId", "1", "consumerGroup", "g"}
	offset(c, wire.QueryNotFound, wire.QueryConsumerOffset, q...)
	if n := offset(c, wire.Success, wire.GetMaxOffset, q...); n != 5 {
		t.Errorf("max %d", n)
	}
	if n := offset(c, wire.Success, wire.GetMinOffset, q...); n != 0 {
		t.Errorf("min %d", n)
	}
	// A group begun by a heartbeat has a mark, and what came since is not missed.
	c.heartbeat("g", "T", "*", `"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",`)
	c.send(wire.Success, "T", 1, "", "x")
	if n := offset(c, wire.Success, wire.QueryConsumerOffset, q...); n != 5 {
		t.Errorf("mark %d", n)
	}
	commit := func(code wire.Code, o string) {
		t.Helper()
		c.call(code, wire.UpdateOffset, nil, append(q, "commitOffset", o)...)
	}
	commit(wire.Success, "6")
	commit(wire.Success, "2") // never backwards
	commit(wire.InvalidParameter, "7")
	commit(wire.InvalidParameter, "-1")
	if n := offset(c, wire.Success, wire.QueryConsumerOffset, q...); n != 6 {
		t.Errorf("committed %d", n)
	}
	c.call(wire.Success, wire.UpdateOffset, nil, "topic", "T", "queueId", "0", "consumerGroup", "new", "commitOffset", "0")
	if n := offset(c, wire.Success, wire.QueryConsumerOffset, "topic", "T", "queueId", "0", "consumerGroup", "new"); n != 0 {
		t.Errorf("a group begun by its commit: %d", n)
	}
	for _, code := range []wire.Code{wire.GetMaxOffset, wire.GetMinOffset, wire.QueryConsumerOffset, wire.SearchOffset, wire.GetEarliestTime} {
		c.call(wire.TopicNotExist, code, nil, "topic", "None", "queueId", "0", "timestamp", "0")
		c.call(wire.InvalidParameter, code, nil, "topic", "T", "queueId", "8", "timestamp", "0")
		c.call(wire.SystemError, code, nil, "topic", "T", "queueId", "x")
	}
	if n := offset(c, wire.Success, wire.GetMaxOffset, "topic", "%RETRY%g", "queueId", "0"); n != 0 {
		t.Errorf("retry topic: %d", n)
	}
	c.call(wire.QueryNotFound, wire.QueryConsumerOffset, nil, "topic", "%RETRY%g", "queueId", "0", "consumerGroup", "g")
	c.call(wire.Success, wire.UpdateOffset, nil, "topic", "%RETRY%g", "queueId", "0", "consumerGroup", "g", "commitOffset", "0")
}

// Only the client knows the time of CONSUME_FROM_TIMESTAMP, and rocketmq-client-go's pull consumer always writes LAST.
func TestClientsThatDecideTheirStart(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	c.send(wire.Success, "T", 0, "", "x")
	for group, more := range map[string]string{"time": `"consumeFromWhere":"CONSUME_FROM_TIMESTAMP",`, "pull": `"consumeType":"CONSUME_ACTIVELY",`} {
		c.heartbeat(group, "T", "*", more)
		q := []string{"topic", "T", "queueId", "0", "consumerGroup", group}
		c.call(wire.QueryNotFound, wire.QueryConsumerOffset, nil, q...)
		c.call(wire.Success, wire.UpdateOffset, nil, append(q, "commitOffset", "1")...)
		if n := offset(c, wire.Success, wire.QueryConsumerOffset, q...); n != 1 {
			t.Errorf("%s: %d", group, n)
		}
	}
}

// Spec: RocketMQ RequestCode.SEARCH_OFFSET_BY_TIMESTAMP=29, GET_EARLIEST_MSG_STORETIME=32
func TestOffsetsByTime(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	q := func(ms string) []string { return []string{"topic", "T", "queueId", "0", "timestamp", ms} }
	g.Topic(t, "T", 1)
	if r := c.call(wire.Success, wire.GetEarliestTime, nil, q("0")...); r.int("timestamp") != -1 {
		t.Errorf("%q", r.ext)
	}
	for range 3 {
		c.send(wire.Success, "T", 0, "", "x")
	}
	if n := offset(c, wire.Success, wire.SearchOffset, q("0")...); n != 0 {
		t.Errorf("before the start: %d", n)
	}
	if n := offset(c, wire.Success, wire.SearchOffset, q("99999999999999")...); n != 3 {
		t.Errorf("after the end: %d", n)
	}
	if r := c.call(wire.Success, wire.GetEarliestTime, nil, q("0")...); time.Since(time.UnixMilli(r.int("timestamp"))) > time.Minute {
		t.Errorf("%q", r.ext)
	}
}

func (c *client) lock(code wire.Code, group string, queues string) string {
	c.t.Helper()
	r := c.call(wire.Success, code, []byte(`{"consumerGroup":"`+group+`","clientId":"`+c.id+`","mqSet":[`+queues+`]}`))
	return strings.TrimSuffix(strings.TrimPrefix(string(r.body), `{"lockOKMQSet":[`), `]}`)
}

// Two consumers never hold one queue lock together; it is freed by its owner, by its owner's end, and by time.
// Spec: RocketMQ RequestCode.LOCK_BATCH_MQ=41, UNLOCK_BATCH_MQ=42; S3.22
func TestLocks(t *testing.T) {
	g := newGatewayWith(t, Config{Bind: "127.0.0.1:0", LockTime: 2 * time.Second}, nil)
	topic := g.Topic(t, "T", 2)
	a, b := g.dial(t), g.dial(t)
	a.heartbeat("g", "T", "*", "")
	b.heartbeat("g", "T", "*", "")
	q0, q1 := `{"brokerName":"x","queueId":0,"topic":"T"}`, `{"brokerName":"x","queueId":1,"topic":"T"}`
	if got := a.lock(wire.LockBatch, "g", q0+","+q1); got != q0+","+q1 {
		t.Errorf("%s", got)
	}
	if got := b.lock(wire.LockBatch, "g", q0+","+q1); got != "" {
		t.Errorf("%s", got)
	}
	b.lock(wire.UnlockBatch, "g", q0) // not b's to free
	a.lock(wire.UnlockBatch, "g", q1)
	if got := b.lock(wire.LockBatch, "g", q0+","+q1); got != q1 {
		t.Errorf("%s", got)
	}
	// A queue that somebody else has locked looks empty, whatever is in it.
	a.send(wire.Success, "T", 1, "", "x")
	a.pull(wire.PullNotFound, "g", "T", 1, 0)
	b.pull(wire.Success, "g", "T", 1, 0)
	if got := a.lock(wire.LockBatch, "g", `{"brokerName":"x","queueId":0,"topic":"%RETRY%g"},{"brokerName":"x","queueId":7,"topic":"T"},{"topic":"None"}`); strings.Count(got, "topic") != 1 {
		t.Errorf("%s", got)
	}
	grp, err := topic.Group("g")
	if err != nil {
		t.Fatal(err)
	}
	// The Go client lists all its queues but never unlocks: what a list lacks is free, unless it was granted just now.
	retry := `{"queueId":0,"topic":"%RETRY%g"}`
	b.lock(wire.LockBatch, "g", q1)
	b.lock(wire.LockBatch, "g", retry+","+retry)
	if grp.LockedBy(1) != b.id {
		t.Error("a lock just granted is gone")
	}
	eventually(t, "the list frees the queue", 1500*time.Millisecond, func() bool {
		b.lock(wire.LockBatch, "g", retry+","+retry)
		return grp.LockedBy(1) == ""
	})
	b.lock(wire.LockBatch, "g", q1)
	b.c.Close()
	eventually(t, "the lock of a dead client is freed", 400*time.Millisecond, func() bool { return grp.LockedBy(1) == "" })
	a.lock(wire.LockBatch, "g", q0)
	eventually(t, "the lock of a silent client ends", 5*time.Second, func() bool { return grp.LockedBy(0) == "" })
	// A pull held before a locked queue goes on when the lock ends.
	c := g.dial(t)
	c.heartbeat("g", "T", "*", "")
	a.lock(wire.LockBatch, "g", q1)
	if r := c.answer(c.start(wire.PullMessage, nil, pullExt("g", "T", 1, 0, 20*time.Second)...)); r.code != wire.Success {
		t.Errorf("%+v", r)
	}
}

// A broadcasting consumer begins no group.
func TestBroadcastingHasNoGroup(t *testing.T) {
	g := newGateway(t, nil)
	topic := g.Topic(t, "T", 1)
	c := g.dial(t)
	c.send(wire.Success, "T", 0, "", "x")
	c.heartbeat("g", "T", "*", `"messageModel":"BROADCASTING",`)
	c.pull(wire.Success, "g", "T", 0, 0)
	if gs := topic.Groups(); len(gs) != 0 {
		t.Errorf("%v", gs)
	}
	c.call(wire.QueryNotFound, wire.QueryConsumerOffset, nil, "topic", "T", "queueId", "0", "consumerGroup", "g")
}

// After a restart, members that were known before count for a minute: no client grabs all queues by being first.
func TestMembersAfterRestart(t *testing.T) {
	g := newGateway(t, nil)
	g.Topic(t, "T", 2)
	a, b := g.dial(t), g.dial(t)
	a.heartbeat("g", "T", "*", "")
	b.heartbeat("g", "T", "*", "")
	g.Bed.Restart(t)
	g.serve(t, Config{Bind: "127.0.0.1:0"})
	c := g.dial(t)
	c.id = a.id
	c.heartbeat("g", "T", "*", "")
	if l := c.list("g"); len(l) != 2 {
		t.Errorf("%v", l)
	}
}

func declared(t *testing.T, g *gateway, name, alias string, queues int32) *engine.Topic {
	t.Helper()
	n, err := core.ParseTopicName(name, "public", "default")
	if err != nil {
		t.Fatal(err)
	}
	topic, err := g.Engine.DeclareTopic(n, engine.TopicSpec{Partitions: queues, Names: map[string]string{protocol: alias}})
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// Spec: RocketMQ RequestCode.GET_ROUTEINFO_BY_TOPIC=105, GET_BROKER_CLUSTER_INFO=106, GET_ALL_TOPIC_LIST_FROM_NAMESERVER=206, UPDATE_AND_CREATE_TOPIC=17; S3.17
func TestRoutes(t *testing.T) {
	g := newGateway(t, nil)
	declared(t, g, "persistent://acme/out/event", "event", 11)
	g.Topic(t, "plain", 0)
	g.Topic(t, "persistent://public/ns/inner", 3)
	c := g.dial(t)
	for topic, want := range map[string]string{
		"event":               `"perm":6,"readQueueNums":11,"topicSysFlag":0,"writeQueueNums":11`,
		"plain":               `"perm":6,"readQueueNums":1,"topicSysFlag":0,"writeQueueNums":1`,
		"ns%inner":            `"readQueueNums":3`,
		"TBW102":              `"perm":7,"readQueueNums":8`,
		"%RETRY%g":            `"readQueueNums":1`,
		"RMQ_SYS_TRACE_TOPIC": `"readQueueNums":1`,
	} {
		r := c.call(wire.Success, wire.GetRoute, nil, "topic", topic)
		if text := string(r.body); !strings.Contains(text, want) || !strings.Contains(text, `{0:"`+g.addr+`"}`) || !strings.Contains(text, `"brokerName":"isthmus-0"`) {
			t.Errorf("%s: %s", topic, text)
		}
	}
	if r := c.call(wire.Success, wire.GetRoute, nil, "topic", "event", "acceptStandardJsonOnly", "true"); !json.Valid(r.body) {
		t.Errorf("%s", r.body)
	}
	for topic, code := range map[string]wire.Code{"missing": wire.TopicNotExist, "%DLQ%g": wire.TopicNotExist, "": wire.InvalidParameter, "a b": wire.InvalidParameter} {
		c.call(code, wire.GetRoute, nil, "topic", topic)
	}
	if r := c.call(wire.Success, wire.GetClusterInfo, nil); !strings.Contains(string(r.body), `"clusterAddrTable":{"DefaultCluster":["isthmus-0"]}`) {
		t.Errorf("%s", r.body)
	}
	c.call(wire.Success, wire.UpdateCreateTopic, nil, "topic", "made", "readQueueNums", "5", "writeQueueNums", "5")
	c.call(wire.Success, wire.UpdateCreateTopic, nil, "topic", "made", "readQueueNums", "5", "writeQueueNums", "5")
	c.call(wire.InvalidParameter, wire.UpdateCreateTopic, nil, "topic", "made", "readQueueNums", "6", "writeQueueNums", "6")
	c.call(wire.InvalidParameter, wire.UpdateCreateTopic, nil, "topic", "made2", "writeQueueNums", "0")
	if r := c.call(wire.Success, wire.GetTopicList, nil); string(r.body) != `{"topicList":["event","made","plain","ns%inner"]}` {
		t.Errorf("%s", r.body)
	}
}
