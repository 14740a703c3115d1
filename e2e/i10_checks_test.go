package e2e

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/eclipse/paho.golang/paho"

	"isthmus/e2e/clients"
)

var (
	toPulsar   = []string{"MQTT → Pulsar", "RocketMQ → Pulsar"}
	toRocketMQ = []string{"MQTT → RocketMQ", "Pulsar → RocketMQ"}
	toMQTT     = []string{"Pulsar → MQTT", "RocketMQ → MQTT"}
	everywhere = append(append(append([]string{}, toPulsar...), toRocketMQ...), toMQTT...)
)

// on makes a check of one message field.
func on(what string, get func(m clients.Message) string, want string) check {
	return func(t *testing.T, ms crossed, _ time.Time) {
		m, ok := ms[what]
		if !ok {
			t.Fatalf("the %s message did not arrive", what)
		}
		if got := get(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func body(m clients.Message) string  { return string(m.Body) }
func key(m clients.Message) string   { return m.Key }
func tag(m clients.Message) string   { return m.Tag }
func topic(m clients.Message) string { return m.Topic }
func prop(name string) func(clients.Message) string {
	return func(m clients.Message) string { return m.Props[name] }
}
func mqttProps(m clients.Message) *paho.PublishProperties { return m.Raw.(*paho.Publish).Properties }

func rocketProp(name string) func(clients.Message) string {
	return func(m clients.Message) string { return m.Raw.(*primitive.MessageExt).GetProperty(name) }
}

// all runs several checks of one cell.
func all(fs ...check) check {
	return func(t *testing.T, ms crossed, sent time.Time) {
		for _, f := range fs {
			f(t, ms, sent)
		}
	}
}

// crossingChecks is row → column → check.
func crossingChecks() map[string]map[string]check {
	cs := map[string]map[string]check{}
	put := func(row string, f check, columns ...string) {
		if cs[row] == nil {
			cs[row] = map[string]check{}
		}
		for _, c := range columns {
			cs[row][c] = f
		}
	}
	put("body", on("full", body, "ünï\x00\xff"), everywhere...)
	put("empty body", on("empty", body, ""), "MQTT → Pulsar", "MQTT → RocketMQ", "Pulsar → MQTT", "Pulsar → RocketMQ")
	put("null value", on("null", body, ""), "Pulsar → MQTT", "Pulsar → RocketMQ")

	put("key", on("full", key, crossingKey), toPulsar...)
	put("key", all(on("full", rocketProp("KEYS"), crossingKey), on("full", rocketProp("SHARDING_KEY"), crossingKey),
		on("full", rocketProp("__SHARDINGKEY"), crossingKey)), toRocketMQ...)
	put("key", on("full", func(m clients.Message) string { return m.Topic[strings.IndexByte(m.Topic, '/')+1:] }, crossingKey), toMQTT...)
	put("address", on("full", topic, "x-pulsar/"+crossingKey), "Pulsar → MQTT")
	put("address", on("full", topic, "x-rocketmq/"+crossingKey), "RocketMQ → MQTT")

	put("tag", on("full", prop("TAGS"), "telemetry"), toPulsar...)
	put("tag", on("full", tag, "telemetry"), toRocketMQ...)

	put("properties", all(on("full", prop("unit"), "°C"), on("full", prop("with space"), "a=b;c,d"), on("full", prop("n"), "7")), everywhere...)
	put("repeated property", on("full", prop("n"), "7"), "MQTT → Pulsar", "MQTT → RocketMQ")
	put("properties of the mapping", on("full", prop("deviceId"), crossingKey), "MQTT → Pulsar", "MQTT → RocketMQ")

	others := append(append([]string{}, toPulsar...), toRocketMQ...)
	put("content type", on("full", prop("mqtt.content-type"), "application/json"), others...)
	put("content type", on("full", func(m clients.Message) string { return mqttProps(m).ContentType }, "application/json"), toMQTT...)
	put("response topic", on("full", prop("mqtt.response-topic"), "re/ply"), others...)
	put("response topic", on("full", func(m clients.Message) string { return mqttProps(m).ResponseTopic }, "re/ply"), toMQTT...)
	put("correlation data", on("full", prop("mqtt.correlation-data"), base64.StdEncoding.EncodeToString([]byte{0, 1, 255})), others...)
	put("correlation data", on("full", func(m clients.Message) string { return string(mqttProps(m).CorrelationData) }, "\x00\x01\xff"), toMQTT...)
	put("payload format", on("full", prop("mqtt.payload-format"), "1"), others...)
	put("payload format", on("full", func(m clients.Message) string {
		if p := mqttProps(m).PayloadFormat; p != nil && *p == 1 {
			return "1"
		}
		return ""
	}, "1"), toMQTT...)

	put("publish time", publishedAfter, others...)
	put("producer", on("full", func(m clients.Message) string {
		return m.Raw.(interface{ ProducerName() string }).ProducerName()
	}, "i10-device"), "MQTT → Pulsar")
	put("several KEYS", on("keys", prop("KEYS"), "one two"), "RocketMQ → Pulsar", "RocketMQ → MQTT")
	cs["event time"] = map[string]check{} // nobody outside Pulsar has a place for it
	return cs
}

// publishedAfter wants a time between the sending and now. The clients of all three run on this machine's clock.
func publishedAfter(t *testing.T, ms crossed, sent time.Time) {
	if at := ms["full"].PublishTime; at.Before(sent) || at.After(time.Now()) {
		t.Errorf("published at %s, sent after %s", at, sent)
	}
}
