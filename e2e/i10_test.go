package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/eclipse/paho.golang/paho"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

// I10: what survives a crossing. docs/crossings.md is the table; every cell that is not – has a check here, and the other
// way round, so neither can lie for long.

const crossingKey, crossingAt = "vdevo170000000000042", 1_700_000_000_123

var crossing = gateway.Config{
	Topics: `
persistent://acme/out/x-mqtt:     { partitions: 3, placement: key, names: { rocketmq: x-mqtt } }
persistent://acme/out/x-pulsar:   { partitions: 3, placement: key, names: { rocketmq: x-pulsar } }
persistent://acme/out/x-rocketmq: { partitions: 3, placement: key, names: { rocketmq: x-rocketmq } }`,
	Mappings: mapping("x-pulsar") + mapping("x-rocketmq") + mapping("x-mqtt") + `
  tag:  telemetry
  properties: { deviceId: "{k}" }`,
}

var crossingProps = map[string]string{"unit": "°C", "with space": "a=b;c,d", "n": "7"}

// crossed are the received messages by what was sent: "full", "empty", "null", "keys", "plain".
type crossed map[string]clients.Message

// check judges one cell.
type check func(t *testing.T, ms crossed, sent time.Time)

func TestI10_CrossProtocolIdentity(t *testing.T) {
	b := newBed(t, crossing, 2*time.Minute)
	sent := time.Now().Truncate(time.Millisecond)
	got := map[string]crossed{}
	for source, send := range map[string]func(){"MQTT": b.crossFromMQTT, "Pulsar": b.crossFromPulsar, "RocketMQ": b.crossFromRocketMQ} {
		b.cross(source, send, got)
	}
	columns, cells := crossingsTable(t)
	checks := crossingChecks()
	for _, column := range columns {
		for row, text := range cells[column] {
			f := checks[row][column]
			switch {
			case text == "–" && f != nil:
				t.Errorf("%s / %s: checked, but the table says that it has no place", column, row)
			case text != "–" && f == nil:
				t.Errorf("%s / %s: the table says %q and nothing checks it", column, row, text)
			case f != nil:
				t.Run(column+"/"+row, func(t *testing.T) { f(t, got[column], sent) })
			}
		}
	}
}

// cross subscribes the other two protocols, sends, and sorts what they got.
func (b *bed) cross(source string, send func(), got map[string]crossed) {
	b.Helper()
	name := "x-" + strings.ToLower(source)
	to := map[string]clients.Consumer{}
	if source != "MQTT" {
		to["MQTT"] = b.mqttSub("i10-"+name, name+"/+")
	}
	if source != "Pulsar" {
		k := b.consume("persistent://acme/out/"+name, "i10", "c", pulsar.Exclusive)
		b.Cleanup(k.Close)
		to["Pulsar"] = k
	}
	if source != "RocketMQ" {
		to["RocketMQ"] = b.rocketmqConsumer(name, "i10-"+name, false)
	}
	send()
	want := map[string]int{"MQTT": 2, "Pulsar": 4, "RocketMQ": 2}[source]
	for target, k := range to {
		ms := crossed{}
		for _, m := range b.take(k, want, 15*time.Second) {
			what := m.Props["what"]
			if what == "" {
				what = string(m.Body)
			}
			ms[what] = m
		}
		got[source+" → "+target] = ms
	}
}

func (b *bed) crossFromMQTT() {
	p := b.mqtt("i10-device")
	format := byte(1)
	b.must(p.Send(b.ctx, clients.Message{Topic: "x-mqtt/" + crossingKey, Body: []byte("ünï\x00\xff"), Raw: &paho.PublishProperties{
		ContentType: "application/json", ResponseTopic: "re/ply", CorrelationData: []byte{0, 1, 255}, PayloadFormat: &format,
		User: paho.UserProperties{{Key: "what", Value: "full"}, {Key: "unit", Value: "°C"}, {Key: "with space", Value: "a=b;c,d"},
			{Key: "n", Value: "6"}, {Key: "n", Value: "7"}},
	}}))
	b.must(p.Send(b.ctx, clients.Message{Topic: "x-mqtt/" + crossingKey, Props: map[string]string{"what": "empty"}}))
}

func fullProps() map[string]string {
	p := map[string]string{"what": "full", "mqtt.content-type": "application/json", "mqtt.response-topic": "re/ply",
		"mqtt.correlation-data": base64.StdEncoding.EncodeToString([]byte{0, 1, 255}), "mqtt.payload-format": "1"}
	for k, v := range crossingProps {
		p[k] = v
	}
	return p
}

func (b *bed) crossFromPulsar() {
	p, err := clients.NewPulsarProducer(b.pulsar(), "persistent://acme/out/x-pulsar", nil)
	b.must(err)
	defer p.Close()
	full := fullProps()
	full["TAGS"] = "telemetry"
	b.must(p.Send(b.ctx, clients.Message{Key: crossingKey, Body: []byte("ünï\x00\xff"), Props: full, EventTime: time.UnixMilli(crossingAt)}))
	b.must(p.Send(b.ctx, clients.Message{Key: crossingKey, Body: []byte{}, Props: map[string]string{"what": "empty"}}))
	// Go sends a null value when neither payload nor value is there and the schema is none.
	b.must(p.Send(b.ctx, clients.Message{Key: crossingKey, Props: map[string]string{"what": "null"}}))
	b.must(p.Send(b.ctx, clients.Message{Key: crossingKey, Body: []byte("plain")}))
}

func (b *bed) crossFromRocketMQ() {
	p := b.rocketmqProducer("x-rocketmq")
	b.must(p.Send(b.ctx, clients.Message{Key: crossingKey, HasKey: true, Tag: "telemetry", Body: []byte("ünï\x00\xff"), Props: fullProps()}))
	// Several KEYS beside a sharding key, so that the message still finds its MQTT topic.
	b.must(p.Send(b.ctx, clients.Message{Body: []byte("x"), Props: map[string]string{
		"what": "keys", primitive.PropertyKeys: "one two", primitive.PropertyShardingKey: crossingKey}}))
}

// crossingsTable reads the documents' table: column names, and column → row → text.
func crossingsTable(t *testing.T) (columns []string, cells map[string]map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../docs/crossings.md")
	if err != nil {
		t.Fatal(err)
	}
	cells = map[string]map[string]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		switch {
		case !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---"):
		case columns == nil:
			for _, c := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")[1:] {
				columns = append(columns, strings.TrimSpace(c))
				cells[strings.TrimSpace(c)] = map[string]string{}
			}
		case len(f) != len(columns)+1:
			t.Fatalf("row of %d cells: %s", len(f), line)
		default:
			for i, c := range f[1:] {
				cells[columns[i]][strings.TrimSpace(f[0])] = strings.TrimSpace(c)
			}
		}
	}
	if len(columns) != 6 {
		t.Fatal(fmt.Sprint("columns of the table: ", columns))
	}
	return columns, cells
}
