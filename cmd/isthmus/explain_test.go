package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// S1.35: a Shared group has no order, and explain says so.
func TestExplain(t *testing.T) {
	payload := filepath.Join(t.TempDir(), "payload.json")
	if err := os.WriteFile(payload, []byte(`{"id":"k"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const edge = "--config=../../configs/edge.yaml"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{edge + " --mqtt-topic devices/42/telemetry --client c1", 0, `
mapping    telemetry-up
topic      persistent://acme/out/event
           RocketMQ clients call it event
key        42
partition  10 of 11
groups     acme-sub
retention  consumed messages stay for 72h or 20GiB
ttl        168h
backlog    4GiB, then reject
order      as stored, for exclusive, failover and orderly consumers of the partition; shared consumers get none, key_shared ones of each key
tag        telemetry
property   deviceId = 42
`},
		{edge + " --mqtt-topic other --client c1 --payload " + payload, 0, `
mapping    unmatched
topic      persistent://public/default/mqtt
           not declared: the first client creates it
key        other
partition  the only one
order      as stored, for exclusive, failover and orderly consumers of the partition; shared consumers get none, key_shared ones of each key
`},
		{edge + " --mqtt-topic devices//telemetry --client c1", 1, `
isthmus: refused: publish to "devices//telemetry": mapping telemetry-up: a capture is empty or has characters that are not allowed: invalid
`},
		{edge + " --mqtt-topic devices/+/telemetry", 1, `
isthmus: --mqtt-topic is a topic somebody publishes to, not a filter
`},
		{edge + " --topic persistent://acme/in/device-cmd --key 42", 0, `
topic      persistent://acme/in/device-cmd
           not declared: the first client creates it
key        42
partition  the only one
order      as stored, for exclusive, failover and orderly consumers of the partition; shared consumers get none, key_shared ones of each key
mqtt       devices/42/commands (QoS 1, mapping commands-down)
`},
		{edge + " --topic persistent://acme/in/device-cmd", 0, `
topic      persistent://acme/in/device-cmd
           not declared: the first client creates it
key        none
partition  the only one
order      as stored, for exclusive, failover and orderly consumers of the partition; shared consumers get none, key_shared ones of each key
mqtt       none: no mapping leads from this topic to MQTT, several do and nothing tells them apart, or a value is missing
`},
		{edge + " --topic a/b", 1, `
isthmus: topic name "a/b": want tenant/namespace/name: invalid
`},
		{edge, 2, `
isthmus: missing flags: --mqtt-topic=STRING or --topic=STRING
`},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(append([]string{"explain"}, strings.Fields(c.args)...), &stdout, &stderr)
		got := stdout.String()
		if code != 0 {
			got = stderr.String()
		}
		if want := strings.TrimPrefix(c.want, "\n"); code != c.code || got != want {
			t.Errorf("explain %s\nexit %d:\n%s\nwant %d:\n%s", c.args, code, got, c.code, want)
		}
	}
}

func TestHelpAndVersionAreNoFaults(t *testing.T) {
	for _, arg := range []string{"--help", "--version"} {
		var stdout, stderr bytes.Buffer
		if code := execute([]string{arg}, &stdout, &stderr); code != 0 || stdout.Len() == 0 || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", arg, code, stdout.String(), stderr.String())
		}
	}
}
