package mqtt

import (
	"fmt"
	"strings"
	"testing"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// forbids refuses actions on resources that contain a word.
type forbids map[auth.Action]string

func (f forbids) Allow(_ auth.Principal, a auth.Action, resource string) error {
	if word, ok := f[a]; ok && strings.Contains(resource, word) {
		return fmt.Errorf("%s: %w", resource, core.ErrForbidden)
	}
	return nil
}

// Spec: MQTT5 3.1.4 [MQTT-3.1.4-2]; MQTT3 3.1.4 [MQTT-3.1.4-1]
func TestAccessIsAskedEverywhere(t *testing.T) {
	bothVersions(t, func(t *testing.T, v wire.Version) {
		b := newBedAccess(t, nil, forbids{auth.Connect: "stranger", auth.Produce: "acme/out/event", auth.Consume: "device-cmd"})
		s := b.client("stranger", v)
		s.send("CONNECT id=stranger clean")
		s.expect(map[wire.Version]string{wire.V311: "CONNACK 05", wire.V5: "CONNACK 87"}[v])
		s.expect("CLOSED")

		c := b.connected("c", v)
		c.send("SUBSCRIBE id=1 f=devices/+/commands,1 f=devices/1/telemetry,1")
		c.expect(map[wire.Version]string{wire.V311: "SUBACK 1 80 01", wire.V5: "SUBACK 1 87 01"}[v])
		c.send("PUBLISH devices/1/telemetry qos=0 body=dropped")
		c.quiet()
		c.send("PUBLISH devices/1/telemetry qos=1 id=1 body=x")
		if v == wire.V5 {
			c.expect("PUBACK 1 87")
			c.quiet()
			return
		}
		c.expect("CLOSED")
	})
}

func TestTopicsThatBeginWithDollarAreNotForClients(t *testing.T) {
	b := newBed(t, nil)
	c := b.connected("c", wire.V5)
	c.send("PUBLISH $SYS/broker/load qos=1 id=1 body=x")
	c.expect("PUBACK 1 87")
}
