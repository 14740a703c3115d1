package e2e

import (
	"fmt"
	"testing"
	"time"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// byKey is the sample topic with a group whose MQTT members get whole keys.
func byKey(group string) gateway.Config {
	c := gateway.Event
	c.Groups = "persistent://acme/out/event: [ { name: " + group + ", dispatch: key } ]"
	return c
}

// S2.17 with `dispatch: key`: three members of a share, each acknowledging with PUBACK when its work is done; a fourth joins,
// one is killed, one leaves. Each key is in one pair of hands at a time, and its messages come in order.
func TestS2_17_ByKeyOrderIsKept(t *testing.T) {
	t.Parallel()
	b := newBed(t, byKey("g"), time.Minute)
	w := newCrew()
	join := func(i int) *member {
		return b.join(w, "go", clients.MemberSpec{
			Protocol: "mqtt", Addr: b.MQTT, Topic: "devices/+/telemetry", Group: "g", Name: fmt.Sprint("m", i), Hold: 4 * time.Millisecond,
		})
	}
	const keys, each = 20, 300
	key := func(n int) int { return n % keys }
	var ms []*member
	for i := range 3 {
		ms = append(ms, join(i))
	}
	stop := b.stream(devices(keys), 900) // more than they can do, so that much is in flight when somebody comes or goes
	progress := func() {
		t.Helper()
		before := w.total()
		b.eventually(15*time.Second, "progress in this membership", func() bool { return w.total() >= before+each })
	}
	progress()
	ms = append(ms, join(3))
	progress()
	if by := w.by(); len(by) != 4 {
		t.Errorf("messages by member: %v, want some for each of 4", by)
	}
	ms[0].kill()
	progress()
	ms[1].leave()
	progress()
	count := stop()
	b.eventually(20*time.Second, "every message at some member", func() bool { return w.total() == count })
	ms[2].leave()
	ms[3].leave()
	w.complete(b, count, false)
	w.apart(b, "key", eachKey(key))
	w.ordered(b, key)
}
