package rocketmq

import (
	"slices"
	"testing"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// A client that decides itself where to begin may begin below the place where its group was begun; what it commits there
// counts, or its successor would skip the rest.
func TestFirstCommitBelowTheStart(t *testing.T) {
	g := newGateway(t, nil)
	c := g.dial(t)
	for range 5 {
		c.send(wire.Success, "T", 0, "", "x")
	}
	for group, more := range map[string]string{"pull": `"consumeType":"CONSUME_ACTIVELY",`, "unknown": ""} {
		if more != "" {
			c.heartbeat(group, "T", "*", more)
		}
		q := []string{"topic", "T", "queueId", "0", "consumerGroup", group}
		for _, o := range []string{"2", "1"} { // only the first one
			c.call(wire.Success, wire.UpdateOffset, nil, append(q, "commitOffset", o)...)
			if n := offset(c, wire.Success, wire.QueryConsumerOffset, q...); n != 2 {
				t.Errorf("%s: %d after a commit of %s", group, n, o)
			}
		}
		q[3] = "1" // nothing was committed here
		c.call(wire.QueryNotFound, wire.QueryConsumerOffset, nil, q...)
	}
}

// Who subscribed before the topic existed misses nothing of it.
func TestSubscribedBeforeTheTopic(t *testing.T) {
	g := newGateway(t, nil)
	c, late, p := g.dial(t), g.dial(t), g.dial(t)
	c.heartbeat("g", "T", "*", "")
	c.heartbeat("beats", "T", "*", "")
	p.send(wire.Success, "T", 3, "", "x")
	c.heartbeat("beats", "T", "*", "")
	late.heartbeat("late", "T", "*", "")
	for group, want := range map[string]int64{"g": 0, "beats": 0, "late": 1} {
		if n := offset(c, wire.Success, wire.QueryConsumerOffset, "topic", "T", "queueId", "3", "consumerGroup", group); n != want {
			t.Errorf("%s begins at %d, want %d", group, n, want)
		}
	}
}

// A topic that a client no longer subscribes to must not keep it as a member for ever.
func TestDroppedTopicForgetsTheMember(t *testing.T) {
	g := newGateway(t, nil)
	g.Topic(t, "T", 2)
	g.Topic(t, "Other", 2)
	a, b := g.dial(t), g.dial(t)
	a.heartbeat("g", "T", "*", "")
	a.heartbeat("g", "Other", "*", "")
	a.call(wire.Success, wire.UnregisterClient, nil, "clientID", a.id, "consumerGroup", "g")
	b.heartbeat("g", "T", "*", "")
	if l := b.list("g"); !slices.Equal(l, []string{b.id}) {
		t.Errorf("%v", l)
	}
}

// Members with different topics: each still gets its own, and what a member asked for goes with it.
func TestMixedSubscriptions(t *testing.T) {
	g := newGateway(t, nil)
	a, b := g.dial(t), g.dial(t)
	a.send(wire.Success, "T", 0, "TAGS\x01a\x02", "a")
	a.heartbeat("g", "T", "a", "")
	b.heartbeat("g", "Other", "*", "")
	a.pull(wire.Success, "g", "T", 0, 0)
	b.heartbeat("g", "T", "b", "")
	a.pull(wire.PullRetryImmediately, "g", "T", 0, 0)
	b.call(wire.Success, wire.UnregisterClient, nil, "clientID", b.id, "consumerGroup", "g")
	a.pull(wire.Success, "g", "T", 0, 0)
}

// Broadcasting clients of one host share a client id; one that leaves must not take the other with it.
func TestBroadcastersShareAClientID(t *testing.T) {
	g := newGateway(t, nil)
	g.Topic(t, "T", 1)
	a, b := g.dial(t), g.dial(t)
	b.id = a.id
	const model = `"messageModel":"BROADCASTING",`
	a.heartbeat("g", "T", "*", model)
	b.heartbeat("g", "T", "*", model)
	notes := a.notes
	a.heartbeat("g", "T", "*", model)
	if a.list("g"); a.notes > notes+1 {
		t.Errorf("%d notices for nothing new", a.notes-notes)
	}
	b.c.Close()
	eventually(t, "the other connection is gone", 5*time.Second, func() bool { return len(g.server.registry.others(nil, "g")) == 1 })
	a.pull(wire.PullNotFound, "g", "T", 0, 0)
	// Neither does a commit begin a group.
	a.call(wire.Success, wire.UpdateOffset, nil, "topic", "T", "queueId", "0", "consumerGroup", "g", "commitOffset", "0")
	if gs := g.Topic(t, "T", 1).Groups(); len(gs) != 0 {
		t.Errorf("%v", gs)
	}
}

// A held pull wants what its group wants when the message comes, not what it wanted when it asked.
func TestHeldPullFollowsTheSubscription(t *testing.T) {
	g := newGateway(t, nil)
	g.Topic(t, "T", 1)
	c, p := g.dial(t), g.dial(t)
	c.heartbeat("g", "T", "a", "")
	held := c.start(wire.PullMessage, nil, pullExt("g", "T", 0, 0, 2*time.Second)...)
	eventually(t, "the pull is held", 5*time.Second, func() bool { return g.held() == 1 })
	c2 := g.dial(t) // another member with the new subscription
	c2.heartbeat("g", "T", "a || b", "")
	p.send(wire.Success, "T", 0, "TAGS\x01b\x02", "b")
	if r := c.answer(held); r.code != wire.Success || len(r.messages(t)) != 1 {
		t.Errorf("code %d, next %d", r.code, r.int("nextBeginOffset"))
	}
}

// A client that comes back on a new connection pulls before its heartbeat there; the lock is still its own.
func TestHeldPullOfALockOwner(t *testing.T) {
	g := newGateway(t, nil)
	g.Topic(t, "T", 1)
	old, c := g.dial(t), g.dial(t)
	c.id = old.id
	old.heartbeat("g", "T", "*", "")
	old.call(wire.Success, wire.LockBatch, []byte(`{"consumerGroup":"g","clientId":"`+old.id+`","mqSet":[{"topic":"T","brokerName":"x","queueId":0}]}`))
	old.send(wire.Success, "T", 0, "", "x")
	held := c.start(wire.PullMessage, nil, pullExt("g", "T", 0, 0, 5*time.Second)...)
	eventually(t, "the pull is held", 5*time.Second, func() bool { return g.held() == 1 })
	hb := c.start(wire.HeartBeat, []byte(`{"clientID":"`+c.id+`","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T","subString":"*"}]}]}`))
	for range 2 {
		r, err := c.next()
		for err == nil && r.call {
			r, err = c.next()
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.opaque == held && (r.code != wire.Success || len(r.messages(t)) != 1) {
			t.Errorf("code %d", r.code)
		} else if r.opaque != held && r.opaque != hb {
			t.Errorf("%+v", r)
		}
	}
}

// One group that is refused does not cost the client its others.
func TestHeartbeatOfTwoGroups(t *testing.T) {
	g := newGateway(t, nil)
	g.Topic(t, "T", 1)
	c := g.dial(t)
	c.call(wire.SubscriptionBad, wire.HeartBeat, []byte(`{"clientID":"`+c.id+`","consumerDataSet":[
		{"groupName":"bad","subscriptionDataSet":[{"topic":"T","subString":"||"}]},
		{"groupName":"good","subscriptionDataSet":[{"topic":"T","subString":"*"}]}]}`))
	c.pull(wire.PullNotFound, "good", "T", 0, 0)
}

// A batch is as long as a message may be, whole.
func TestBatchIsBounded(t *testing.T) {
	g := newGatewayWith(t, Config{Bind: "127.0.0.1:0", MaxBody: 1 << 10}, nil)
	body := batchBody(slices.Repeat([]string{"x"}, 100)...)
	g.dial(t).call(wire.MessageIllegal, wire.SendBatch, body, sendExt("T", 0, "")...)
}

// noConsumer lets nobody consume.
type noConsumer struct{}

func (noConsumer) Allow(_ auth.Principal, a auth.Action, _ string) error {
	if a == auth.Consume {
		return core.ErrForbidden
	}
	return nil
}

// Who may not consume may neither lock a group's queues, nor free another's, nor read its offsets.
func TestLocksAreForConsumers(t *testing.T) {
	g := newGateway(t, nil)
	g.Topic(t, "T", 1)
	a := g.dial(t)
	a.heartbeat("g", "T", "*", "")
	body := []byte(`{"consumerGroup":"g","clientId":"` + a.id + `","mqSet":[{"topic":"T","brokerName":"x","queueId":0}]}`)
	a.call(wire.Success, wire.LockBatch, body)
	g.access = noConsumer{}
	g.serve(t, Config{Bind: "127.0.0.1:0"})
	b := g.dial(t)
	b.call(wire.NoPermission, wire.LockBatch, body)
	b.call(wire.NoPermission, wire.UnlockBatch, body)
	b.call(wire.NoPermission, wire.QueryConsumerOffset, nil, "topic", "T", "queueId", "0", "consumerGroup", "g")
}
