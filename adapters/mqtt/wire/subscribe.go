package wire

import "encoding/binary"

// Subscribe asks for filters.
// Spec: MQTT5 3.8; MQTT3 3.8
type Subscribe struct {
	ID         uint16
	Filters    []Filter
	Properties Properties
}

// Filter is one filter with its options. Whether it is well formed as a filter is answered in the SUBACK.
type Filter struct {
	Topic             []byte
	QoS               byte
	NoLocal           bool
	RetainAsPublished bool
	RetainHandling    byte
}

// Parse reads the body.
func (s *Subscribe) Parse(body []byte, v Version, l *Limits) error {
	r := reader{b: body}
	s.ID = r.id()
	s.Properties.parse(&r, v, SUBSCRIBE, l)
	s.Filters = s.Filters[:0]
	for len(r.b) > 0 && r.err == nil {
		f := Filter{Topic: r.text()}
		f.options(&r, v)
		if s.Filters = append(s.Filters, f); l.Filters > 0 && len(s.Filters) > l.Filters {
			r.fail(&Error{QuotaExceeded, "too many filters in one packet"})
		}
	}
	// Spec: MQTT5 3.8.3 [MQTT-3.8.3-2]
	if r.err == nil && len(s.Filters) == 0 {
		r.fail(protocol("SUBSCRIBE without a filter"))
	}
	return r.end()
}

// Spec: MQTT5 3.8.3.1 [MQTT-3.8.3-5]; MQTT3 3.8.3 [MQTT-3.8.3-4]
func (f *Filter) options(r *reader, v Version) {
	o := r.u8()
	f.QoS = o & 3
	reserved := o &^ 3
	if v == V5 {
		f.NoLocal, f.RetainAsPublished, f.RetainHandling = o&4 != 0, o&8 != 0, o>>4&3
		reserved = o >> 6
	}
	switch {
	case f.QoS == 3 || reserved != 0:
		r.fail(malformed("reserved subscription options"))
	case f.RetainHandling == 3:
		r.fail(protocol("retain handling 3"))
	}
}

// Append encodes the packet.
func (s *Subscribe) Append(dst []byte, v Version) []byte {
	length := 2 + s.Properties.sizeWithLength(v)
	for i := range s.Filters {
		length += 3 + len(s.Filters[i].Topic)
	}
	dst = appendHeader(dst, SUBSCRIBE, 2, length)
	dst = s.Properties.append(binary.BigEndian.AppendUint16(dst, s.ID), v)
	for i := range s.Filters {
		f := &s.Filters[i]
		o := f.QoS | f.RetainHandling<<4
		if f.NoLocal {
			o |= 4
		}
		if f.RetainAsPublished {
			o |= 8
		}
		dst = append(appendBytes(dst, f.Topic), o)
	}
	return dst
}
