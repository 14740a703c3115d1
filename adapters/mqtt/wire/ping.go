package wire

// ParsePing checks that PINGREQ and PINGRESP have no body.
// Spec: MQTT5 3.12, 3.13; MQTT3 3.12, 3.13
func ParsePing(body []byte) error {
	r := reader{b: body}
	return r.end()
}

// AppendPing encodes PINGREQ or PINGRESP.
func AppendPing(dst []byte, t Type) []byte { return append(dst, byte(t)<<4, 0) }
