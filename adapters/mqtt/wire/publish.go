package wire

import "encoding/binary"

// Publish carries one application message. Everything is a view into the buffer that was parsed.
// Spec: MQTT5 3.3; MQTT3 3.3
type Publish struct {
	Dup, Retain bool
	QoS         byte
	ID          uint16 // QoS 1 and 2
	Topic       []byte // empty: the topic alias stands for it
	Payload     []byte
	Properties  Properties
}

// Parse reads the body; flags are those of the fixed header.
func (p *Publish) Parse(flags byte, body []byte, v Version, l *Limits) error {
	p.Dup, p.QoS, p.Retain = flags&8 != 0, flags>>1&3, flags&1 != 0
	// Spec: MQTT5 3.3.1.1 [MQTT-3.3.1-2]; MQTT5 3.3.1.2 [MQTT-3.3.1-4]
	if p.QoS == 3 || p.QoS == 0 && p.Dup {
		return malformed("QoS 3, or DUP at QoS 0")
	}
	r := reader{b: body}
	p.Topic = r.bytes()
	p.ID = 0
	if p.QoS > 0 {
		p.ID = r.id()
	}
	p.Properties.parse(&r, v, PUBLISH, l)
	if r.err != nil {
		return r.err
	}
	p.Payload = r.b
	if len(p.Topic) == 0 && p.Properties.Has(TopicAlias) {
		return nil
	}
	if err := checkTopic(p.Topic, l); err != nil {
		return err
	}
	return nil
}

// Append encodes the packet.
func (p *Publish) Append(dst []byte, v Version) []byte {
	length := 2 + len(p.Topic) + p.Properties.sizeWithLength(v) + len(p.Payload)
	if p.QoS > 0 {
		length += 2
	}
	dst = appendHeader(dst, PUBLISH, publishFlags(p.QoS, p.Dup, p.Retain), length)
	dst = appendBytes(dst, p.Topic)
	if p.QoS > 0 {
		dst = binary.BigEndian.AppendUint16(dst, p.ID)
	}
	return append(p.Properties.append(dst, v), p.Payload...)
}

func publishFlags(qos byte, dup, retain bool) byte {
	flags := qos << 1
	if dup {
		flags |= 8
	}
	if retain {
		flags |= 1
	}
	return flags
}
