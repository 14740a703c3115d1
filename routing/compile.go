package routing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"isthmus/core"
)

// Table is a compiled set of mappings. It is immutable: any goroutine may use it.
type Table struct {
	root     node
	catchAll *upRule // nil: unmatched publishes are refused
	topics   []core.TopicName
	byTopic  map[core.TopicName]*topicRules
	warnings []Warning
	levels   int // of the longest pattern: a tail longer than this meets no new pattern
}

// topicRules is what concerns one core topic.
type topicRules struct {
	up       []*upRule   // what is stored there
	down     []*downRule // written downwards: all of them apply
	backward []*backRule // up mappings read backwards: one of them, or none
}

// Topics lists every topic that a mapping writes to or reads from, and the catch-all.
func (t *Table) Topics() []core.TopicName { return slices.Clone(t.topics) }

// Warnings lists what may surprise.
func (t *Table) Warnings() []Warning { return slices.Clone(t.warnings) }

// compiler gathers every fault before it gives up.
type compiler struct {
	opt      Options
	table    *Table
	ups      []*upRule // written upwards
	implicit []*upRule // down mappings that can be read upwards
	faults   []error
}

// Compile checks the mappings and builds their table. The error joins a *Fault for each thing that is wrong.
func Compile(ms []Mapping, o Options) (*Table, error) {
	c := &compiler{opt: o, table: &Table{byTopic: map[core.TopicName]*topicRules{}}}
	ids := map[string]int{}
	for i := range ms {
		path := fmt.Sprintf("mappings[%d]", i)
		if first, dup := ids[ms[i].ID]; ms[i].ID == "" {
			c.fault(path+".id", "missing")
		} else if dup {
			c.fault(path+".id", "duplicate: mappings[%d] is %q too", first, ms[i].ID)
		} else {
			ids[ms[i].ID] = i
		}
		c.mapping(path, &ms[i])
	}
	c.unmatched(o.Unmatched)
	c.reachable()
	c.readUp()
	c.readDown()
	if len(c.faults) > 0 {
		return nil, errors.Join(c.faults...)
	}
	return c.table, nil
}

func (c *compiler) fault(path, format string, args ...any) {
	c.faults = append(c.faults, &Fault{path, fmt.Sprintf(format, args...)})
}

func (c *compiler) mapping(path string, m *Mapping) {
	up := m.From.MQTT != "" && m.From.Topic == "" && m.To.Topic != "" && m.To.MQTT == ""
	down := m.From.Topic != "" && m.From.MQTT == "" && m.To.MQTT != "" && m.To.Topic == ""
	switch {
	case !up && !down:
		c.fault(path, "want from: {mqtt: …} and to: {topic: …}, or from: {topic: …} and to: {mqtt: …}")
		return
	case !slices.Contains([]Direction{Auto, Up, Down, Both}, m.Direction):
		c.fault(path+".direction", "%q is none of up, down, both", m.Direction)
	case up && m.Direction == Down, down && m.Direction == Up:
		c.fault(path+".direction", "%s, but the mapping is written the other way", m.Direction)
	}
	for _, end := range [...]struct {
		name string
		End
	}{{".from", m.From}, {".to", m.To}} {
		if end.QoS != nil && (end.MQTT == "" || *end.QoS > 2) {
			c.fault(path+end.name+".qos", "0, 1 or 2, beside mqtt")
		}
	}
	if up {
		c.mapUp(path, m)
	} else {
		c.mapDown(path, m)
	}
}

func (c *compiler) topic(path, name string) core.TopicName {
	if strings.ContainsAny(name, "{}") {
		c.fault(path, "the name of a topic takes no templates")
		return core.TopicName{}
	}
	n, err := core.ParseTopicName(name, c.opt.Tenant, c.opt.Namespace)
	if err != nil {
		c.fault(path, "%s", strings.TrimSuffix(err.Error(), ": "+core.ErrInvalid.Error()))
	}
	return n
}

func (c *compiler) template(path, s string, sc scope) template {
	t, err := parseTemplate(s, sc)
	if err != nil {
		c.fault(path, "%v", err)
	}
	return t
}

func (c *compiler) mapUp(path string, m *Mapping) {
	p, err := parsePattern(m.From.MQTT)
	if err != nil {
		c.fault(path+".from.mqtt", "%v", err)
		return
	}
	sc := scope{captures: p, mqtt: true}
	r := &upRule{id: m.ID, path: path, direction: m.Direction, pattern: p, qos: c.qos(m.From), topic: c.topic(path+".to.topic", m.To.Topic)}
	r.key = c.template(path+".key", m.Key, sc)
	sc.key = len(r.key) > 0
	r.tag = c.template(path+".tag", m.Tag, sc)
	for _, prop := range m.Properties {
		at := fmt.Sprintf("%s.properties[%s]", path, prop.Key)
		if prop.Key == "" || hasControl(prop.Key) {
			c.fault(at, "the name is empty or has control characters")
		}
		r.properties = append(r.properties, propertyTemplate{prop.Key, c.template(at, prop.Value, sc)})
	}
	r.volatile = r.isVolatile()
	if other := c.table.root.insert(r); other != nil {
		c.fault(path+".from.mqtt", "duplicate: %s takes the same topics", other.path)
		return
	}
	c.ups = append(c.ups, r)
	c.rules(r.topic).up = append(c.rules(r.topic).up, r)
	if !r.key.followsTopic() {
		c.table.warnings = append(c.table.warnings, Warning{path + ".key", r.topic,
			"no function of the MQTT topic: messages of one MQTT topic may be spread over partitions and lose their order"})
	}
}

func (c *compiler) qos(e End) byte {
	if e.QoS != nil {
		return *e.QoS
	}
	return c.opt.DefaultQoS
}

// rules is the entry of a topic, in order of first mention.
func (c *compiler) rules(n core.TopicName) *topicRules {
	t := c.table.byTopic[n]
	if t == nil {
		t = &topicRules{}
		c.table.byTopic[n] = t
		c.table.topics = append(c.table.topics, n)
	}
	return t
}

func (c *compiler) mapDown(path string, m *Mapping) {
	for _, f := range [...]struct {
		name  string
		given bool
	}{{"key", m.Key != ""}, {"tag", m.Tag != ""}, {"properties", len(m.Properties) > 0}} {
		if f.given {
			c.fault(path+"."+f.name, "belongs to a mapping from mqtt to a topic")
		}
	}
	d := &downRule{id: m.ID, path: path, qos: c.qos(m.To)}
	topic := c.topic(path+".from.topic", m.From.Topic)
	address, err := parseTemplate(m.To.MQTT, scope{key: true})
	if err != nil {
		c.fault(path+".to.mqtt", "%v", err)
		return
	}
	shape, back, err := address.levels()
	if err != nil {
		c.fault(path+".to.mqtt", "%v", err)
		return
	}
	d.address, d.shape = address, shape
	rules := c.rules(topic)
	for _, other := range rules.down {
		if slices.EqualFunc(other.address, d.address, part.equal) {
			c.fault(path+".to.mqtt", "duplicate: %s delivers to the same MQTT topics", other.path)
			return
		}
	}
	rules.down = append(rules.down, d)
	if m.Direction == Down {
		return
	}
	if !back {
		if m.Direction == Both {
			c.fault(path+".direction", "%q cannot be read backwards: a level is more than one plain name", m.To.MQTT)
		}
		return
	}
	r := d.upwards(topic)
	r.direction = m.Direction
	c.implicit = append(c.implicit, r)
}

func (c *compiler) unmatched(u Unmatched) {
	if u.Reject {
		if u.Topic != "" || u.Key != "" {
			c.fault("unmatched", "reject, or a topic, not both")
		}
		return
	}
	r := &upRule{id: UnmatchedID, path: "unmatched", qos: c.opt.DefaultQoS, topic: core.TopicName{Tenant: c.opt.Tenant, Namespace: c.opt.Namespace, Name: "mqtt"}}
	if u.Topic != "" {
		r.topic = c.topic("unmatched.topic", u.Topic)
	}
	if u.Key == "" {
		u.Key = "{mqtt.topic}"
	}
	r.key = c.template("unmatched.key", u.Key, scope{mqtt: true})
	r.volatile = r.isVolatile()
	c.table.catchAll = r
	c.rules(r.topic)
}
