package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Padding is what a frame may hold beyond the maximum message size, for the command and the metadata.
const Padding = 10 << 10

// ErrFrameTooLarge is wrapped when a size field announces more than the limit.
var ErrFrameTooLarge = errors.New("frame too large")

// Frame is one frame, not yet parsed. Its slices are views.
type Frame struct {
	Type    Type
	Command []byte // the command's own bytes
	Payload []byte // what follows the command: SEND and MESSAGE only
}

// Split takes one frame off the front of b. n is 0 while the frame is not complete. limit bounds the announced size, so
// a liar is found out by the first four bytes.
// Spec: Pulsar framing: [totalSize u32][commandSize u32][BaseCommand] and a payload
func Split(b []byte, limit int) (f Frame, n int, err error) {
	if len(b) < 4 {
		return f, 0, nil
	}
	total := binary.BigEndian.Uint32(b)
	if uint64(total) > uint64(limit) {
		return f, 0, fmt.Errorf("%d bytes, at most %d: %w", total, limit, ErrFrameTooLarge)
	}
	if total < 4 {
		return f, 0, fmt.Errorf("frame of %d bytes: %w", total, ErrMalformed)
	}
	if len(b) < 8 {
		return f, 0, nil
	}
	size := binary.BigEndian.Uint32(b[4:])
	if size > total-4 {
		return f, 0, fmt.Errorf("command of %d bytes in a frame of %d: %w", size, total, ErrMalformed)
	}
	n = 4 + int(total)
	if len(b) < n {
		return f, 0, nil
	}
	err = f.base(b[8 : 8+size])
	f.Payload = b[8+size : n : n]
	return f, n, err
}

// base reads BaseCommand: the type and the one message of that number.
func (f *Frame) base(b []byte) error {
	r := reader{b: b}
	sub, hasType := 0, false
	for {
		num, wt, ok := r.next()
		if !ok {
			break
		}
		switch {
		case num == 1:
			f.Type, hasType = Type(r.uint(wt)), true
		case wt == wireBytes && (!hasType || num == int(f.Type)):
			sub, f.Command = num, r.bytes()
		default:
			r.skip(wt)
		}
	}
	if r.err == nil && !hasType {
		r.fail("command without a type")
	}
	if sub != int(f.Type) {
		f.Command = nil
	}
	if r.err != nil {
		return fmt.Errorf("BaseCommand: %w", r.err)
	}
	return nil
}

// Magic numbers of the optional sections before the metadata.
const (
	magicChecksum    = 0x0e01
	magicBrokerEntry = 0x0e02
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is CRC-32C over metadata size, metadata and body.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Payload is what follows a SEND or MESSAGE command.
type Payload struct {
	HasSum   bool
	Sum      uint32 // as the frame says
	Checked  []byte // what the sum is about: metadata size, metadata, body
	Metadata []byte
	Body     []byte
}

// ParsePayload splits the bytes after a SEND or MESSAGE command. It does not compute the checksum.
func ParsePayload(b []byte) (p Payload, err error) {
	if len(b) >= 6 && binary.BigEndian.Uint16(b) == magicBrokerEntry {
		n := binary.BigEndian.Uint32(b[2:])
		if uint64(n) > uint64(len(b)-6) {
			return p, fmt.Errorf("broker entry metadata of %d bytes: %w", n, ErrMalformed)
		}
		b = b[6+n:]
	}
	if len(b) >= 6 && binary.BigEndian.Uint16(b) == magicChecksum {
		p.HasSum, p.Sum = true, binary.BigEndian.Uint32(b[2:])
		b = b[6:]
	}
	err = p.split(b)
	return p, err
}

// ParseChecked splits what a stored entry has after its checksum.
func ParseChecked(b []byte) (p Payload, err error) {
	err = p.split(b)
	return p, err
}

func (p *Payload) split(b []byte) error {
	p.Checked = b
	if len(b) < 4 {
		return fmt.Errorf("payload of %d bytes: %w", len(b), ErrMalformed)
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return fmt.Errorf("metadata of %d bytes in %d: %w", n, len(b), ErrMalformed)
	}
	p.Metadata, p.Body = b[4:4+n:4+n], b[4+n:]
	return nil
}

// appendPayload appends the checksum section and what it is about.
func appendPayload(dst []byte, sum uint32, checked []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, magicChecksum)
	dst = binary.BigEndian.AppendUint32(dst, sum)
	return append(dst, checked...)
}
