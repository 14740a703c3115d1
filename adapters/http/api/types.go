package api

import "time"

// Topic is one row of GET /api/v1/topics, and the head of what is said about one topic.
type Topic struct {
	Name       string `json:"name"`       // persistent://tenant/namespace/name
	Partitions int32  `json:"partitions"` // 0 = unpartitioned
	Declared   bool   `json:"declared"`   // by the configuration, or by a call; not made by a client
	Messages   int64  `json:"messages"`   // retained
	Bytes      int64  `json:"bytes"`      // of what is retained, to the next few MiB
	Groups     int    `json:"groups"`
	Backlog    int64  `json:"backlog"`           // messages not acknowledged, of the group that has most
	Problem    string `json:"problem,omitempty"` // why it is out of service, or takes no messages
}

// TopicDetail is GET /api/v1/topics/{topic}.
type TopicDetail struct {
	Topic
	Placement string            `json:"placement"` // client or key
	Names     map[string]string `json:"names,omitempty"`
	Policy    Policy            `json:"policy"`
	Logs      []Partition       `json:"logs"`
	Members   []Group           `json:"members"` // its groups
}

// Policy bounds what a topic holds; what is missing has no bound.
type Policy struct {
	RetentionSeconds float64 `json:"retention_seconds,omitempty"` // how long consumed data stays
	RetentionBytes   int64   `json:"retention_bytes,omitempty"`
	TTLSeconds       float64 `json:"ttl_seconds,omitempty"`
	BacklogSeconds   float64 `json:"backlog_seconds,omitempty"`
	BacklogBytes     int64   `json:"backlog_bytes,omitempty"`
	WhenFull         string  `json:"when_full,omitempty"`
	GroupExpiry      float64 `json:"group_expiry_seconds,omitempty"` // after which a group is deleted that nobody uses
	Deduplication    bool    `json:"deduplication,omitempty"`
}

// Partition is one log of a topic.
type Partition struct {
	Index  int32  `json:"index"`
	Number uint32 `json:"number"` // Pulsar's ledger id minus one
	First  int64  `json:"first"`  // first retained offset
	Next   int64  `json:"next"`   // offset of the next message
	Bytes  int64  `json:"bytes"`  // retained, about
}

// Message is one message as GET /api/v1/topics/{topic}/messages shows it.
type Message struct {
	Partition   int32      `json:"partition"`
	Offset      int64      `json:"offset"`
	Key         *string    `json:"key,omitempty"`
	OrderingKey string     `json:"ordering_key,omitempty"`
	Tag         string     `json:"tag,omitempty"`
	Address     string     `json:"mqtt_topic,omitempty"`
	Properties  []Property `json:"properties,omitempty"`
	Format      string     `json:"format"` // neutral, pulsar or rocketmq: how it is stored
	Producer    string     `json:"producer,omitempty"`
	Published   time.Time  `json:"published"`
	Committed   time.Time  `json:"committed"`
	Size        int        `json:"size"`
	Body        string     `json:"body"`
	Encoding    string     `json:"encoding"` // of body: text or base64
	Cut         bool       `json:"cut,omitempty"`
	Problem     string     `json:"problem,omitempty"` // why only its place is shown
}

// Property is a property of a message; names may repeat.
type Property struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Group is one row of GET /api/v1/groups, and the head of what is said about one group.
type Group struct {
	Topic     string  `json:"topic"`
	Name      string  `json:"name"`
	Mode      string  `json:"mode"`
	Durable   bool    `json:"durable"`
	Consumers int     `json:"consumers"`
	Backlog   int64   `json:"backlog"`                // messages not acknowledged
	InFlight  int64   `json:"in_flight"`              // of these, handed out
	Oldest    float64 `json:"oldest_unacked_seconds"` // age of the oldest message that is not acknowledged
	Stall     string  `json:"stall,omitempty"`        // why nothing moves although something waits
}

// GroupDetail is GET /api/v1/topics/{topic}/groups/{group}.
type GroupDetail struct {
	Group
	Logs    []GroupPartition `json:"logs"`
	Members []Member         `json:"members"`
}

// GroupPartition is a group's place in one partition.
type GroupPartition struct {
	Index    int32   `json:"index"`
	Mark     int64   `json:"mark"` // everything below is acknowledged
	Next     int64   `json:"next"` // end of the log
	Backlog  int64   `json:"backlog"`
	InFlight int64   `json:"in_flight"`
	Waiting  int64   `json:"waiting"`            // of the backlog, what waits for redelivery
	Holes    int     `json:"holes"`              // acknowledged ranges beyond the mark
	Holder   string  `json:"holder,omitempty"`   // the consumer that has the partition for itself
	Attempts int32   `json:"attempts,omitempty"` // the highest among what is in flight or waits
	Oldest   float64 `json:"oldest_unacked_seconds"`
	Stall    string  `json:"stall,omitempty"`
}

// Member is a live consumer of a group.
type Member struct {
	Name      string  `json:"name"`
	Protocol  string  `json:"protocol"`
	Priority  int     `json:"priority"`
	Permits   int64   `json:"permits"`
	InFlight  int64   `json:"in_flight"`
	Delivered int64   `json:"delivered"`
	Holds     []int32 `json:"holds,omitempty"` // partitions
	Slots     string  `json:"slots,omitempty"` // key_shared: ranges of key slots
}

// CreateTopic is the body of PUT /api/v1/topics/{topic}.
type CreateTopic struct {
	Partitions int32  `json:"partitions"`
	Placement  string `json:"placement,omitempty"` // client (default) or key
}

// GrowTopic is the body of POST …/grow.
type GrowTopic struct {
	Partitions  int32 `json:"partitions"`
	AcceptRekey bool  `json:"accept_rekey,omitempty"`
}

// CreateGroup is the body of PUT …/groups/{group}.
type CreateGroup struct {
	At string `json:"at,omitempty"` // latest (default) or earliest
}

// ResetGroup is the body of POST …/groups/{group}/reset.
type ResetGroup struct {
	To        string    `json:"to"` // earliest, latest, offset or time
	Offset    int64     `json:"offset,omitempty"`
	Time      time.Time `json:"time,omitzero"`
	Partition *int32    `json:"partition,omitempty"` // missing: all
}

// SkipGroup is the body of POST …/groups/{group}/skip.
type SkipGroup struct {
	Messages  int64  `json:"messages"`
	Partition *int32 `json:"partition,omitempty"` // missing: all
}
