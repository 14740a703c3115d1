package wire

import "encoding/binary"

// Message is what all receivers of one application message share: encoded once, copied into each PUBLISH.
type Message struct {
	Topic   string
	Props   []byte // encoded property list, without its length, message expiry and subscription identifiers
	Expiry  uint32 // seconds left
	Expires bool
	Payload []byte
}

// Forward is one receiver's PUBLISH of a Message.
type Forward struct {
	Dup, Retain     bool
	QoS             byte
	ID              uint16
	SubscriptionIDs []uint32
}

// ForwardSize is the size of the whole packet.
func ForwardSize(m *Message, f *Forward, v Version) int {
	return Size(forwardLength(m, f, v))
}

func forwardLength(m *Message, f *Forward, v Version) int {
	n := 2 + len(m.Topic) + len(m.Payload)
	if f.QoS > 0 {
		n += 2
	}
	if v == V5 {
		props := forwardProps(m, f)
		n += varintLen(props) + props
	}
	return n
}

func forwardProps(m *Message, f *Forward) int {
	n := len(m.Props)
	if m.Expires {
		n += 5
	}
	for _, id := range f.SubscriptionIDs {
		n += 1 + varintLen(int(id))
	}
	return n
}

// AppendForward encodes the PUBLISH of m that f describes.
func AppendForward(dst []byte, m *Message, f *Forward, v Version) []byte {
	dst = appendHeader(dst, PUBLISH, publishFlags(f.QoS, f.Dup, f.Retain), forwardLength(m, f, v))
	dst = appendBytes(dst, m.Topic)
	if f.QoS > 0 {
		dst = binary.BigEndian.AppendUint16(dst, f.ID)
	}
	if v == V5 {
		dst = appendVarint(dst, forwardProps(m, f))
		if m.Expires {
			dst = binary.BigEndian.AppendUint32(append(dst, byte(MessageExpiry)), m.Expiry)
		}
		for _, id := range f.SubscriptionIDs {
			dst = appendVarint(append(dst, byte(SubscriptionID)), int(id))
		}
		dst = append(dst, m.Props...)
	}
	return append(dst, m.Payload...)
}
