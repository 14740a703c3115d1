package wire

// KeyValue is one entry of a metadata list.
type KeyValue struct{ Key, Value string }

func (c *KeyValue) fields(f *fields) {
	f.reqStr(1, &c.Key)
	f.reqStr(2, &c.Value)
}

// Producer access modes.
const (
	AccessShared int32 = iota
	AccessExclusive
	AccessWaitForExclusive
	AccessExclusiveWithFencing
)

// Producer is PRODUCER(5).
type Producer struct {
	Topic               string
	ProducerID          uint64
	RequestID           uint64
	Name                string
	Encrypted           bool
	HasSchema           bool
	Schema              Schema
	Epoch               uint64
	UserProvidedName    bool
	AccessMode          int32
	TopicEpoch          uint64
	HasTopicEpoch       bool
	TxnEnabled          bool
	InitialSubscription string
}

func (c *Producer) fields(f *fields) {
	f.reqStr(1, &c.Topic)
	f.uint(2, &c.ProducerID)
	f.uint(3, &c.RequestID)
	f.str(4, &c.Name)
	f.bool(5, &c.Encrypted, false)
	f.nested(7, &c.Schema, &c.HasSchema)
	f.optUint(8, &c.Epoch)
	f.bool(9, &c.UserProvidedName, true)
	f.int(10, &c.AccessMode, AccessShared)
	f.hasUint(11, &c.TopicEpoch, &c.HasTopicEpoch)
	f.bool(12, &c.TxnEnabled, false)
	f.str(13, &c.InitialSubscription)
}

// ProducerSuccess is PRODUCER_SUCCESS(17). LastSequenceID is -1 when nothing is known of the name.
type ProducerSuccess struct {
	RequestID      uint64
	Name           string
	LastSequenceID int64
	SchemaVersion  []byte
	TopicEpoch     uint64
	HasTopicEpoch  bool
	Ready          bool
}

func (c *ProducerSuccess) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.reqStr(2, &c.Name)
	f.long(3, &c.LastSequenceID, -1)
	f.bytes(4, &c.SchemaVersion)
	f.hasUint(5, &c.TopicEpoch, &c.HasTopicEpoch)
	f.bool(6, &c.Ready, true)
}

// Close is CLOSE_PRODUCER(15) and CLOSE_CONSUMER(16), in both directions.
type Close struct{ ID, RequestID uint64 }

func (c *Close) fields(f *fields) {
	f.uint(1, &c.ID)
	f.uint(2, &c.RequestID)
}

// Schema is what a producer or consumer declares of its messages. Data is a view.
type Schema struct {
	Name string
	Data []byte
	Type int32
}

func (c *Schema) fields(f *fields) {
	f.reqStr(1, &c.Name)
	f.reqBytes(3, &c.Data)
	f.reqInt(4, &c.Type)
}

// GetSchema is GET_SCHEMA(34).
type GetSchema struct {
	RequestID uint64
	Topic     string
	Version   []byte
}

func (c *GetSchema) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.reqStr(2, &c.Topic)
	f.bytes(3, &c.Version)
}

// GetOrCreateSchema is GET_OR_CREATE_SCHEMA(39).
type GetOrCreateSchema struct {
	RequestID uint64
	Topic     string
	HasSchema bool
	Schema    Schema
}

func (c *GetOrCreateSchema) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.reqStr(2, &c.Topic)
	f.nested(3, &c.Schema, &c.HasSchema)
}

// GetSchemaReply is GET_SCHEMA_RESPONSE(35).
type GetSchemaReply struct {
	RequestID uint64
	Code      uint64 // ServerError
	HasCode   bool
	Message   string
	HasSchema bool
	Schema    Schema
	Version   []byte
}

func (c *GetSchemaReply) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.hasUint(2, &c.Code, &c.HasCode)
	f.str(3, &c.Message)
	f.nested(4, &c.Schema, &c.HasSchema)
	f.bytes(5, &c.Version)
}

// GetOrCreateSchemaReply is GET_OR_CREATE_SCHEMA_RESPONSE(40).
type GetOrCreateSchemaReply struct {
	RequestID uint64
	Code      uint64 // ServerError
	HasCode   bool
	Message   string
	Version   []byte
}

func (c *GetOrCreateSchemaReply) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.hasUint(2, &c.Code, &c.HasCode)
	f.str(3, &c.Message)
	f.bytes(4, &c.Version)
}

// Reply is the shape of a failed CONSUMER_STATS_RESPONSE(26) and TC_CLIENT_CONNECT_RESPONSE(63): request id, error and
// message in fields 1, 2 and 3.
type Reply struct {
	RequestID uint64
	Code      uint64 // ServerError
	HasCode   bool
	Message   string
}

func (c *Reply) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.hasUint(2, &c.Code, &c.HasCode)
	f.str(3, &c.Message)
}
