package pulsar

import (
	"errors"
	"testing"

	"isthmus/adapters/pulsar/wire"
)

// A log that has failed loses the producer that finds it out, and lets no other in: it would come back for ever.
func TestProducersAreRefusedOnAFailedLog(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "sick", 0)
	r := dial(t, b)
	r.producer("sick", "first")
	b.Journals.OnAppend(func(string, []byte) error { return errors.New("no space left") })
	r.publish(1, "lost")
	r.want(wire.TypeCloseProducer)
	r.send(wire.TypeProducer, &wire.Producer{Topic: "sick", ProducerID: 2, RequestID: r.id(), Name: "second"})
	if e := r.refused(); e.Code != wire.ServiceNotReady {
		t.Errorf("code %d: %s", e.Code, e.Message)
	}
}
