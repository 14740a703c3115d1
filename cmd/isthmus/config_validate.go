package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/routing"
)

const (
	maxPartitions  = 4096
	maxDelayLevels = 64
	maxPayload     = 256 << 20 // Spec: MQTT5 2.1.4: a packet is shorter than 256 MiB
)

// Validate joins every fault, each a *routing.Fault with its path.
func (c *Config) Validate() error {
	v := &validator{c: c}
	v.node()
	v.listeners()
	v.defaults()
	v.topics()
	v.groups()
	v.rest()
	_, err := c.Routes()
	if err == nil {
		v.mappedTopics()
	}
	return errors.Join(append(v.faults, err)...)
}

type validator struct {
	c      *Config
	faults []error
}

func (v *validator) fault(path, format string, args ...any) {
	v.faults = append(v.faults, &routing.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (v *validator) oneOf(path, got string, want ...string) {
	if !slices.Contains(want, got) {
		v.fault(path, "%q is none of %s", got, strings.Join(want, ", "))
	}
}

func (v *validator) node() {
	if id := v.c.Node.ID; id == "" || len(id) > 64 || strings.Trim(id, nameLetters) != "" {
		v.fault("node.id", "%q: want 1 to 64 letters, digits, . _ or -", id)
	}
	if v.c.Node.DataDir == "" {
		v.fault("node.data_dir", "empty")
	}
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

func (v *validator) defaults() {
	d := v.c.Defaults
	if _, err := core.ParseTopicName("x", d.Tenant, d.Namespace); err != nil {
		v.fault("defaults", "%q/%q: a tenant and a namespace are letters, digits and -=:._", d.Tenant, d.Namespace)
	}
	v.partitions("defaults.partitions", d.Partitions, 0)
	v.partitions("defaults.rocketmq_queues", d.RocketMQQueues, 1)
	v.backlog("defaults.backlog", d.Backlog)
	if _, ok := keySplits[d.KeySplit]; !ok {
		v.fault("defaults.key_split", "%q: want ring or ranges", d.KeySplit)
	}
}

// keySplits are the ways to share out the keys of a key_shared group.
var keySplits = map[string]engine.Split{"": engine.SplitRing, "ring": engine.SplitRing, "ranges": engine.SplitHalves}

func (v *validator) partitions(path string, n, least int32) {
	if n < least || n > maxPartitions {
		v.fault(path, "%d: want %d to %d", n, least, maxPartitions)
	}
}

func (v *validator) topicName(path, name string) (core.TopicName, bool) {
	n, err := core.ParseTopicName(name, v.c.Defaults.Tenant, v.c.Defaults.Namespace)
	if err != nil {
		v.fault(path, "%s", strings.TrimSuffix(err.Error(), ": "+core.ErrInvalid.Error()))
	}
	return n, err == nil
}

var (
	rocketmqTopic = regexp.MustCompile(`^[%|a-zA-Z0-9_-]{1,127}$`) // Spec: RocketMQ Validators.checkTopic, TopicValidator
	partitionName = regexp.MustCompile(`-partition-[0-9]+$`)       // Spec: Pulsar TopicName.PARTITIONED_TOPIC_SUFFIX
)

func (v *validator) topics() {
	seen := map[core.TopicName]string{}
	aliases := map[[2]string]string{}
	for _, name := range v.c.Topics.Keys {
		t, path := v.c.Topics.Values[name], "topics["+name+"]"
		n, ok := v.topicName(path, name)
		if other, dup := seen[n]; ok && dup {
			v.fault(path, "duplicate: %s is the same topic", other)
		}
		seen[n] = name
		if partitionName.MatchString(n.Name) {
			v.fault(path, "named like one partition of a Pulsar topic")
		}
		v.partitions(path+".partitions", t.Partitions, 0)
		v.oneOf(path+".placement", t.Placement, "client", "key")
		if ok && n.NonPersistent {
			v.nonPersistent(path, t)
		}
		v.backlog(path+".backlog", t.Backlog)
		protocols := make([]string, 0, len(t.Names))
		for protocol := range t.Names {
			protocols = append(protocols, protocol)
		}
		slices.Sort(protocols)
		for _, protocol := range protocols {
			at, alias := path+".names."+protocol, t.Names[protocol]
			v.oneOf(at, protocol, "pulsar", "rocketmq")
			if other, dup := aliases[[2]string{protocol, alias}]; dup {
				v.fault(at, "duplicate: %s is called %q too", other, alias)
			}
			if alias == "" {
				v.fault(at, "empty")
			} else if protocol == "rocketmq" && !rocketmqTopic.MatchString(alias) {
				v.fault(at, "%q: RocketMQ topics are 1 to 127 letters, digits, %% | _ -", alias)
			}
			aliases[[2]string{protocol, alias}] = name
		}
	}
}

// known refuses a topic that nobody declares and no client could create.
func (v *validator) known(path string, n core.TopicName) {
	if _, ok := v.c.topic(n); !ok && !v.c.Defaults.AutoCreate {
		v.fault(path, "%s is not declared under topics, and defaults.auto_create is off", n)
	}
}

func (v *validator) mappedTopics() {
	for i, m := range v.c.Mappings {
		// Exactly one side names a topic, or Routes would have failed.
		if m.From.Topic != "" {
			v.known(fmt.Sprintf("mappings[%d].from.topic", i), v.c.topicName(m.From.Topic))
		} else {
			v.known(fmt.Sprintf("mappings[%d].to.topic", i), v.c.topicName(m.To.Topic))
		}
	}
	if t := v.c.Unmatched.Topic; t != "" {
		v.known("unmatched.topic", v.c.topicName(t))
	} else if !v.c.Unmatched.Reject {
		v.known("unmatched", v.c.topicName("mqtt"))
	}
}

func (v *validator) rest() {
	v.oneOf("durability.mode", v.c.Durability.Mode, "fsync", "interval")
	if u := v.c.Unmatched; u.word != "" && !u.Reject {
		v.fault("unmatched", "%q is neither reject nor {topic: …, key: …}", u.word)
	}
	if w := v.c.Durability.Window; w < 0 || w > Duration(1e9) {
		v.fault("durability.window", "want 0s to 1s")
	}
	if v.c.Limits.Connections < 1 {
		v.fault("limits.connections", "%d: want at least 1", v.c.Limits.Connections)
	}
	if n := v.c.Limits.MaxPayload; n < 1 || n > maxPayload {
		v.fault("limits.max_payload", "want 1B to 256MiB")
	}
	if d := v.c.Limits.Delay; d < Duration(time.Second) || d > Duration(366*24*time.Hour) {
		v.fault("limits.delay", "want 1s to 366d")
	}
	if n := v.c.Limits.Parked; n < 1 || n > 16_000_000 {
		v.fault("limits.parked", "%d: want 1 to 16000000", n)
	}
	v.rocketmq()
	if len(v.c.Links) > 0 {
		v.fault("links", "not supported yet")
	}
}

func (v *validator) rocketmq() {
	r := &v.c.RocketMQ
	if n := len(r.DelayLevels); n > maxDelayLevels {
		v.fault("rocketmq.delay_levels", "%d of them: want at most %d", n, maxDelayLevels)
	}
	for i, d := range r.DelayLevels {
		if d < Duration(time.Millisecond) || d > v.c.Limits.Delay {
			v.fault(fmt.Sprintf("rocketmq.delay_levels[%d]", i), "%v: want 1ms to limits.delay", d)
		}
	}
	for path, d := range map[string]Duration{"timeout": r.TransactionTimeout, "check_interval": r.TransactionCheckInterval} {
		if d < Duration(time.Second) || d > Duration(24*time.Hour) {
			v.fault("rocketmq.transaction_"+path, "%v: want 1s to 1d", d)
		}
	}
	if n := r.TransactionCheckMax; n < 1 || n > 10_000 {
		v.fault("rocketmq.transaction_check_max", "%d: want 1 to 10000", n)
	}
}

// Warnings lists what works but may surprise.
func (c *Config) Warnings(t *routing.Table) (out []string) {
	for _, w := range t.Warnings() {
		if topic, _ := c.topic(w.Topic); topic.Partitions > 1 {
			out = append(out, w.Path+": "+w.Message)
		}
	}
	for _, name := range c.Topics.Keys {
		if t := c.Topics.Values[name]; t.Partitions > 1 && t.Placement == "client" {
			out = append(out, fmt.Sprintf("topics[%s].placement: client: producers of different client families put one key in different partitions", name))
		}
	}
	return out
}
