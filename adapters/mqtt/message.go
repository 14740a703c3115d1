package mqtt

import (
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
	"isthmus/routing"
)

// scratch is what handling one PUBLISH needs and nobody keeps; borrowed, so that idle clients hold none.
type scratch struct {
	packet  wire.Publish
	props   []core.Property
	encoded []byte // base64 of correlation data
	source  routing.Source
	message core.Message
	data    []byte
	entry   core.Entry
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func getScratch() *scratch { return scratches.Get().(*scratch) }

// maxScratch keeps one large message from staying in the pool.
const maxScratch = 64 << 10

func putScratch(sc *scratch) {
	if cap(sc.data) > maxScratch {
		sc.data = nil
	}
	scratches.Put(sc)
}

// properties translates the properties of a publish: user properties in order, and those that have no neutral
// place under their reserved names. The strings are views into the packet.
// Spec: MQTT5 3.3.2.3 [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-20]
func (sc *scratch) properties(p *wire.Publish) {
	sc.props = sc.props[:0]
	add := func(name string, value []byte) {
		sc.props = append(sc.props, core.Property{Key: name, Value: text(value)})
	}
	pp := &p.Properties
	if pp.Has(wire.PayloadFormat) {
		sc.props = append(sc.props, core.Property{Key: core.PropPayloadFormat, Value: digits[pp.Num(wire.PayloadFormat, 0)]})
	}
	if pp.Has(wire.ContentType) {
		add(core.PropContentType, pp.Text(wire.ContentType))
	}
	if pp.Has(wire.ResponseTopic) {
		add(core.PropResponseTopic, pp.Text(wire.ResponseTopic))
	}
	if pp.Has(wire.CorrelationData) {
		sc.encoded = base64.StdEncoding.AppendEncode(sc.encoded[:0], pp.Text(wire.CorrelationData))
		add(core.PropCorrelationData, sc.encoded)
	}
	for i := range pp.User {
		add(text(pp.User[i].Key), pp.User[i].Value)
	}
}

var digits = [2]string{"0", "1"}

// forwarder turns neutral messages into what subscribers are sent, reusing its memory. One goroutine uses it.
type forwarder struct {
	props wire.Properties
	list  []byte
}

// message fills m for a message that appears under a topic.
// Spec: MQTT5 3.3.2.3.3 [MQTT-3.3.2-6]: what remains of its life is set by outgoing.refresh
func (f *forwarder) message(m *wire.Message, topic string, src *core.Message) {
	f.props.Reset()
	for i := range src.Properties {
		f.property(&src.Properties[i])
	}
	f.list = f.props.AppendList(f.list[:0])
	*m = wire.Message{Topic: topic, Props: f.list, Payload: src.Body}
}

func (f *forwarder) property(p *core.Property) {
	switch p.Key {
	case core.PropPayloadFormat:
		if v, err := strconv.ParseUint(p.Value, 10, 1); err == nil {
			f.props.SetNum(wire.PayloadFormat, uint32(v))
		}
	case core.PropContentType:
		f.set(wire.ContentType, p.Value)
	case core.PropResponseTopic:
		if !strings.ContainsAny(p.Value, "+#") {
			f.set(wire.ResponseTopic, p.Value)
		}
	case core.PropCorrelationData:
		if b, err := base64.StdEncoding.DecodeString(p.Value); err == nil && len(b) <= 65535 {
			f.props.SetText(wire.CorrelationData, b)
		}
	default:
		if sendable(p.Key) && sendable(p.Value) {
			f.props.User = append(f.props.User, wire.Pair{Key: view(p.Key), Value: view(p.Value)})
		}
	}
}

func (f *forwarder) set(id wire.PropertyID, v string) {
	if sendable(v) {
		f.props.SetText(id, view(v))
	}
}

// sendable: producers of other protocols may use bytes that no MQTT text can hold; such a property stays behind.
func sendable(s string) bool {
	if len(s) > 65535 || !utf8.ValidString(s) {
		return false
	}
	for i := range len(s) {
		if s[i] == 0 {
			return false
		}
	}
	return true
}
