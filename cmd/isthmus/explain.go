package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/routing"
)

type explainCommand struct {
	Config    string            `help:"Configuration file." placeholder:"FILE" type:"existingfile"`
	MQTTTopic string            `help:"The way up: an MQTT topic somebody publishes to." name:"mqtt-topic" xor:"way" required:""`
	Topic     string            `help:"The way down: a topic a message was produced to." xor:"way" required:""`
	Client    string            `help:"MQTT client id." placeholder:"ID"`
	Username  string            `help:"MQTT user name." placeholder:"NAME"`
	Payload   string            `help:"File with the payload." placeholder:"FILE" type:"existingfile"`
	Key       *string           `help:"Key of the message, on the way down."`
	Tag       string            `help:"Tag of the message, on the way down."`
	Prop      map[string]string `help:"A property; may be repeated." placeholder:"NAME=VALUE"`
}

// Run prints what the mappings decide about one message.
func (x *explainCommand) Run(s *streams) error {
	cfg, err := LoadConfig(x.Config)
	if err != nil {
		return err
	}
	routes, err := cfg.Routes()
	if err != nil {
		return err
	}
	var body []byte
	if x.Payload != "" {
		if body, err = os.ReadFile(x.Payload); err != nil {
			return err
		}
	}
	if x.MQTTTopic != "" {
		return x.up(s.out, cfg, routes, body)
	}
	return x.down(s.out, cfg, routes, body)
}

func (x *explainCommand) properties() (ps []core.Property) {
	for k, v := range x.Prop {
		ps = append(ps, core.Property{Key: k, Value: v})
	}
	slices.SortFunc(ps, func(a, b core.Property) int { return strings.Compare(a.Key, b.Key) })
	return ps
}

func (x *explainCommand) up(w io.Writer, cfg *Config, routes *routing.Table, body []byte) error {
	if strings.ContainsAny(x.MQTTTopic, "+#\x00") {
		return errors.New("isthmus: --mqtt-topic is a topic somebody publishes to, not a filter")
	}
	var to routing.Target
	src := routing.Source{Topic: x.MQTTTopic, ClientID: x.Client, Username: x.Username, Properties: x.properties(), Body: body}
	if err := routes.Up(&src, &to); err != nil {
		return fmt.Errorf("isthmus: refused: %w", err)
	}
	p := printer{w: w}
	p.row("mapping", to.Mapping)
	p.topic(cfg, to.Topic, to.Key, to.HasKey)
	if to.Tag != "" {
		p.row("tag", to.Tag)
	}
	for _, prop := range to.Properties {
		p.row("property", prop.Key+" = "+prop.Value)
	}
	return p.err
}

func (x *explainCommand) down(w io.Writer, cfg *Config, routes *routing.Table, body []byte) error {
	name, err := core.ParseTopicName(x.Topic, cfg.Defaults.Tenant, cfg.Defaults.Namespace)
	if err != nil {
		return fmt.Errorf("isthmus: %w", err)
	}
	m := core.Message{Tag: x.Tag, Properties: x.properties(), Body: body}
	if x.Key != nil {
		m.Key, m.HasKey = []byte(*x.Key), true
	}
	p := printer{w: w}
	p.topic(cfg, name, m.Key, m.HasKey)
	addresses := routes.Down(name, &m, nil)
	if len(addresses) == 0 {
		p.row("mqtt", "none: no mapping leads from this topic to MQTT, several do and nothing tells them apart, or a value is missing")
	}
	for _, a := range addresses {
		p.row("mqtt", fmt.Sprintf("%s (QoS %d, mapping %s)", a.Topic, a.QoS, a.Mapping))
	}
	return p.err
}

// printer writes rows until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) row(name, value string) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, "%-10s %s\n", name, value)
	}
}

// topic prints the topic, what its consumers call it, and the partition of a key.
func (p *printer) topic(cfg *Config, n core.TopicName, key []byte, hasKey bool) {
	t, declared := cfg.topic(n)
	if !declared {
		t.Partitions = cfg.Defaults.Partitions
		t.inherit(n.String(), &cfg.Defaults)
	}
	p.row("topic", n.String())
	if alias := t.Names["rocketmq"]; alias != "" {
		p.row("", "RocketMQ clients call it "+alias)
	}
	if !declared {
		p.row("", "not declared: the first client creates it")
	}
	switch {
	case !hasKey:
		p.row("key", "none")
	default:
		p.row("key", string(key))
	}
	switch {
	case t.Partitions == 0:
		p.row("partition", "the only one")
	case hasKey:
		p.row("partition", fmt.Sprintf("%d of %d", int32(core.Murmur3_32(key)&0x7fffffff)%t.Partitions, t.Partitions))
		if t.Placement != "key" {
			p.row("", "placement is client: Pulsar and RocketMQ producers may put this key elsewhere, order per key holds within one client family")
		}
	default:
		p.row("partition", fmt.Sprintf("any of %d, in turn", t.Partitions))
	}
	for _, name := range cfg.Groups.Keys {
		if cfg.topicName(name) == n {
			p.groups(cfg.Groups.Values[name])
		}
	}
	p.policy(&t)
	p.row("order", "as stored, for exclusive, failover and orderly consumers of the partition; shared consumers get none, key_shared ones of each key")
}

// groups prints the declared groups, and which of them give MQTT members whole keys.
func (p *printer) groups(gs []GroupConfig) {
	names := groupNames(gs)
	for i := range gs {
		if gs[i].Dispatch == dispatchKey {
			names[i] += " (MQTT members by key)"
		}
	}
	p.row("groups", strings.Join(names, ", "))
}

// policy prints what bounds the topic's messages; nothing where nothing was said.
func (p *printer) policy(t *TopicConfig) {
	if r := bounds(t.Retention.Age, t.Retention.Size); r != "" {
		p.row("retention", "consumed messages stay for "+r)
	}
	if t.TTL > 0 {
		p.row("ttl", t.TTL.String())
	}
	if t.GroupExpiry > 0 {
		p.row("group_expiry", t.GroupExpiry.String())
	}
	if b := bounds(t.Backlog.Age, t.Backlog.Size); b != "" {
		p.row("backlog", b+", then "+cmp.Or(t.Backlog.WhenFull, engine.Reject.String()))
	}
	if t.Deduplication != nil && *t.Deduplication {
		p.row("deduplication", "what a numbered producer sends again is stored once")
	}
}

func bounds(age Duration, size Size) string {
	var parts []string
	if age > 0 {
		parts = append(parts, age.String())
	}
	if size > 0 {
		parts = append(parts, size.String())
	}
	return strings.Join(parts, " or ")
}
