package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// One group with a member of each protocol: the union of what they get is what was sent, nothing twice, and each member sees
// the messages of a key in order.
func TestS2_28_OneGroupOfThreeProtocols(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, 2*time.Minute)
	members := []clients.Consumer{
		b.consume(event, "g", "p", pulsar.Shared),
		b.mqttSub("m", "$share/g/devices/+/telemetry"),
		b.rocketmqConsumer("event", "g", true), // a concurrent one would not keep order by itself
	}
	const count, keys = 1100, 110
	b.publish(count, func(i int) string { return fmt.Sprintf("devices/dev-%d/telemetry", i%keys) })
	got := b.take(tagged(b, members), count, 60*time.Second)
	exactlyOnce(b, count, got)
	by, last := map[string]int{}, map[string]int{}
	for _, m := range got {
		var i int
		if _, err := fmt.Sscanf(string(m.Body), "%d", &i); err != nil {
			t.Fatalf("body %q", m.Body)
		}
		by[m.Tag]++
		at := fmt.Sprint(m.Tag, " ", i%keys)
		if prev, ok := last[at]; ok && prev > i {
			t.Errorf("member %s, key %d: %d after %d", m.Tag, i%keys, i, prev)
		}
		last[at] = i
	}
	if len(by) != 3 {
		t.Errorf("messages by member: %v", by)
	}
	t.Logf("messages by member: %v", by)
}
