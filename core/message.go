package core

import (
	"encoding/binary"
	"fmt"
)

// Property is one name and value. Properties are an ordered list: MQTT user properties may repeat.
type Property struct{ Key, Value string }

// Message is one application message in neutral form: what crosses from one protocol to another.
// Slices and strings of a decoded message are views or copies that nobody writes to.
type Message struct {
	Key         []byte
	HasKey      bool
	OrderingKey []byte
	Tag         string
	Properties  []Property // the producer's own, in order, may repeat
	Routed      []Property // added by a mapping: for consumers of other protocols, never sent back as MQTT user properties
	Address     string     // the MQTT topic it was published to; "" when it came by another protocol
	Body        []byte
	NullBody    bool
	PublishTime int64 // unix ms
	EventTime   int64 // unix ms; 0 = none
	Producer    string
	Sequence    int64
}

// Property returns the value of the first property of that name, the producer's own before those of a mapping.
func (m *Message) Property(name string) (string, bool) {
	for _, list := range [2][]Property{m.Properties, m.Routed} {
		for i := range list {
			if list[i].Key == name {
				return list[i].Value, true
			}
		}
	}
	return "", false
}

// MQTT 5 properties that have no neutral place travel under these names.
const (
	PropContentType     = "mqtt.content-type"
	PropResponseTopic   = "mqtt.response-topic"
	PropCorrelationData = "mqtt.correlation-data" // base64
	PropPayloadFormat   = "mqtt.payload-format"
)

// AppendNeutral appends the neutral encoding of m: everything but what the Entry itself carries (keys, publish time,
// producer, sequence). Layout: version 1, event time, address, tag, properties, routed properties, body to the end;
// lengths and counts are uvarints.
func (m *Message) AppendNeutral(dst []byte) []byte {
	dst = append(dst, neutralVersion)
	dst = binary.AppendVarint(dst, m.EventTime)
	dst = appendString(dst, m.Address)
	dst = appendString(dst, m.Tag)
	dst = appendProperties(dst, m.Properties)
	dst = appendProperties(dst, m.Routed)
	return append(dst, m.Body...)
}

const neutralVersion = 1

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendProperties(dst []byte, ps []Property) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ps)))
	for i := range ps {
		dst = appendString(appendString(dst, ps[i].Key), ps[i].Value)
	}
	return dst
}

// DecodeNeutral appends the message of a FormatNeutral entry to dst. It is the Decoder of that format.
func DecodeNeutral(e *Entry, dst []Message) ([]Message, error) {
	r := reader{b: e.Data}
	if v := r.byte(); v != neutralVersion && r.err == nil {
		return dst, fmt.Errorf("neutral message version %d: %w", v, ErrUnsupported)
	}
	m := Message{
		Key: e.Key, HasKey: e.Flags&FlagHasKey != 0, OrderingKey: e.OrderingKey, NullBody: e.Flags&FlagNullBody != 0,
		PublishTime: e.PublishTime, Producer: string(e.Producer), Sequence: e.SeqLow,
	}
	m.EventTime = r.varint()
	m.Address = string(r.bytes())
	m.Tag = string(r.bytes())
	m.Properties = r.properties()
	m.Routed = r.properties()
	if r.err != nil {
		return dst, fmt.Errorf("neutral message at offset %d: %w", e.Base, r.err)
	}
	m.Body = r.b
	return append(dst, m), nil
}

// NeutralAddress returns the MQTT topic of a FormatNeutral entry without decoding the rest; nil when it has none.
func NeutralAddress(e *Entry) []byte {
	if e.Format != FormatNeutral {
		return nil
	}
	r := reader{b: e.Data}
	if r.byte() != neutralVersion {
		return nil
	}
	r.varint()
	if a := r.bytes(); r.err == nil {
		return a
	}
	return nil
}

// reader takes fields off the front of b; after the first error everything is zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = fmt.Errorf("truncated: %w", ErrInvalid)
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	if len(r.b) > 0 && r.b[0] < 0x80 && int(r.b[0]) < len(r.b) { // nearly all are short
		end := int(r.b[0]) + 1
		v := r.b[1:end:end]
		r.b = r.b[end:]
		return v
	}
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) properties() []Property {
	n := r.uvarint()
	if n > uint64(len(r.b))/2 { // each takes two length bytes at least
		r.fail()
		return nil
	}
	if n == 0 {
		return nil
	}
	ps := make([]Property, 0, n)
	for range n {
		ps = append(ps, Property{string(r.bytes()), string(r.bytes())})
	}
	return ps
}
