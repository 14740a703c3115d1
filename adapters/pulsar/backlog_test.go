package pulsar

import (
	"testing"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// Spec: Pulsar ProducerBlockedQuotaExceededException, ProducerBlockedQuotaExceededError: a backlog that is full closes
// producers, and refuses them when they come back, for good or until there is room
func TestProducersOfAFullTopic(t *testing.T) {
	for w, code := range map[engine.WhenFull]wire.ServerError{
		engine.Reject: wire.ProducerBlockedQuotaExceededException,
		engine.Block:  wire.ProducerBlockedQuotaExceededError,
	} {
		t.Run(w.String(), func(t *testing.T) {
			b := newBed(t, setup{})
			name := core.TopicName{Tenant: "public", Namespace: "default", Name: "full"}
			topic, err := b.Engine.DeclareTopic(name, engine.TopicSpec{
				Groups: []string{"slow"}, Policy: engine.Policy{Backlog: engine.Backlog{Size: 1, WhenFull: w}}})
			if err != nil {
				t.Fatal(err)
			}
			r := dial(t, b)
			r.producer("full", "first")
			r.publish(1, "fills it")
			r.receipt()
			r.publish(2, "is too much")
			r.want(wire.TypeCloseProducer)
			r.send(wire.TypeProducer, &wire.Producer{Topic: "full", ProducerID: 2, RequestID: r.id(), Name: "second"})
			if e := r.refused(); e.Code != code {
				t.Errorf("code %d, want %d: %s", e.Code, code, e.Message)
			}
			r.pong() // the connection goes on
			g, err := topic.Group("slow")
			if err != nil {
				t.Fatal(err)
			}
			g.Commit(0, 1)
			for !room(topic) {
			}
			r.send(wire.TypeProducer, &wire.Producer{Topic: "full", ProducerID: 1, RequestID: r.id(), Name: "third"})
			r.want(wire.TypeProducerSuccess)
			r.publish(3, "there is room")
			r.receipt()
		})
	}
}

func room(t *engine.Topic) bool { _, err := t.Full(); return err == nil }
