package wire

import "encoding/binary"

// reader takes fields off the front of b. After the first error every field is zero, so that a parser reads
// like the table of the standard and looks at err once.
type reader struct {
	b   []byte
	err *Error
}

func (r *reader) fail(err *Error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

var errTruncated = malformed("packet ends within a field")

func (r *reader) u8() byte {
	if len(r.b) < 1 {
		r.fail(errTruncated)
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) u16() uint16 {
	if len(r.b) < 2 {
		r.fail(errTruncated)
		return 0
	}
	v := binary.BigEndian.Uint16(r.b)
	r.b = r.b[2:]
	return v
}

func (r *reader) u32() uint32 {
	if len(r.b) < 4 {
		r.fail(errTruncated)
		return 0
	}
	v := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

// id reads a packet identifier.
// Spec: MQTT5 2.2.1 [MQTT-2.2.1-3]
func (r *reader) id() uint16 {
	v := r.u16()
	if v == 0 {
		r.fail(protocol("packet identifier 0"))
	}
	return v
}

// bytes reads a length and as many bytes. An empty field is empty, not nil.
func (r *reader) bytes() []byte {
	n := int(r.u16())
	if n > len(r.b) {
		r.fail(errTruncated)
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	if r.err != nil {
		return nil
	}
	return v
}

// text reads a UTF-8 string.
// Spec: MQTT5 1.5.4 [MQTT-1.5.4-1] [MQTT-1.5.4-2]
func (r *reader) text() []byte {
	v := r.bytes()
	if !validText(v) {
		r.fail(malformed("text is not UTF-8 or contains NUL"))
		return nil
	}
	return v
}

// varint reads a variable byte integer: at most four bytes, in its shortest form.
// Spec: MQTT5 1.5.5 [MQTT-1.5.5-1]
func (r *reader) varint() uint32 {
	v, n, err := uvarint(r.b)
	if err != nil || n == 0 {
		r.fail(malformed("variable byte integer"))
		return 0
	}
	r.b = r.b[n:]
	return v
}

// uvarint returns n = 0 when b ends too early.
func uvarint(b []byte) (v uint32, n int, err *Error) {
	for i := range min(4, len(b)) {
		c := b[i]
		v |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			if c == 0 && i > 0 {
				return 0, 0, malformed("variable byte integer is longer than it needs to be")
			}
			return v, i + 1, nil
		}
	}
	if len(b) >= 4 {
		return 0, 0, malformed("variable byte integer of more than four bytes")
	}
	return 0, 0, nil
}

// end insists that the packet has nothing more.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail(malformed("bytes after the last field"))
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

// MaxVarint is the largest variable byte integer.
const MaxVarint = 268_435_455

func appendVarint(dst []byte, v int) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

func varintLen(v int) int {
	switch {
	case v < 1<<7:
		return 1
	case v < 1<<14:
		return 2
	case v < 1<<21:
		return 3
	}
	return 4
}

func appendBytes[T ~string | ~[]byte](dst []byte, b T) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(b)))
	return append(dst, b...)
}
