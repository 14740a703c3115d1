package wire

import "encoding/binary"

// Ack is PUBACK, PUBREC, PUBREL or PUBCOMP.
// Spec: MQTT5 3.4 to 3.7; MQTT3 3.4 to 3.7
type Ack struct {
	ID         uint16
	Reason     Reason
	Properties Properties
}

// Parse reads the body of a packet of type t.
func (a *Ack) Parse(t Type, body []byte, v Version, l *Limits) error {
	r := reader{b: body}
	a.Reason = Success
	a.Properties.Reset()
	a.ID = r.id()
	if v < V5 {
		return r.end()
	}
	// Spec: MQTT5 3.4.2.1: reason and properties may be left out from the end
	if len(r.b) > 0 {
		a.Reason = Reason(r.u8())
		if !a.Reason.Legal(t) {
			r.fail(protocol("reason does not belong in this acknowledgement"))
		}
	}
	if len(r.b) > 0 {
		a.Properties.parse(&r, v, t, l)
	}
	return r.end()
}

// Append encodes the packet with its properties.
func (a *Ack) Append(dst []byte, t Type, v Version) []byte {
	if v < V5 || a.Properties.set == 0 {
		return AppendAck(dst, t, a.ID, a.Reason, v)
	}
	dst = appendHeader(dst, t, ackFlags(t), 3+a.Properties.sizeWithLength(v))
	dst = append(binary.BigEndian.AppendUint16(dst, a.ID), byte(a.Reason))
	return a.Properties.append(dst, v)
}

// AppendAck encodes an ack without properties, in its shortest form.
func AppendAck(dst []byte, t Type, id uint16, reason Reason, v Version) []byte {
	first := byte(t)<<4 | ackFlags(t)
	if v < V5 || reason == Success {
		return append(dst, first, 2, byte(id>>8), byte(id))
	}
	return append(dst, first, 3, byte(id>>8), byte(id), byte(reason))
}

func ackFlags(t Type) byte {
	if t == PUBREL {
		return 2
	}
	return 0
}
