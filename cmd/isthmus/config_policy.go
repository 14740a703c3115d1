package main

import (
	"strings"
	"time"

	"isthmus/core/engine"
)

// inherit takes from the defaults what the topic says nothing about, word by word.
func (t *TopicConfig) inherit(n string, d *DefaultsConfig) {
	if strings.HasPrefix(n, "non-persistent://") {
		return // nothing of it is kept
	}
	if t.Retention == (RetentionConfig{}) {
		t.Retention = d.Retention
	}
	if t.TTL == 0 {
		t.TTL = d.TTL
	}
	if t.Backlog == (BacklogConfig{}) {
		t.Backlog = d.Backlog
	}
	if t.GroupExpiry == 0 {
		t.GroupExpiry = d.GroupExpiry
	}
	if t.Deduplication == nil {
		t.Deduplication = &d.Deduplication
	}
}

func policy(p PolicyConfig) engine.Policy {
	r, b := p.Retention, p.Backlog
	when, _ := engine.ParseWhenFull(b.WhenFull) // Validate has read it
	return engine.Policy{
		Retention: engine.Retention{Age: time.Duration(r.Age), Size: int64(r.Size)}, TTL: time.Duration(p.TTL),
		Backlog:     engine.Backlog{Age: time.Duration(b.Age), Size: int64(b.Size), WhenFull: when},
		GroupExpiry: time.Duration(p.GroupExpiry),
	}
}

func (v *validator) backlog(path string, b BacklogConfig) {
	if _, err := engine.ParseWhenFull(b.WhenFull); err != nil {
		v.oneOf(path+".when_full", b.WhenFull, engine.Reject.String(), engine.Block.String(), engine.DropOldest.String())
	} else if b.WhenFull != "" && b.Age == 0 && b.Size == 0 {
		v.fault(path, "when_full: %s, but neither age nor size says when it is full", b.WhenFull)
	}
}

// nonPersistent refuses what a topic that keeps nothing cannot have.
func (v *validator) nonPersistent(path string, t TopicConfig) {
	if t.Partitions != 0 {
		v.fault(path+".partitions", "a non-persistent topic has none")
	}
	if t.PolicyConfig != (PolicyConfig{}) {
		v.fault(path, "a non-persistent topic keeps nothing: retention, ttl, backlog and group_expiry have no meaning")
	}
	if t.Names["rocketmq"] != "" {
		v.fault(path+".names.rocketmq", "RocketMQ clients pull, and of a non-persistent topic there is nothing to pull")
	}
}
