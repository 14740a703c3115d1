package e2e

import (
	"fmt"
	"testing"
	"time"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// Consumers join, leave and are killed while messages flow: at any moment a key is in the hands of one consumer, and its
// messages come in order. The first one to be killed is Java's.
func TestS1_39_NoKeyIsInFlightAtTwoConsumers(t *testing.T) {
	b := newBed(t, gateway.Event, 2*time.Minute)
	w := newCrew()
	names := 0
	join := func(lang string) *member {
		names++
		return b.start(w, lang, clients.MemberSpec{
			Protocol: "pulsar", Addr: b.Pulsar, Topic: event, Group: "ks", Mode: "KeyShared", Name: fmt.Sprint(lang, names), Hold: 4 * time.Millisecond,
		})
	}
	const keys, each, rounds = 60, 200, 6
	key := func(n int) int { return n % keys }
	stay, crew := join("go"), []*member{join("java")} // Java's start takes seconds
	stay.joined()
	crew[0].joined()
	stop := b.stream(devices(keys), 800) // more than they can do, so that they hold something at any moment
	for round := range rounds {
		crew = append(crew, join("go"))
		crew[len(crew)-1].joined()
		before := w.total()
		b.eventually(20*time.Second, "progress in this membership", func() bool { return w.total() >= before+each })
		oldest := crew[0]
		crew = crew[1:]
		if round%2 == 0 {
			oldest.kill()
		} else {
			oldest.leave()
		}
	}
	count := stop()
	b.eventually(40*time.Second, "every message at some consumer", func() bool { return w.total() == count })
	for _, m := range append(crew, stay) {
		m.leave()
	}
	w.complete(b, count, false)
	w.apart(b, "key", eachKey(key))
	w.ordered(b, key)
}
