package wire

import "encoding/binary"

// Unsubscribe gives filters up.
// Spec: MQTT5 3.10; MQTT3 3.10
type Unsubscribe struct {
	ID         uint16
	Filters    [][]byte
	Properties Properties
}

// Parse reads the body.
func (u *Unsubscribe) Parse(body []byte, v Version, l *Limits) error {
	r := reader{b: body}
	u.ID = r.id()
	u.Properties.parse(&r, v, UNSUBSCRIBE, l)
	u.Filters = u.Filters[:0]
	for len(r.b) > 0 && r.err == nil {
		if u.Filters = append(u.Filters, r.text()); l.Filters > 0 && len(u.Filters) > l.Filters {
			r.fail(&Error{QuotaExceeded, "too many filters in one packet"})
		}
	}
	// Spec: MQTT5 3.10.3 [MQTT-3.10.3-2]
	if r.err == nil && len(u.Filters) == 0 {
		r.fail(protocol("UNSUBSCRIBE without a filter"))
	}
	return r.end()
}

// Append encodes the packet.
func (u *Unsubscribe) Append(dst []byte, v Version) []byte {
	length := 2 + u.Properties.sizeWithLength(v)
	for _, f := range u.Filters {
		length += 2 + len(f)
	}
	dst = appendHeader(dst, UNSUBSCRIBE, 2, length)
	dst = u.Properties.append(binary.BigEndian.AppendUint16(dst, u.ID), v)
	for _, f := range u.Filters {
		dst = appendBytes(dst, f)
	}
	return dst
}
