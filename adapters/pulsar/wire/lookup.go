package wire

// PartitionedMetadata is PARTITIONED_METADATA(21). AutoCreate is true unless the client says otherwise.
type PartitionedMetadata struct {
	Topic      string
	RequestID  uint64
	AutoCreate bool
}

func (c *PartitionedMetadata) fields(f *fields) {
	f.reqStr(1, &c.Topic)
	f.uint(2, &c.RequestID)
	f.bool(6, &c.AutoCreate, true)
}

// Values of the response field of PARTITIONED_METADATA_RESPONSE and LOOKUP_RESPONSE.
const (
	MetadataSuccess int32 = 0
	MetadataFailed  int32 = 1
	LookupRedirect  int32 = 0
	LookupConnect   int32 = 1
	LookupFailed    int32 = 2
)

// PartitionedMetadataReply is PARTITIONED_METADATA_RESPONSE(22). Response is always written: the Go client
// dereferences it.
type PartitionedMetadataReply struct {
	Partitions uint64
	RequestID  uint64
	Response   int32
	Code       uint64 // ServerError
	HasCode    bool
	Message    string
}

func (c *PartitionedMetadataReply) fields(f *fields) {
	f.uint(1, &c.Partitions)
	f.uint(2, &c.RequestID)
	f.reqInt(3, &c.Response)
	f.hasUint(4, &c.Code, &c.HasCode)
	f.str(5, &c.Message)
}

// Lookup is LOOKUP(23).
type Lookup struct {
	Topic         string
	RequestID     uint64
	Authoritative bool
	Listener      string
}

func (c *Lookup) fields(f *fields) {
	f.reqStr(1, &c.Topic)
	f.uint(2, &c.RequestID)
	f.bool(3, &c.Authoritative, false)
	f.str(7, &c.Listener)
}

// LookupReply is LOOKUP_RESPONSE(24).
type LookupReply struct {
	URL, URLTLS   string
	Response      int32
	RequestID     uint64
	Authoritative bool
	Code          uint64 // ServerError
	HasCode       bool
	Message       string
	Proxy         bool
}

func (c *LookupReply) fields(f *fields) {
	f.str(1, &c.URL)
	f.str(2, &c.URLTLS)
	f.reqInt(3, &c.Response)
	f.uint(4, &c.RequestID)
	f.bool(5, &c.Authoritative, false)
	f.hasUint(6, &c.Code, &c.HasCode)
	f.str(7, &c.Message)
	f.bool(8, &c.Proxy, false)
}

// GetTopics is GET_TOPICS_OF_NAMESPACE(32). Mode: 0 persistent, 1 non-persistent, 2 all.
type GetTopics struct {
	RequestID uint64
	Namespace string
	Mode      int32
	Pattern   string
	Hash      string
}

func (c *GetTopics) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.reqStr(2, &c.Namespace)
	f.int(3, &c.Mode, 0)
	f.str(4, &c.Pattern)
	f.str(5, &c.Hash)
}

// GetTopicsReply is GET_TOPICS_OF_NAMESPACE_RESPONSE(33).
type GetTopicsReply struct {
	RequestID uint64
	Topics    []string
	Filtered  bool
	Hash      string
	Changed   bool
}

func (c *GetTopicsReply) fields(f *fields) {
	f.uint(1, &c.RequestID)
	f.strs(2, &c.Topics)
	f.bool(3, &c.Filtered, false)
	f.str(4, &c.Hash)
	f.bool(5, &c.Changed, true)
}
