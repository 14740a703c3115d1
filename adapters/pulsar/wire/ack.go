package wire

import "fmt"

// Ack types.
const (
	AckIndividual int32 = 0
	AckCumulative int32 = 1
)

// Ack is ACK(10).
type Ack struct {
	ConsumerID      uint64
	Type            int32
	IDs             []MessageID
	ValidationError bool
	Txn             bool
	RequestID       uint64
	HasRequestID    bool
}

// Parse reads the command into c and reuses its memory: no allocation once it has grown.
func (c *Ack) Parse(b []byte) error {
	*c = Ack{IDs: c.IDs[:0]}
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
			c.Type, seen = int32(r.uint(wt)), seen|2
		case 3:
			if err := c.grow().parse(r.raw(wt)); err != nil && r.err == nil {
				r.err = err
			}
		case 4:
			r.uint(wt)
			c.ValidationError = true
		case 6, 7:
			r.uint(wt)
			c.Txn = true
		case 8:
			c.RequestID, c.HasRequestID = r.uint(wt), true
		default:
			r.skip(wt)
		}
	}
	if r.err == nil && seen != 3 {
		r.fail("consumer id or type missing")
	}
	if r.err != nil {
		return fmt.Errorf("ACK: %w", r.err)
	}
	return nil
}

// grow makes room for one more id and keeps the ack set that was there before.
func (c *Ack) grow() *MessageID {
	if len(c.IDs) < cap(c.IDs) {
		c.IDs = c.IDs[:len(c.IDs)+1]
	} else {
		c.IDs = append(c.IDs, MessageID{})
	}
	return &c.IDs[len(c.IDs)-1]
}

// Append appends a whole frame.
func (c *Ack) Append(dst []byte) []byte {
	dst, frame := openFrame(dst, TypeAck)
	dst, start := openNested(dst, int(TypeAck))
	dst = appendUint(dst, 1, c.ConsumerID)
	dst = appendUint(dst, 2, uint64(int64(c.Type)))
	for i := range c.IDs {
		var id int
		dst, id = openNested(dst, 3)
		dst = closeNested(c.IDs[i].append(dst), id)
	}
	if c.HasRequestID {
		dst = appendUint(dst, 8, c.RequestID)
	}
	return closeFrame(closeNested(dst, start), frame)
}

// AckResponse is ACK_RESPONSE(38). A failure carries a message that is not empty: the Go client takes the rest for success.
type AckResponse struct {
	ConsumerID uint64
	Code       uint64 // ServerError
	HasCode    bool
	Message    string
	RequestID  uint64
}

func (c *AckResponse) fields(f *fields) {
	f.uint(1, &c.ConsumerID)
	f.hasUint(4, &c.Code, &c.HasCode)
	f.str(5, &c.Message)
	f.optUint(6, &c.RequestID)
}
