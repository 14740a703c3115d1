package wire

// Subscribe is SUBSCRIBE(4). NewSubscribe sets the defaults of absent fields.
type Subscribe struct {
	Topic            string
	Subscription     string
	SubType          int32
	ConsumerID       uint64
	RequestID        uint64
	ConsumerName     string
	Priority         int32
	Durable          bool
	HasStart         bool
	Start            MessageID
	ReadCompacted    bool
	HasSchema        bool
	Schema           Schema
	Earliest         int32 // initialPosition: 0 latest, 1 earliest
	ForceCreation    bool
	RollbackSeconds  uint64
	HasKeys          bool
	Keys             KeySharedMeta
	HasConsumerEpoch bool
	ConsumerEpoch    uint64
}

// KeySharedMeta says how a Key_Shared subscription shares out its hash slots.
type KeySharedMeta struct {
	Mode       int32 // KeySharedAutoSplit or KeySharedSticky
	Ranges     []IntRange
	OutOfOrder bool
}

// The modes of KeySharedMeta.
const (
	KeySharedAutoSplit int32 = iota
	KeySharedSticky
)

func (c *KeySharedMeta) fields(f *fields) {
	f.reqInt(1, &c.Mode)
	f.each(3, len(c.Ranges), func(i int) Command { return &c.Ranges[i] }, func() Command {
		c.Ranges = append(c.Ranges, IntRange{})
		return &c.Ranges[len(c.Ranges)-1]
	})
	f.bool(4, &c.OutOfOrder, false)
}

// IntRange is from Start to End, both included.
type IntRange struct{ Start, End int32 }

func (c *IntRange) fields(f *fields) {
	f.reqInt(1, &c.Start)
	f.reqInt(2, &c.End)
}

// NewSubscribe returns a Subscribe with the defaults of the protocol.
func NewSubscribe() Subscribe {
	return Subscribe{Durable: true, ForceCreation: true, Start: NewMessageID()}
}

func (c *Subscribe) fields(f *fields) {
	f.reqStr(1, &c.Topic)
	f.reqStr(2, &c.Subscription)
	f.reqInt(3, &c.SubType)
	f.uint(4, &c.ConsumerID)
	f.uint(5, &c.RequestID)
	f.str(6, &c.ConsumerName)
	f.int(7, &c.Priority, 0)
	f.bool(8, &c.Durable, true)
	f.nested(9, &c.Start, &c.HasStart)
	f.bool(11, &c.ReadCompacted, false)
	f.nested(12, &c.Schema, &c.HasSchema)
	f.int(13, &c.Earliest, 0)
	f.bool(15, &c.ForceCreation, true)
	f.optUint(16, &c.RollbackSeconds)
	f.nested(17, &c.Keys, &c.HasKeys)
	f.hasUint(19, &c.ConsumerEpoch, &c.HasConsumerEpoch)
}

// Unsubscribe is UNSUBSCRIBE(12).
type Unsubscribe struct {
	ConsumerID, RequestID uint64
	Force                 bool
}

func (c *Unsubscribe) fields(f *fields) {
	f.uint(1, &c.ConsumerID)
	f.uint(2, &c.RequestID)
	f.bool(3, &c.Force, false)
}

// Seek is SEEK(28): to an id or to a publish time.
type Seek struct {
	ConsumerID, RequestID uint64
	HasID                 bool
	ID                    MessageID
	HasTime               bool
	Time                  uint64
}

func (c *Seek) fields(f *fields) {
	f.uint(1, &c.ConsumerID)
	f.uint(2, &c.RequestID)
	f.nested(3, &c.ID, &c.HasID)
	f.hasUint(4, &c.Time, &c.HasTime)
}

// GetLastMessageID is GET_LAST_MESSAGE_ID(29).
type GetLastMessageID struct{ ConsumerID, RequestID uint64 }

func (c *GetLastMessageID) fields(f *fields) {
	f.uint(1, &c.ConsumerID)
	f.uint(2, &c.RequestID)
}

// GetLastMessageIDReply is GET_LAST_MESSAGE_ID_RESPONSE(30). The mark-delete position is always written: the Go client
// dereferences it after a seek by time.
type GetLastMessageIDReply struct {
	Last       MessageID
	RequestID  uint64
	HasMark    bool
	MarkDelete MessageID
}

func (c *GetLastMessageIDReply) fields(f *fields) {
	has := true
	f.nested(1, &c.Last, &has)
	f.uint(2, &c.RequestID)
	f.nested(3, &c.MarkDelete, &c.HasMark)
}

// ActiveConsumerChange is ACTIVE_CONSUMER_CHANGE(31).
type ActiveConsumerChange struct {
	ConsumerID uint64
	Active     bool
}

func (c *ActiveConsumerChange) fields(f *fields) {
	f.uint(1, &c.ConsumerID)
	f.bool(2, &c.Active, false)
}

// ConsumerStats is CONSUMER_STATS(25).
type ConsumerStats struct{ RequestID, ConsumerID uint64 }

func (c *ConsumerStats) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.uint(4, &c.ConsumerID)
}
