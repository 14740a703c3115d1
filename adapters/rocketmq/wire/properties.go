package wire

import (
	"bytes"
	"slices"
)

// The separators of the properties string.
const (
	NameEnd  = 0x01
	ValueEnd = 0x02
)

// MaxProperties is the longest properties string: its length is a signed 16-bit number.
const MaxProperties = 32767

// Property names that this server reads or writes.
const (
	PropTags           = "TAGS"
	PropKeys           = "KEYS"
	PropUniqKey        = "UNIQ_KEY"
	PropWait           = "WAIT"
	PropDelay          = "DELAY"
	PropTimerDelaySec  = "TIMER_DELAY_SEC"
	PropTimerDelayMs   = "TIMER_DELAY_MS"
	PropTimerDeliverMs = "TIMER_DELIVER_MS"
	PropStartDeliver   = "__STARTDELIVERTIME"
	PropShardingKey    = "__SHARDINGKEY" // Java and the gRPC clients
	PropShardingKeyGo  = "SHARDING_KEY"  // rocketmq-client-go v2
	PropTransaction    = "TRAN_MSG"
	PropProducerGroup  = "PGROUP"
	PropImmunity       = "CHECK_IMMUNITY_TIME_IN_SECONDS"
	PropCheckTimes     = "TRANSACTION_CHECK_TIMES"
	PropRetryTopic     = "RETRY_TOPIC"
	PropOriginID       = "ORIGIN_MESSAGE_ID"
	PropPopCk          = "POP_CK"
)

// NextProperty cuts the first pair off a properties string. ok is false at the end. A pair without a name, or without
// the byte that ends names, is passed over, as the Java client does.
//
// Spec: RocketMQ MessageDecoder.string2messageProperties@5.x
func NextProperty(b []byte) (name, value, rest []byte, ok bool) {
	for len(b) > 0 {
		pair := b
		if end := bytes.IndexByte(b, ValueEnd); end >= 0 {
			pair, b = b[:end], b[end+1:]
		} else {
			b = nil
		}
		if at := bytes.IndexByte(pair, NameEnd); at > 0 {
			return pair[:at], pair[at+1:], b, true
		}
	}
	return nil, nil, nil, false
}

// FindProperty looks one property up. Of a name that repeats, the first counts.
func FindProperty(b []byte, name string) []byte {
	for {
		n, v, rest, ok := NextProperty(b)
		if !ok {
			return nil
		}
		if string(n) == name {
			return v
		}
		b = rest
	}
}

// AppendProperty writes one pair.
func AppendProperty[N, V ~string | ~[]byte](dst []byte, name N, value V) []byte {
	dst = append(dst, name...)
	dst = append(dst, NameEnd)
	dst = append(dst, value...)
	return append(dst, ValueEnd)
}

// AppendWithout copies a properties string, but for the properties of these names.
func AppendWithout(dst, b []byte, names ...string) []byte {
	for {
		n, v, rest, ok := NextProperty(b)
		if !ok {
			return dst
		}
		if !slices.ContainsFunc(names, func(x string) bool { return string(n) == x }) {
			dst = AppendProperty(dst, n, v)
		}
		b = rest
	}
}
