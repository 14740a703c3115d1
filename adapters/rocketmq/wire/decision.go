package wire

// What a producer says about a half message, in Decision.Word.
const (
	DecideUnknown  = 0
	DecideCommit   = 8
	DecideRollback = 12
)

// Decision is the header of code 37. Its slices point into the frame.
type Decision struct {
	Group       []byte
	TableOffset int64 // the queueOffset of the send result
	Phys        int64 // from the msgId of the send result
	Word        int32
	Check       bool // it answers code 39
}

// ParseDecision reads the header.
//
// Spec: RocketMQ EndTransactionRequestHeader@5.x
func ParseDecision(h *Header, e *Decision) error {
	*e = Decision{}
	var seen uint16
	for i := range h.Ext {
		key, v := h.Ext[i].Key, h.Ext[i].Value
		var err error
		switch string(key) {
		case "producerGroup":
			e.Group, seen = v, seen|1
		case "tranStateTableOffset":
			e.TableOffset, err = parseInt("tranStateTableOffset", v)
			seen |= 2
		case "commitLogOffset":
			e.Phys, err = parseInt("commitLogOffset", v)
			seen |= 4
		case "commitOrRollback":
			e.Word, err = parseInt32("commitOrRollback", v)
			seen |= 8
		case "fromTransactionCheck":
			e.Check = string(v) == "true"
		}
		if err != nil {
			return err
		}
	}
	return missing(seen, "producerGroup", "tranStateTableOffset", "commitLogOffset", "commitOrRollback")
}
