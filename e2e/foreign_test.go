package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// Clients in other languages. Each makes its program once, into e2e/.work.

type foreignMessage struct {
	Key, Tag, Body string
	Partition      int
	Offset         int64
	PublishTime    int64 `json:"publish_time"`
	EventTime      int64 `json:"event_time"`
	Props          map[string]string
}

// messages parses what a foreign consumer printed; lines that are no JSON object are its own chatter.
func messages(t *testing.T, lines []string) []clients.Message {
	t.Helper()
	var ms []clients.Message
	for _, l := range lines {
		if !strings.HasPrefix(l, "{") {
			continue
		}
		var f foreignMessage
		if err := json.Unmarshal([]byte(l), &f); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		body, err := base64.StdEncoding.DecodeString(f.Body)
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, clients.Message{Key: f.Key, Tag: f.Tag, Body: body, Partition: f.Partition, Offset: f.Offset, Props: f.Props,
			PublishTime: time.UnixMilli(f.PublishTime), EventTime: time.UnixMilli(f.EventTime)})
	}
	return ms
}

const foreignCount, foreignKeys = 300, 17

// judgeForeign wants each of the foreign producer's messages once, in order per key.
func judgeForeign(t *testing.T, lang, at string, ms []clients.Message) {
	t.Helper()
	last, seen := map[string]int{}, map[int]bool{}
	defer func() {
		if t.Failed() {
			t.Logf("what came at %s, as number@partition/offset: %s", at, places(ms))
		}
	}()
	for _, m := range ms {
		var i int
		if _, err := fmt.Sscanf(string(m.Body), lang+" %d", &i); err != nil {
			t.Fatalf("body %q", m.Body)
		}
		if m.Key != fmt.Sprintf("key-%d", i%foreignKeys) || m.Props["n"] != fmt.Sprint(i) || m.Props["unit"] != "°C" {
			t.Fatalf("message %d: key %q props %v", i, m.Key, m.Props)
		}
		if prev, ok := last[m.Key]; ok && prev >= i {
			t.Errorf("key %s: %d after %d", m.Key, i, prev)
		}
		if seen[i] {
			t.Errorf("message %d twice", i)
		}
		last[m.Key], seen[i] = i, true
	}
	if len(seen) != foreignCount {
		t.Errorf("%d of %d messages", len(seen), foreignCount)
	}
}

func places(ms []clients.Message) string {
	var s strings.Builder
	for _, m := range ms {
		fmt.Fprintf(&s, " %s@%d/%d.%d", m.Props["n"], m.Partition, m.Offset, m.Batch)
	}
	return s.String()
}

// foreignPulsar lets a foreign Pulsar client produce for everybody and consume what MQTT devices published.
func foreignPulsar(t *testing.T, lang string, program []string) {
	b := newBed(t, matrix, 2*time.Minute)
	topic := "persistent://acme/out/by-batch"
	sub := b.mqttSub("m", "by-batch/+")
	byRocketMQ := b.rocketmqConsumer("by-batch", "g", true)
	b.run(program, "produce", "pulsar://"+b.Pulsar, topic, fmt.Sprint(foreignCount), fmt.Sprint(foreignKeys))
	k := b.consume(topic, "go", "c", pulsar.Exclusive)
	defer k.Close()
	got := b.take(k, foreignCount, 20*time.Second)
	judgeForeign(t, lang, "Pulsar", got)
	for _, m := range got {
		if m.EventTime.UnixMilli() < 1_600_000_000_000 || m.EventTime.UnixMilli() >= 1_600_000_000_000+foreignCount {
			t.Fatalf("event time %s", m.EventTime)
		}
	}
	judgeForeign(t, lang, "RocketMQ", b.take(byRocketMQ, foreignCount, 30*time.Second))
	fromMQTT := b.take(sub, foreignCount, 10*time.Second)
	for i := range fromMQTT {
		fromMQTT[i].Key = strings.TrimPrefix(fromMQTT[i].Topic, "by-batch/")
	}
	judgeForeign(t, lang, "MQTT", fromMQTT)

	b.publish(foreignCount, func(i int) string { return fmt.Sprintf("by-mqtt/key-%d", i%foreignKeys) })
	for _, kind := range []string{"Failover", "Shared"} {
		lines := b.run(program, "consume", "pulsar://"+b.Pulsar, "persistent://acme/out/by-mqtt", "sub-"+kind, kind, fmt.Sprint(foreignCount), "30")
		exactlyOnce(b, foreignCount, messages(t, lines))
	}
}

func TestJavaPulsar(t *testing.T)   { foreignPulsar(t, "java", java(t, "PulsarMain")) }
func TestPythonPulsar(t *testing.T) { foreignPulsar(t, "python", python(t)) }

func TestJavaRocketMQ(t *testing.T) {
	program := java(t, "RocketMQMain")
	b := newBed(t, matrix, 2*time.Minute)
	sub := b.mqttSub("m", "by-rocketmq/+")
	b.run(program, "produce", b.NameServer, "by-rocketmq", fmt.Sprint(foreignCount), fmt.Sprint(foreignKeys))
	k := b.consume("persistent://acme/out/by-rocketmq", "go", "c", pulsar.Exclusive)
	defer k.Close()
	judgeForeign(t, "java", "Pulsar", b.take(k, foreignCount, 20*time.Second))
	judgeForeign(t, "java", "RocketMQ", b.take(b.rocketmqConsumer("by-rocketmq", "go-rocketmq", true), foreignCount, 30*time.Second))
	fromMQTT := b.take(sub, foreignCount, 10*time.Second)
	for i := range fromMQTT {
		fromMQTT[i].Key = strings.TrimPrefix(fromMQTT[i].Topic, "by-rocketmq/")
	}
	judgeForeign(t, "java", "MQTT", fromMQTT)

	b.publish(foreignCount, func(i int) string { return fmt.Sprintf("by-mqtt/key-%d", i%foreignKeys) })
	for _, mode := range []string{"orderly", "concurrently"} {
		lines := b.run(program, "consume", b.NameServer, "by-mqtt", "java-"+mode, mode, fmt.Sprint(foreignCount), "40")
		exactlyOnce(b, foreignCount, messages(t, lines))
	}
}

func TestMosquittoTools(t *testing.T) {
	need(t, "mosquitto_pub", "mosquitto_sub", "stdbuf")
	for _, version := range []string{"mqttv311", "mqttv5"} {
		t.Run(version, func(t *testing.T) {
			b := newBed(t, gateway.Event, time.Minute)
			host, port, _ := strings.Cut(b.MQTT, ":")
			args := []string{"-h", host, "-p", port, "-V", version, "-q", "1"}
			// stdbuf: the tool's own buffer would keep "Subscribed" from us until its end.
			sub := exec.CommandContext(b.ctx, "stdbuf", append(append([]string{"-oL", "mosquitto_sub"}, args...), "-t", "devices/+/telemetry", "-C", "20", "-v", "-d")...)
			out, err := sub.StdoutPipe()
			b.must(err)
			b.must(sub.Start())
			defer sub.Process.Kill()
			lines := bufio.NewScanner(out)
			for lines.Scan() && !strings.Contains(lines.Text(), "Subscribed (mid") {
			}
			k := b.consume(event, "s", "c", pulsar.Failover)
			defer k.Close()
			pub := exec.CommandContext(b.ctx, "mosquitto_pub", append(args, "-t", "devices/mosq/telemetry", "-l")...)
			var in strings.Builder
			for i := range 20 {
				fmt.Fprintln(&in, i)
			}
			pub.Stdin = strings.NewReader(in.String())
			if text, err := pub.CombinedOutput(); err != nil {
				t.Fatalf("mosquitto_pub: %v\n%s", err, text)
			}
			exactlyOnce(b, 20, b.take(k, 20, 10*time.Second))
			var got []string
			for len(got) < 20 && lines.Scan() {
				if n, ok := strings.CutPrefix(lines.Text(), "devices/mosq/telemetry "); ok {
					got = append(got, n)
				}
			}
			for i := range 20 {
				if i >= len(got) || got[i] != fmt.Sprint(i) {
					t.Fatalf("mosquitto_sub printed %v", got)
				}
			}
		})
	}
}
