package wire

// Header is the fixed header of a packet.
type Header struct {
	Type  Type
	Flags byte // low half of the first byte
	Size  int  // of the whole packet; 0: not known yet
}

// Split finds the first packet in b. n is its size, or 0 while it is not all there; then h holds what is known
// so far, so that a wrong first packet is refused before its length matters. body is a view.
// Spec: MQTT5 2.1; MQTT3 2.2
func Split(b []byte, v Version, max int) (h Header, body []byte, n int, err error) {
	if len(b) == 0 {
		return h, nil, 0, nil
	}
	h.Type, h.Flags = Type(b[0]>>4), b[0]&15
	if !h.flagsLegal(v) {
		return h, nil, 0, malformed("reserved packet type or flags")
	}
	length, used, bad := uvarint(b[1:])
	if bad != nil {
		return h, nil, 0, bad
	}
	if used == 0 {
		return h, nil, 0, nil
	}
	h.Size = 1 + used + int(length)
	if max > 0 && h.Size > max {
		return h, nil, 0, &Error{PacketTooLarge, "packet exceeds the maximum packet size"}
	}
	if h.Size > len(b) {
		return h, nil, 0, nil
	}
	return h, b[1+used : h.Size : h.Size], h.Size, nil
}

// Spec: MQTT5 2.1.3 [MQTT-2.1.3-1]
func (h Header) flagsLegal(v Version) bool {
	switch h.Type {
	case PUBLISH:
		return true
	case PUBREL, SUBSCRIBE, UNSUBSCRIBE:
		// 3.1 lets them carry DUP on a retransmission.
		return h.Flags == 2 || v == V31 && h.Flags == 10
	case 0:
		return false
	}
	return h.Flags == 0
}

// appendHeader begins a packet whose remaining length is known.
func appendHeader(dst []byte, t Type, flags byte, length int) []byte {
	return appendVarint(append(dst, byte(t)<<4|flags), length)
}

// Size is the size of a packet with this remaining length.
func Size(length int) int { return 1 + varintLen(length) + length }
