package wire

import "math"

// MessageID is MessageIdData. Partition and BatchIndex are -1 when they do not apply. AckSet has a bit for each message
// of a batch: 1 means not acknowledged yet.
type MessageID struct {
	Ledger, Entry uint64
	Partition     int32
	BatchIndex    int32
	BatchSize     int32
	AckSet        []int64
}

// NewMessageID returns an id with the defaults of the protocol.
func NewMessageID() MessageID { return MessageID{Partition: -1, BatchIndex: -1} }

// Earliest and Latest tell the two ids that name no message.
func (m *MessageID) Earliest() bool { return int64(m.Ledger) < 0 && int64(m.Entry) < 0 }

// Latest tells the id after every message.
func (m *MessageID) Latest() bool { return m.Ledger == math.MaxInt64 && m.Entry == math.MaxInt64 }

func (m *MessageID) fields(f *fields) {
	f.uint(1, &m.Ledger)
	f.uint(2, &m.Entry)
	f.int(3, &m.Partition, -1)
	f.int(4, &m.BatchIndex, -1)
	f.longs(5, &m.AckSet)
	f.int(6, &m.BatchSize, 0)
}

// parse is the same without the detour through an interface, for ACK and SEND_RECEIPT. The AckSet keeps its memory.
func (m *MessageID) parse(b []byte) error {
	*m = MessageID{Partition: -1, BatchIndex: -1, AckSet: m.AckSet[:0]}
	r := reader{b: b}
	seen := 0
	for {
		num, wt, ok := r.next()
		if !ok {
			break
		}
		switch num {
		case 1:
			m.Ledger, seen = r.uint(wt), seen|1
		case 2:
			m.Entry, seen = r.uint(wt), seen|2
		case 3:
			m.Partition = int32(r.uint(wt))
		case 4:
			m.BatchIndex = int32(r.uint(wt))
		case 5:
			m.AckSet = r.longs(wt, m.AckSet)
		case 6:
			m.BatchSize = int32(r.uint(wt))
		default:
			r.skip(wt)
		}
	}
	if r.err == nil && seen != 3 {
		r.fail("message id without ledger or entry")
	}
	return r.err
}

// append writes the fields of an id that goes to a client.
func (m *MessageID) append(dst []byte) []byte {
	dst = appendUint(dst, 1, m.Ledger)
	dst = appendUint(dst, 2, m.Entry)
	if m.Partition != -1 {
		dst = appendUint(dst, 3, uint64(int64(m.Partition)))
	}
	if m.BatchIndex != -1 {
		dst = appendUint(dst, 4, uint64(int64(m.BatchIndex)))
	}
	for _, w := range m.AckSet {
		dst = appendUint(dst, 5, uint64(w))
	}
	if m.BatchSize != 0 {
		dst = appendUint(dst, 6, uint64(int64(m.BatchSize)))
	}
	return dst
}
