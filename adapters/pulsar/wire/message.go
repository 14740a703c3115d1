package wire

import "fmt"

// Flow is FLOW(11): permits for that many more messages.
type Flow struct {
	ConsumerID uint64
	Permits    uint32
}

// Parse reads the command without allocating.
func (c *Flow) Parse(b []byte) error {
	*c = Flow{}
	r := reader{b: b}
	seen := 0
	for {
		num, wt, ok := r.next()
		if !ok {
			break
		}
		switch num {
		case 1:
			c.ConsumerID, seen = r.uint(wt), seen|1
		case 2:
			c.Permits, seen = uint32(r.uint(wt)), seen|2
		default:
			r.skip(wt)
		}
	}
	if r.err == nil && seen != 3 {
		r.fail("consumer id or permits missing")
	}
	if r.err != nil {
		return fmt.Errorf("FLOW: %w", r.err)
	}
	return nil
}

// Append appends a whole frame.
func (c *Flow) Append(dst []byte) []byte {
	dst, frame := openFrame(dst, TypeFlow)
	dst, start := openNested(dst, int(TypeFlow))
	dst = appendUint(dst, 1, c.ConsumerID)
	dst = appendUint(dst, 2, uint64(c.Permits))
	return closeFrame(closeNested(dst, start), frame)
}

// Message is MESSAGE(9), the command; the stored bytes follow it in the frame.
type Message struct {
	ConsumerID uint64
	ID         MessageID
	Redelivery uint32
	AckSet     []int64 // of a batch that is acknowledged in part
	HasEpoch   bool
	Epoch      uint64
}

// Append appends a whole frame without allocating beyond dst; checked is metadata size, metadata and body.
// Spec: Pulsar framing: every MESSAGE carries the checksum section; the Go client closes the connection without it
func (c *Message) Append(dst []byte, sum uint32, checked []byte) []byte {
	dst, frame := openFrame(dst, TypeMessage)
	dst, start := openNested(dst, int(TypeMessage))
	dst = appendUint(dst, 1, c.ConsumerID)
	dst, id := openNested(dst, 2)
	dst = closeNested(c.ID.append(dst), id)
	if c.Redelivery != 0 {
		dst = appendUint(dst, 3, uint64(c.Redelivery))
	}
	for _, w := range c.AckSet {
		dst = appendUint(dst, 4, uint64(w))
	}
	if c.HasEpoch {
		dst = appendUint(dst, 5, c.Epoch)
	}
	return closePayloadFrame(closeNested(dst, start), frame, sum, checked)
}

// Parse reads the command.
func (c *Message) Parse(b []byte) error {
	*c = Message{}
	r := reader{b: b}
	for {
		num, wt, ok := r.next()
		if !ok {
			break
		}
		switch num {
		case 1:
			c.ConsumerID = r.uint(wt)
		case 2:
			if err := c.ID.parse(r.raw(wt)); err != nil && r.err == nil {
				r.err = err
			}
		case 3:
			c.Redelivery = uint32(r.uint(wt))
		case 4:
			c.AckSet = r.longs(wt, c.AckSet)
		case 5:
			c.Epoch, c.HasEpoch = r.uint(wt), true
		default:
			r.skip(wt)
		}
	}
	if r.err != nil {
		return fmt.Errorf("MESSAGE: %w", r.err)
	}
	return nil
}

// Redeliver is REDELIVER_UNACKNOWLEDGED_MESSAGES(20).
type Redeliver struct {
	ConsumerID uint64
	IDs        []MessageID
	HasEpoch   bool
	Epoch      uint64
}

func (c *Redeliver) fields(f *fields) {
	f.uint(1, &c.ConsumerID)
	f.each(2, len(c.IDs), func(i int) Command { return &c.IDs[i] }, func() Command {
		c.IDs = append(c.IDs, NewMessageID())
		return &c.IDs[len(c.IDs)-1]
	})
	f.hasUint(3, &c.Epoch, &c.HasEpoch)
}
