package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxFrame is what the Java decoder accepts: longer frames make it drop the connection.
const MaxFrame = 16 << 20

// ErrMalformed is wrapped by every decoding error of this package.
var ErrMalformed = errors.New("malformed rocketmq data")

// The serialize types in the high byte of a frame's mark.
const (
	TypeJSON   = 0
	TypeBinary = 1
)

// Frame is one command as cut from the stream; Header and Body point into the stream's buffer.
type Frame struct {
	Type   byte
	Header []byte
	Body   []byte
}

// Next cuts the first frame off b and says how many bytes it took; 0 means that b does not hold all of it yet. Errors
// come as soon as the offending length is visible.
//
// Spec: RocketMQ NettyDecoder, RemotingCommand.decode@5.x
func Next(b []byte, limit int) (Frame, int, error) {
	if len(b) < 4 {
		return Frame{}, 0, nil
	}
	length := int64(int32(binary.BigEndian.Uint32(b)))
	if length < 4 || length > int64(limit) {
		return Frame{}, 0, fmt.Errorf("%w: frame length %d", ErrMalformed, length)
	}
	if len(b) < 8 {
		return Frame{}, 0, nil
	}
	mark := binary.BigEndian.Uint32(b[4:])
	header := int64(mark & 0xFFFFFF)
	if header > length-4 {
		return Frame{}, 0, fmt.Errorf("%w: header length %d in a frame of %d", ErrMalformed, header, length)
	}
	end := int(4 + length)
	if len(b) < end {
		return Frame{}, 0, nil
	}
	body := 8 + int(header)
	return Frame{Type: byte(mark >> 24), Header: b[8:body:body], Body: b[body:end:end]}, end, nil
}

// Parse decodes the frame's header into h, whose memory it reuses.
func (f *Frame) Parse(h *Header) error {
	switch f.Type {
	case TypeJSON:
		return h.parseJSON(f.Header)
	case TypeBinary:
		return h.parseBinary(f.Header)
	}
	return fmt.Errorf("%w: serialize type %d", ErrMalformed, f.Type)
}
