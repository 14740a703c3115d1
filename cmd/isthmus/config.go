package main

import (
	"time"

	"isthmus/core"
	"isthmus/routing"
)

// Config is the configuration file. Its structure is documented in docs/configuration.md.
type Config struct {
	Node       NodeConfig              `yaml:"node"`
	Listeners  ordered[ListenerConfig] `yaml:"listeners"`
	Defaults   DefaultsConfig          `yaml:"defaults"`
	Topics     ordered[TopicConfig]    `yaml:"topics"`
	Groups     ordered[[]GroupConfig]  `yaml:"groups"`
	Mappings   []MappingConfig         `yaml:"mappings"`
	Unmatched  UnmatchedConfig         `yaml:"unmatched"`
	Durability DurabilityConfig        `yaml:"durability"`
	Limits     LimitsConfig            `yaml:"limits"`
	RocketMQ   RocketMQConfig          `yaml:"rocketmq"`
	Auth       *AuthConfig             `yaml:"auth"` // nil: nothing was said about it
	Links      []any                   `yaml:"links"`
}

// NodeConfig names this process and the folder of its data.
type NodeConfig struct {
	ID      string `yaml:"id"`
	DataDir string `yaml:"data_dir"`
}

// ListenerConfig is one listener. Its name is its protocol unless Protocol says otherwise.
type ListenerConfig struct {
	Protocol  string `yaml:"protocol"`
	Transport string `yaml:"transport"`
	Bind      string `yaml:"bind"`
	Advertise string `yaml:"advertise"` // pulsar: service URL; rocketmq: host:port of the broker
	Broker    string `yaml:"broker"`    // rocketmq: where the broker listens; bind is the name server
	GRPC      string `yaml:"grpc"`
	// mqtt: what a 3.1.1 client gets that subscribes to $share: disconnect (default), refuse or allow
	V311Shared string `yaml:"v311_shared"`
}

// DefaultsConfig completes short names and shapes topics that clients create.
type DefaultsConfig struct {
	Tenant         string `yaml:"tenant"`
	Namespace      string `yaml:"namespace"`
	AutoCreate     bool   `yaml:"auto_create"`
	Partitions     int32  `yaml:"partitions"`
	RocketMQQueues int32  `yaml:"rocketmq_queues"`

	KeySplit string `yaml:"key_split"` // of key_shared groups: ring (default) or ranges

	DeleteWhenIdle Duration `yaml:"delete_when_idle"` // topics that clients created; 0: never

	// Of topics that clients create, and of declared ones where they say nothing.
	PolicyConfig  `yaml:",inline"`
	Deduplication bool `yaml:"deduplication"`
}

// TopicConfig declares a topic.
type TopicConfig struct {
	Partitions int32             `yaml:"partitions"`
	Placement  string            `yaml:"placement"` // client (default) or key
	Names      map[string]string `yaml:"names"`     // protocol → the name its clients use

	PolicyConfig  `yaml:",inline"`
	Deduplication *bool `yaml:"deduplication"` // what a numbered producer sends again is stored once
}

// PolicyConfig says what becomes of a topic's messages and groups.
type PolicyConfig struct {
	Retention   RetentionConfig `yaml:"retention"`
	TTL         Duration        `yaml:"ttl"` // older messages are not delivered, consumed or not
	Backlog     BacklogConfig   `yaml:"backlog"`
	GroupExpiry Duration        `yaml:"group_expiry"` // of groups that clients began and nobody uses; 0: never
}

// RetentionConfig says how long consumed data stays.
type RetentionConfig struct {
	Age  Duration `yaml:"age"`
	Size Size     `yaml:"size"`
}

// BacklogConfig bounds data that is not consumed.
type BacklogConfig struct {
	Age      Duration `yaml:"age"`
	Size     Size     `yaml:"size"`
	WhenFull string   `yaml:"when_full"` // reject (default), block or drop_oldest
}

// MappingConfig is one mapping; see routing.Mapping.
type MappingConfig struct {
	ID         string          `yaml:"id"`
	Direction  string          `yaml:"direction"`
	From       EndConfig       `yaml:"from"`
	To         EndConfig       `yaml:"to"`
	Key        string          `yaml:"key"`
	Tag        string          `yaml:"tag"`
	Properties ordered[string] `yaml:"properties"`
}

// EndConfig is one side of a mapping.
type EndConfig struct {
	MQTT  string `yaml:"mqtt"`
	Topic string `yaml:"topic"`
	QoS   *byte  `yaml:"qos"`
}

// UnmatchedConfig is the word reject, or a topic and a key.
type UnmatchedConfig struct {
	Reject bool   `yaml:"-"`
	Topic  string `yaml:"topic"`
	Key    string `yaml:"key"`
	word   string // anything but reject is a fault
}

// DurabilityConfig says when a message counts as stored.
type DurabilityConfig struct {
	Mode   string   `yaml:"mode"`
	Window Duration `yaml:"window"`
}

// LimitsConfig bounds what clients can take.
type LimitsConfig struct {
	Connections int       `yaml:"connections"`
	MaxPayload  Size      `yaml:"max_payload"`
	DiskFree    FreeSpace `yaml:"disk_free"` // producers are refused while less is free
	Delay       Duration  `yaml:"delay"`     // how long a message may be delayed
	Parked      int       `yaml:"parked"`    // delayed and half messages of one journal
}

// RocketMQConfig is what a real broker's file says of delays and transactions.
type RocketMQConfig struct {
	DelayLevels              []Duration `yaml:"delay_levels"`
	TransactionTimeout       Duration   `yaml:"transaction_timeout"`        // before a silent producer is asked first
	TransactionCheckInterval Duration   `yaml:"transaction_check_interval"` // and then again
	TransactionCheckMax      int        `yaml:"transaction_check_max"`      // questions before a half message is given up
}

// AuthConfig says who may connect.
type AuthConfig struct {
	Anonymous bool `yaml:"anonymous"`
}

// defaultConfig is what an empty file means: every listener on loopback, everything else as documented.
func defaultConfig() *Config {
	return &Config{
		Node:       NodeConfig{ID: "isthmus", DataDir: "./data"},
		Defaults:   DefaultsConfig{Tenant: "public", Namespace: "default", AutoCreate: true, RocketMQQueues: 8},
		Durability: DurabilityConfig{Mode: "fsync", Window: Duration(time.Millisecond)},
		Limits:     LimitsConfig{Connections: 20000, MaxPayload: 5 << 20, Delay: Duration(366 * 24 * time.Hour), Parked: 4_000_000},
		// Spec: RocketMQ BrokerConfig.transactionTimeOut, transactionCheckInterval, transactionCheckMax@5.x
		RocketMQ: RocketMQConfig{
			TransactionTimeout: Duration(6 * time.Second), TransactionCheckInterval: Duration(30 * time.Second), TransactionCheckMax: 15,
		},
	}
}

func defaultListeners() (ls ordered[ListenerConfig]) {
	ls.put("mqtt", ListenerConfig{Bind: "127.0.0.1:1883"})
	ls.put("pulsar", ListenerConfig{Bind: "127.0.0.1:6650"})
	ls.put("rocketmq", ListenerConfig{Bind: "127.0.0.1:9876", Broker: "127.0.0.1:10911"})
	ls.put("http", ListenerConfig{Bind: "127.0.0.1:8080"})
	return ls
}

// complete fills in what follows from what was said.
func (c *Config) complete() {
	if len(c.Listeners.Keys) == 0 {
		c.Listeners = defaultListeners()
	}
	for _, name := range c.Listeners.Keys {
		l := c.Listeners.Values[name]
		if l.Protocol == "" {
			l.Protocol = name
		}
		if l.Transport == "" {
			l.Transport = "tcp"
		}
		c.Listeners.Values[name] = l
	}
	for _, name := range c.Topics.Keys {
		t := c.Topics.Values[name]
		if t.Placement == "" {
			t.Placement = "client"
		}
		t.inherit(name, &c.Defaults)
		c.Topics.Values[name] = t
	}
}

// Routes compiles the mappings. The error joins a *routing.Fault for each thing that is wrong.
func (c *Config) Routes() (*routing.Table, error) {
	ms := make([]routing.Mapping, len(c.Mappings))
	for i, m := range c.Mappings {
		ms[i] = routing.Mapping{
			ID: m.ID, Direction: routing.Direction(m.Direction), Key: m.Key, Tag: m.Tag,
			From: routing.End(m.From), To: routing.End(m.To),
		}
		for _, k := range m.Properties.Keys {
			ms[i].Properties = append(ms[i].Properties, core.Property{Key: k, Value: m.Properties.Values[k]})
		}
	}
	return routing.Compile(ms, routing.Options{
		Tenant: c.Defaults.Tenant, Namespace: c.Defaults.Namespace, DefaultQoS: 1,
		Unmatched: routing.Unmatched{Reject: c.Unmatched.Reject, Topic: c.Unmatched.Topic, Key: c.Unmatched.Key},
	})
}

// topicName reads a name that Validate has accepted.
func (c *Config) topicName(s string) core.TopicName {
	n, _ := core.ParseTopicName(s, c.Defaults.Tenant, c.Defaults.Namespace)
	return n
}

// topic finds the declaration of a topic.
func (c *Config) topic(n core.TopicName) (TopicConfig, bool) {
	for _, name := range c.Topics.Keys {
		if c.topicName(name) == n {
			return c.Topics.Values[name], true
		}
	}
	return TopicConfig{}, false
}
