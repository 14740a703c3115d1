package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// MaxJSONBody bounds the bodies that go through encoding/json, whose memory can be many times the text's.
const MaxJSONBody = 512 << 10

// Heartbeat is the body of code 34.
type Heartbeat struct {
	ClientID  string         `json:"clientID"`
	Producers []ProducerData `json:"producerDataSet"`
	Consumers []ConsumerData `json:"consumerDataSet"`
}

// ProducerData is one producer group of a client.
type ProducerData struct {
	Group string `json:"groupName"`
}

// ConsumerData is one consumer group of a client.
type ConsumerData struct {
	Group         string             `json:"groupName"`
	Type          string             `json:"consumeType"`
	Model         string             `json:"messageModel"`
	FromWhere     string             `json:"consumeFromWhere"`
	Subscriptions []SubscriptionData `json:"subscriptionDataSet"`
}

// SubscriptionData is what a consumer wants of one topic. Tag hashes are not read: rocketmq-client-go computes them over
// UTF-8 bytes and Java over UTF-16 units, so only the text can be trusted.
type SubscriptionData struct {
	Topic          string  `json:"topic"`
	Expression     string  `json:"subString"`
	ExpressionType string  `json:"expressionType"`
	Version        flexInt `json:"subVersion"`
	ClassFilter    bool    `json:"classFilterMode"`
}

// The words of a heartbeat.
const (
	Broadcasting  = "BROADCASTING"
	Actively      = "CONSUME_ACTIVELY"
	FromFirst     = "CONSUME_FROM_FIRST_OFFSET"
	FromTimestamp = "CONSUME_FROM_TIMESTAMP"
	ExpressionTag = "TAG"
	ExpressionSQL = "SQL92"
	SubscribeAll  = "*"
	RetryPrefix   = "%RETRY%"
	DLQPrefix     = "%DLQ%"
	TemplateTopic = "TBW102"
	TraceTopic    = "RMQ_SYS_TRACE_TOPIC"
)

// flexInt is a number that some libraries write as a string.
type flexInt int64

func (n *flexInt) UnmarshalJSON(b []byte) error {
	v, _ := atoi(bytes.Trim(b, `"`))
	*n = flexInt(v)
	return nil
}

// ParseHeartbeat decodes the body of code 34.
//
// Spec: RocketMQ HeartbeatData, ConsumerData, SubscriptionData@5.x
func ParseHeartbeat(body []byte) (Heartbeat, error) {
	var h Heartbeat
	return h, decode(body, &h)
}

// Queue names one queue as clients do; they match lock answers on all three fields.
type Queue struct {
	Topic      string  `json:"topic"`
	BrokerName string  `json:"brokerName"`
	ID         flexInt `json:"queueId"`
}

// Locks is the body of codes 41 and 42.
type Locks struct {
	Group    string  `json:"consumerGroup"`
	ClientID string  `json:"clientId"`
	Queues   []Queue `json:"mqSet"`
}

// ParseLocks decodes the body of codes 41 and 42.
//
// Spec: RocketMQ LockBatchRequestBody, UnlockBatchRequestBody@5.x
func ParseLocks(body []byte) (Locks, error) {
	var l Locks
	return l, decode(body, &l)
}

// ClientConfig is the body of code 46.
type ClientConfig struct {
	ClientID     string           `json:"clientId"`
	Group        string           `json:"group"`
	Subscription SubscriptionData `json:"subscriptionData"`
}

// ParseClientConfig decodes the body of code 46.
//
// Spec: RocketMQ CheckClientRequestBody@5.x
func ParseClientConfig(body []byte) (ClientConfig, error) {
	var c ClientConfig
	return c, decode(body, &c)
}

// decode is lenient: unknown members and members of another type are passed over.
func decode(body []byte, into any) error {
	if len(body) > MaxJSONBody {
		return fmt.Errorf("%w: body of %d bytes", ErrMalformed, len(body))
	}
	err := json.Unmarshal(body, into)
	if wrong := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &wrong) {
		return fmt.Errorf("%w: body: %w", ErrMalformed, err)
	}
	return nil
}

// AppendStrings writes {"name":["…",…]}, the body of codes 38 and 206.
func AppendStrings(dst []byte, name string, list []string) []byte {
	dst = append(dst, '{')
	dst = appendQuoted(dst, name)
	dst = append(dst, ':', '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(dst, s)
	}
	return append(dst, ']', '}')
}

// AppendLockOK writes the body that answers code 41.
func AppendLockOK(dst []byte, qs []Queue) []byte {
	dst = append(dst, `{"lockOKMQSet":[`...)
	for i, q := range qs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"brokerName":`...)
		dst = appendQuoted(dst, q.BrokerName)
		dst = append(dst, `,"queueId":`...)
		dst = strconv.AppendInt(dst, int64(q.ID), 10)
		dst = append(dst, `,"topic":`...)
		dst = appendQuoted(dst, q.Topic)
		dst = append(dst, '}')
	}
	return append(dst, ']', '}')
}
