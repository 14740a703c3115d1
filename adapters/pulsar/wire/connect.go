package wire

// Connect is CONNECT(2), the first command of a connection.
type Connect struct {
	ClientVersion   string
	AuthData        []byte
	ProtocolVersion int32
	AuthMethodName  string
	ProxyToBroker   string
	Features        Features
}

func (c *Connect) fields(f *fields) {
	f.reqStr(1, &c.ClientVersion)
	f.bytes(3, &c.AuthData)
	f.int(4, &c.ProtocolVersion, 0)
	f.str(5, &c.AuthMethodName)
	f.str(6, &c.ProxyToBroker)
	has := c.Features != Features{}
	f.nested(10, &c.Features, &has)
}

// Features are FeatureFlags that matter here.
type Features struct {
	AuthRefresh, BrokerEntryMetadata, PartialProducer, MetadataWithoutCreation bool
}

func (c *Features) fields(f *fields) {
	f.bool(1, &c.AuthRefresh, false)
	f.bool(2, &c.BrokerEntryMetadata, false)
	f.bool(3, &c.PartialProducer, false)
	f.bool(5, &c.MetadataWithoutCreation, false)
}

// Connected is CONNECTED(3).
type Connected struct {
	ServerVersion   string
	ProtocolVersion int32
	MaxMessageSize  int32
	Features        Features
}

func (c *Connected) fields(f *fields) {
	f.reqStr(1, &c.ServerVersion)
	f.int(2, &c.ProtocolVersion, 0)
	f.int(3, &c.MaxMessageSize, 0)
	has := c.Features != Features{}
	f.nested(4, &c.Features, &has)
}

// Success is SUCCESS(13).
type Success struct{ RequestID uint64 }

func (c *Success) fields(f *fields) { f.uint(1, &c.RequestID) }

// Error is ERROR(14).
type Error struct {
	RequestID uint64
	Code      ServerError
	Message   string
}

func (c *Error) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.reqInt(2, (*int32)(&c.Code))
	f.reqStr(3, &c.Message)
}
