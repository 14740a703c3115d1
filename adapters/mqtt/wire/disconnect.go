package wire

// Disconnect is the last packet of a connection, and with type AUTH a step of enhanced authentication: they
// share their form. Version 3 has DISCONNECT from the client only, without a body.
// Spec: MQTT5 3.14, 3.15; MQTT3 3.14
type Disconnect struct {
	Reason     Reason
	Properties Properties
}

// Parse reads the body of a packet of type t, DISCONNECT or AUTH.
func (d *Disconnect) Parse(t Type, body []byte, v Version, l *Limits) error {
	r := reader{b: body}
	d.Reason = Success
	d.Properties.Reset()
	if v == V5 && len(r.b) > 0 {
		d.Reason = Reason(r.u8())
		if !d.Reason.Legal(t) {
			r.fail(protocol("reason does not belong in this packet"))
		}
		if len(r.b) > 0 {
			d.Properties.parse(&r, v, t, l)
		}
	}
	return r.end()
}

// Append encodes the packet of type t in its shortest form.
func (d *Disconnect) Append(dst []byte, t Type, v Version) []byte {
	switch {
	case v < V5 || d.Reason == Success && d.Properties.set == 0:
		return appendHeader(dst, t, 0, 0)
	case d.Properties.set == 0:
		return append(appendHeader(dst, t, 0, 1), byte(d.Reason))
	}
	dst = appendHeader(dst, t, 0, 1+d.Properties.sizeWithLength(v))
	return d.Properties.append(append(dst, byte(d.Reason)), v)
}
