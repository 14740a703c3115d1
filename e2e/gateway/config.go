package gateway

import (
	"fmt"
	"net"
	"strings"
)

// Ports are the addresses that one gateway keeps over its restarts, because clients keep them too.
type Ports struct {
	MQTT, Pulsar, NameServer, Broker, HTTP string
}

// FreePorts asks the kernel for ports and gives them back at once. All are held together, so they differ.
func FreePorts() (Ports, error) {
	var p Ports
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for _, dst := range []*string{&p.MQTT, &p.Pulsar, &p.NameServer, &p.Broker, &p.HTTP} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return p, fmt.Errorf("find a free port: %w", err)
		}
		held = append(held, l)
		*dst = l.Addr().String()
	}
	return p, nil
}

// Config is the part of the configuration file that a test chooses; the rest is the same for all.
type Config struct {
	Topics, Groups, Mappings string // YAML bodies of the sections, not indented
	Defaults                 string // "" = tenant public, namespace default, auto_create on
	Unmatched                string // "" = the catch-all of the sample configuration
	Limits                   string
	Durability               string
}

// Event is the profile of the sample configuration: eleven partitions placed by key, one group from the start.
var Event = Config{
	Topics: `
persistent://acme/out/event:      { partitions: 11, placement: key, names: { rocketmq: event } }
persistent://acme/out/event-test: { partitions: 0 }`,
	Groups: `
persistent://acme/out/event: [ acme-sub ]`,
	Mappings: `
- id: telemetry-up
  from: { mqtt: "devices/{deviceId}/telemetry" }
  to:   { topic: persistent://acme/out/event }
  key:  "{deviceId}"
  tag:  telemetry
  properties: { deviceId: "{deviceId}" }
- id: test-up
  from: { mqtt: "test/{deviceId}" }
  to:   { topic: persistent://acme/out/event-test }
  key:  "{deviceId}"`,
}

func (c Config) yaml(dir string, p Ports) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node: { id: e2e, data_dir: %q }\n", dir)
	fmt.Fprintf(&b, "listeners:\n")
	fmt.Fprintf(&b, "  mqtt:     { bind: %q }\n", p.MQTT)
	fmt.Fprintf(&b, "  pulsar:   { bind: %q, advertise: %q }\n", p.Pulsar, "pulsar://"+p.Pulsar)
	fmt.Fprintf(&b, "  rocketmq: { bind: %q, broker: %q }\n", p.NameServer, p.Broker)
	fmt.Fprintf(&b, "  http:     { bind: %q }\n", p.HTTP)
	or := func(s, d string) string {
		if s == "" {
			return d
		}
		return s
	}
	fmt.Fprintf(&b, "defaults: %s\n", or(c.Defaults, "{ tenant: public, namespace: default, auto_create: true, partitions: 0, rocketmq_queues: 8 }"))
	section := func(name, body string) {
		if body = strings.Trim(body, "\n"); body != "" {
			fmt.Fprintf(&b, "%s:\n  %s\n", name, strings.ReplaceAll(body, "\n", "\n  "))
		}
	}
	section("topics", c.Topics)
	section("groups", c.Groups)
	section("mappings", c.Mappings)
	fmt.Fprintf(&b, "unmatched: %s\n", or(c.Unmatched, `{ topic: persistent://public/default/mqtt, key: "{mqtt.topic}" }`))
	fmt.Fprintf(&b, "durability: %s\n", or(c.Durability, "{ mode: fsync, window: 1ms }"))
	fmt.Fprintf(&b, "limits: %s\n", or(c.Limits, "{ connections: 20000, max_payload: 5MiB }"))
	fmt.Fprintf(&b, "auth: { anonymous: true }\n")
	return b.String()
}
