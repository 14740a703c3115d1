package main

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"

	"isthmus/adapters/mqtt"
	"isthmus/core"
	"isthmus/core/engine"
)

// GroupConfig declares a group: its name alone, or with how often a message is tried.
type GroupConfig struct {
	Name        string     `yaml:"name"`
	MaxAttempts int32      `yaml:"max_attempts"`
	Backoff     []Duration `yaml:"backoff"`
	DeadLetter  string     `yaml:"dead_letter"`
	Dispatch    string     `yaml:"dispatch"` // to MQTT $share members: any (default) or key
}

// The ways to hand a group's messages to MQTT members; clients of other protocols say by themselves what they want.
const (
	dispatchAny = "any"
	dispatchKey = "key"
)

// groupFields is GroupConfig without its way to be read.
type groupFields GroupConfig

// UnmarshalYAML reads a name, or the fields.
func (g *GroupConfig) UnmarshalYAML(unmarshal func(any) error) error {
	var node ast.Node
	if err := unmarshal(&node); err != nil {
		return err
	}
	if _, fields := node.(ast.MapNode); fields {
		return unmarshal((*groupFields)(g))
	}
	return unmarshal(&g.Name)
}

func (v *validator) groups() {
	for _, topic := range v.c.Groups.Keys {
		path := "groups[" + topic + "]"
		n, ok := v.topicName(path, topic)
		if ok {
			v.known(path, n)
			if n.NonPersistent {
				v.fault(path, "groups of a non-persistent topic live as long as their consumers")
			}
		}
		seen := map[string]bool{}
		for i, g := range v.c.Groups.Values[topic] {
			at := fmt.Sprintf("%s[%d]", path, i)
			if g.Name == "" || seen[g.Name] {
				v.fault(at, "%q: empty or duplicate", g.Name)
			}
			seen[g.Name] = true
			v.retry(at, n, &g)
			switch g.Dispatch {
			case "", dispatchAny, dispatchKey:
			default:
				v.fault(at+".dispatch", "%q: want any or key", g.Dispatch)
			}
		}
	}
}

func (v *validator) retry(path string, topic core.TopicName, g *GroupConfig) {
	if g.MaxAttempts < 0 {
		v.fault(path+".max_attempts", "%d: want 0 (without end) or more", g.MaxAttempts)
	}
	if g.DeadLetter == "" {
		return
	}
	n, ok := v.topicName(path+".dead_letter", g.DeadLetter)
	switch {
	case ok && g.MaxAttempts == 0:
		v.fault(path+".dead_letter", "nothing becomes a dead letter without max_attempts")
	case ok && n == topic:
		v.fault(path+".dead_letter", "dead letters would come back to the topic")
	case ok && n.NonPersistent:
		v.fault(path+".dead_letter", "dead letters in a non-persistent topic would be lost")
	}
}

// retryOf is what the engine has to know of a group's retries.
func (c *Config) retryOf(g *GroupConfig) engine.Retry {
	r := engine.Retry{MaxAttempts: g.MaxAttempts}
	for _, d := range g.Backoff {
		r.Backoff = append(r.Backoff, time.Duration(d))
	}
	if g.DeadLetter != "" {
		r.DeadLetter = c.topicName(g.DeadLetter)
	}
	return r
}

// byKey are the groups whose MQTT members get whole keys.
func (c *Config) byKey() map[mqtt.GroupName]bool {
	set := map[mqtt.GroupName]bool{}
	for _, topic := range c.Groups.Keys {
		for _, g := range c.Groups.Values[topic] {
			if g.Dispatch == dispatchKey {
				set[mqtt.GroupName{Topic: c.topicName(topic), Group: g.Name}] = true
			}
		}
	}
	return set
}

// declareRetries tells the groups of a topic how often they try.
func (c *Config) declareRetries(t *engine.Topic, gs []GroupConfig) error {
	for i := range gs {
		g, err := t.Group(gs[i].Name)
		if err != nil {
			return err
		}
		if err := g.SetRetry(c.retryOf(&gs[i])); err != nil {
			return err
		}
	}
	return nil
}

func groupNames(gs []GroupConfig) (ns []string) {
	for i := range gs {
		ns = append(ns, gs[i].Name)
	}
	return ns
}
