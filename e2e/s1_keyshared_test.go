package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// S1, Key_Shared: batches of Java, and what MQTT devices publish. The rules one by one are in s1_keyshared_rules_test.go.

// Java's default batches hold many keys: they are split between consumers that declare slots, each message once.
func TestS1_43_JavaBatchesAreSplitByKey(t *testing.T) {
	t.Parallel()
	program := java(t, "PulsarMain")
	b := newBed(t, gateway.Event, 2*time.Minute)
	b.run(program, "produce", "pulsar://"+b.Pulsar, eventTest, fmt.Sprint(foreignCount), fmt.Sprint(foreignKeys))
	var got [2][]string
	var wg sync.WaitGroup
	for i, slots := range []string{"0-32767", "32768-65535"} {
		wg.Go(func() {
			got[i] = b.run(program, "consume", "pulsar://"+b.Pulsar, eventTest, "sticky", "Key_Shared:"+slots, fmt.Sprint(foreignCount), "12")
		})
	}
	wg.Wait()
	at := map[string]int{}
	var all []clients.Message
	for i, lines := range got {
		ms := messages(t, lines)
		if len(ms) == 0 {
			t.Errorf("consumer %d got nothing", i)
		}
		for _, m := range ms {
			if was, known := at[m.Key]; known && was != i {
				t.Errorf("key %s at both consumers", m.Key)
			}
			at[m.Key] = i
		}
		all = append(all, ms...)
	}
	judgeForeign(t, "java", "Key_Shared", all)
}

// Devices publish over MQTT; each one's messages reach one of three Key_Shared consumers, in order.
func TestS1_47_KeySharedKeepsEveryDevicesOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t, gateway.Event, time.Minute)
	var ks []*clients.PulsarConsumer
	for _, name := range []string{"a", "b", "c"} {
		ks = append(ks, b.consumeOn(b.newPulsar(), event, "ks", name, pulsar.KeyShared, nil))
	}
	const count, devices = 600, 30
	b.publish(count, func(i int) string { return fmt.Sprintf("devices/dev-%d/telemetry", i%devices) })
	got := b.take(tagged(b, ks), count, 20*time.Second)
	exactlyOnce(b, count, got)
	last, at := map[string]int{}, map[string]string{}
	for _, m := range got {
		var i int
		if _, err := fmt.Sscanf(string(m.Body[strings.LastIndexByte(string(m.Body), ' ')+1:]), "%d", &i); err != nil {
			t.Fatalf("body %q", m.Body)
		}
		if prev, ok := last[m.Key]; ok && prev >= i {
			t.Errorf("device %s: %d after %d", m.Key, i, prev)
		}
		if who, ok := at[m.Key]; ok && who != m.Tag {
			t.Errorf("device %s at %s and %s", m.Key, who, m.Tag)
		}
		last[m.Key], at[m.Key] = i, m.Tag
	}
}
