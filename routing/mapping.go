package routing

import "isthmus/core"

// Direction says which ways a mapping is read.
type Direction string

// The direction words. Without one a mapping is read the way it is written, and backwards where that is unambiguous.
const (
	Auto Direction = ""
	Up   Direction = "up"   // only from MQTT to the topic
	Down Direction = "down" // only from the topic to MQTT
	Both Direction = "both" // backwards too, or it is an error
)

// End is one side of a mapping: an MQTT pattern or template, or the name of a topic.
type End struct {
	MQTT, Topic string
	QoS         *byte // of what is delivered to MQTT; nil: Options.DefaultQoS
}

// Mapping is one rule as a user writes it.
type Mapping struct {
	ID         string
	Direction  Direction
	From, To   End
	Key, Tag   string          // templates; an empty Key means no key
	Properties []core.Property // values are templates; order is kept
}

// Unmatched says what happens to a publish that no mapping takes. The zero value is the catch-all
// persistent://{tenant}/{namespace}/mqtt with the MQTT topic as key.
type Unmatched struct {
	Reject     bool
	Topic, Key string
}

// Options complete the mappings.
type Options struct {
	Tenant, Namespace string // of short topic names
	Unmatched         Unmatched
	DefaultQoS        byte
}

// UnmatchedID is the Target.Mapping of a publish that went to the catch-all.
const UnmatchedID = "unmatched"

// Fault is one thing wrong in the mappings, at a path such as mappings[1].key.
type Fault struct{ Path, Message string }

func (f *Fault) Error() string { return f.Path + ": " + f.Message }

// Unwrap makes every fault an invalid argument.
func (f *Fault) Unwrap() error { return core.ErrInvalid }

// Warning is something that works but may surprise, at the topic it concerns.
type Warning struct {
	Path    string
	Topic   core.TopicName
	Message string
}
