package wire

// Connack answers a CONNECT. In version 3 Reason holds the return code of that version.
// Spec: MQTT5 3.2; MQTT3 3.2
type Connack struct {
	SessionPresent bool
	Reason         Reason
	Properties     Properties
}

// Return codes of version 3.
// Spec: MQTT3 3.2.2.3
const (
	V3Accepted           Reason = 0
	V3UnsupportedVersion Reason = 1
	V3IDRejected         Reason = 2
	V3Unavailable        Reason = 3
	V3BadCredentials     Reason = 4
	V3NotAuthorized      Reason = 5
)

// Parse reads the body.
// Spec: MQTT5 3.2.2.1 [MQTT-3.2.2-1]
func (c *Connack) Parse(body []byte, v Version, l *Limits) error {
	r := reader{b: body}
	flags := r.u8()
	if flags > 1 {
		r.fail(malformed("reserved connect acknowledge flags"))
	}
	c.SessionPresent = flags == 1
	c.Reason = Reason(r.u8())
	if v == V5 && !c.Reason.Legal(CONNACK) || v < V5 && c.Reason > V3NotAuthorized {
		r.fail(protocol("unknown connect reason"))
	}
	c.Properties.parse(&r, v, CONNACK, l)
	return r.end()
}

// Append encodes the packet.
func (c *Connack) Append(dst []byte, v Version) []byte {
	dst = appendHeader(dst, CONNACK, 0, 2+c.Properties.sizeWithLength(v))
	var flags byte
	if c.SessionPresent && v > V31 {
		flags = 1
	}
	return c.Properties.append(append(dst, flags, byte(c.Reason)), v)
}
