package wire

import "encoding/binary"

// Suback answers SUBSCRIBE with a code for each filter, and UNSUBSCRIBE from version 5 on.
// Spec: MQTT5 3.9, 3.11; MQTT3 3.9, 3.11
type Suback struct {
	ID         uint16
	Codes      []Reason
	Properties Properties
}

// Parse reads the body of a packet of type t, SUBACK or UNSUBACK.
func (s *Suback) Parse(t Type, body []byte, v Version, l *Limits) error {
	r := reader{b: body}
	s.ID = r.id()
	s.Properties.parse(&r, v, t, l)
	s.Codes = s.Codes[:0]
	for len(r.b) > 0 && (v == V5 || t == SUBACK) {
		code := Reason(r.u8())
		if !code.Legal(t) || v < V5 && code > GrantedQoS2 && code != UnspecifiedError {
			r.fail(malformed("unknown code"))
		}
		s.Codes = append(s.Codes, code)
	}
	return r.end()
}

// Append encodes the packet of type t.
func (s *Suback) Append(dst []byte, t Type, v Version) []byte {
	codes := s.Codes
	if v < V5 && t == UNSUBACK {
		codes = nil
	}
	dst = appendHeader(dst, t, 0, 2+s.Properties.sizeWithLength(v)+len(codes))
	dst = s.Properties.append(binary.BigEndian.AppendUint16(dst, s.ID), v)
	for _, c := range codes {
		dst = append(dst, byte(c))
	}
	return dst
}
