package rocketmq

import (
	"strconv"
	"testing"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// A pull steps over what other members of the group have acknowledged one by one, and ends before it.
func TestPullStepsOverAcknowledged(t *testing.T) {
	g := newGateway(t, nil)
	topic := g.Topic(t, "T", 1)
	c := g.dial(t)
	for range 6 {
		c.send(wire.Success, "T", 0, "", "x")
	}
	grp, err := topic.BeginGroup("g", engine.Start{At: engine.Earliest})
	if err != nil {
		t.Fatal(err)
	}
	sink := &taker{got: make(chan engine.Delivery, 10)}
	consumer, err := grp.Join(t.Context(), engine.Member{Protocol: "test", Name: "c", Mode: core.Shared, Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	consumer.Permit(6)
	for range 6 {
		<-sink.got
	}
	consumer.Ack(0, core.Range{From: 1, To: 3})
	consumer.Ack(0, core.Range{From: 4, To: 5})
	consumer.Leave() // what it has not acknowledged is anybody's
	c.heartbeat("g", "T", "*", "")
	next := int64(0)
	var offsets []int64
	for next < 6 {
		r := c.pull(wire.Success, "g", "T", 0, next)
		for _, m := range r.messages(t) {
			offsets = append(offsets, m.QueueOffset)
		}
		next = r.int("nextBeginOffset")
	}
	if len(offsets) != 3 || offsets[0] != 0 || offsets[1] != 3 || offsets[2] != 5 {
		t.Errorf("pulled %v, want 0, 3 and 5", offsets)
	}
}

// taker is a Sink that hands deliveries to the test.
type taker struct{ got chan engine.Delivery }

func (k *taker) Deliver(ds []engine.Delivery) {
	for _, d := range ds {
		k.got <- d
	}
}
func (*taker) Active(int32, bool) {}
func (*taker) Detached(error)     {}

// A puller that shares its group with consumers goes on behind what its filter refuses, however much that is, and may
// acknowledge it.
func TestPullBesideConsumersPassesOverWhatItsFilterRefuses(t *testing.T) {
	g := newGateway(t, nil)
	topic := g.Topic(t, "T", 2)
	grp, err := topic.BeginGroup("g", engine.Start{At: engine.Earliest})
	if err != nil {
		t.Fatal(err)
	}
	c := g.dial(t)
	c.heartbeat("g", "T", "wanted", "")
	if _, err := grp.Join(t.Context(), engine.Member{Protocol: "test", Name: "c", Mode: core.Shared, Sink: &taker{got: make(chan engine.Delivery, 10)}}); err != nil {
		t.Fatal(err)
	}
	const refused = maxScan + 10
	for range refused {
		c.send(wire.Success, "T", 0, "TAGS\x01other\x02", "x")
	}
	c.send(wire.Success, "T", 0, "TAGS\x01wanted\x02", "y")
	r := c.pull(wire.PullRetryImmediately, "g", "T", 0, 0)
	next := r.int("nextBeginOffset")
	if next != maxScan {
		t.Fatalf("the first pull ends at %d", next)
	}
	c.call(wire.Success, wire.UpdateOffset, nil, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", strconv.FormatInt(next, 10))
	if got := c.pull(wire.Success, "g", "T", 0, next).messages(t); len(got) != 1 || got[0].QueueOffset != refused {
		t.Errorf("the second pull brought %d messages", len(got))
	}
}
