package wire

import (
	"encoding/binary"
	"fmt"
)

// Send is SEND(6), the command; the message follows it in the frame.
type Send struct {
	ProducerID  uint64
	SequenceID  uint64
	NumMessages int32 // 1 when absent
	Highest     uint64
	HasHighest  bool
	Chunk       bool
	Txn         bool // a transaction is named
	HasID       bool // replication into a shadow topic
}

// Parse reads the command without allocating.
func (c *Send) Parse(b []byte) error {
	*c = Send{NumMessages: 1}
	r := reader{b: b}
	seen := 0
	for {
		num, wt, ok := r.next()
		if !ok {
			break
		}
		switch num {
		case 1:
			c.ProducerID, seen = r.uint(wt), seen|1
		case 2:
			c.SequenceID, seen = r.uint(wt), seen|2
		case 3:
			c.NumMessages = int32(r.uint(wt))
		case 4, 5:
			r.uint(wt)
			c.Txn = true
		case 6:
			c.Highest, c.HasHighest = r.uint(wt), true
		case 7:
			c.Chunk = r.uint(wt) != 0
		case 9:
			r.raw(wt)
			c.HasID = true
		default:
			r.skip(wt)
		}
	}
	if r.err == nil && seen != 3 {
		r.fail("producer or sequence id missing")
	}
	if r.err != nil {
		return fmt.Errorf("SEND: %w", r.err)
	}
	return nil
}

// Append appends a whole SEND frame; checked is metadata size, metadata and body.
func (c *Send) Append(dst []byte, sum uint32, checked []byte) []byte {
	dst, frame := openFrame(dst, TypeSend)
	dst, start := openNested(dst, int(TypeSend))
	dst = appendUint(dst, 1, c.ProducerID)
	dst = appendUint(dst, 2, c.SequenceID)
	if c.NumMessages != 1 {
		dst = appendUint(dst, 3, uint64(int64(c.NumMessages)))
	}
	if c.HasHighest {
		dst = appendUint(dst, 6, c.Highest)
	}
	if c.Chunk {
		dst = appendUint(dst, 7, 1)
	}
	return closePayloadFrame(closeNested(dst, start), frame, sum, checked)
}

// closePayloadFrame appends the payload and fills the two sizes.
func closePayloadFrame(dst []byte, frame int, sum uint32, checked []byte) []byte {
	command := len(dst) - frame - 8
	dst = appendPayload(dst, sum, checked)
	binary.BigEndian.PutUint32(dst[frame:], uint32(len(dst)-frame-4))
	binary.BigEndian.PutUint32(dst[frame+4:], uint32(command))
	return dst
}

// SendReceipt is SEND_RECEIPT(7): the message is durable under this id.
type SendReceipt struct {
	ProducerID uint64
	SequenceID uint64
	ID         MessageID
	Highest    uint64
	HasHighest bool
}

// Append appends a whole frame without allocating beyond dst.
func (c *SendReceipt) Append(dst []byte) []byte {
	dst, frame := openFrame(dst, TypeSendReceipt)
	dst, start := openNested(dst, int(TypeSendReceipt))
	dst = appendUint(dst, 1, c.ProducerID)
	dst = appendUint(dst, 2, c.SequenceID)
	dst, id := openNested(dst, 3)
	dst = closeNested(c.ID.append(dst), id)
	if c.HasHighest {
		dst = appendUint(dst, 4, c.Highest)
	}
	return closeFrame(closeNested(dst, start), frame)
}

// Parse reads the command.
func (c *SendReceipt) Parse(b []byte) error {
	*c = SendReceipt{}
	r := reader{b: b}
	for {
		num, wt, ok := r.next()
		if !ok {
			break
		}
		switch num {
		case 1:
			c.ProducerID = r.uint(wt)
		case 2:
			c.SequenceID = r.uint(wt)
		case 3:
			if err := c.ID.parse(r.raw(wt)); err != nil && r.err == nil {
				r.err = err
			}
		case 4:
			c.Highest, c.HasHighest = r.uint(wt), true
		default:
			r.skip(wt)
		}
	}
	if r.err != nil {
		return fmt.Errorf("SEND_RECEIPT: %w", r.err)
	}
	return nil
}

// SendError is SEND_ERROR(8).
type SendError struct {
	ProducerID, SequenceID uint64
	Code                   ServerError
	Message                string
}

func (c *SendError) fields(f *fields) {
	f.uint(1, &c.ProducerID)
	f.uint(2, &c.SequenceID)
	f.reqInt(3, (*int32)(&c.Code))
	f.reqStr(4, &c.Message)
}
