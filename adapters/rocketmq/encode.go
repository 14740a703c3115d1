package rocketmq

import (
	"strings"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// physOffset is the number under which one message is known for ever: it comes back in requests as the only key.
func physOffset(partition uint32, o core.Offset) int64 { return int64(partition)<<43 | o }

// uniqKey is the UNIQ_KEY of a message whose producer gave it none. It depends on the message's place alone, so that a
// redelivery has the same id.
func uniqKey(dst []byte, phys int64) []byte {
	const prefix = "0000000000000000"
	dst = append(dst, prefix...)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789ABCDEF"[phys>>shift&15])
	}
	return dst
}

// fillNative completes st with a message that came by this protocol. The body, its compression and the properties are
// the producer's. Only what a reader would miss is added: the twin of a sharding key, since Java and Go clients look for
// different names, and an id. scratch is used for that and returned.
func fillNative(st *wire.Stored, n *native, scratch []byte) []byte {
	st.Flag, st.SysFlag, st.Reconsume, st.BornHost, st.Body, st.Properties = n.flag, n.sysFlag, n.reconsume, n.born, n.body, n.properties
	var java, golang []byte
	unique := false
	for b := n.properties; ; {
		name, value, rest, ok := wire.NextProperty(b)
		if !ok {
			break
		}
		switch string(name) {
		case wire.PropUniqKey:
			unique = true
		case wire.PropShardingKey:
			java = value
		case wire.PropShardingKeyGo:
			golang = value
		}
		b = rest
	}
	if unique && (java == nil) == (golang == nil) {
		return scratch
	}
	scratch = append(scratch[:0], n.properties...)
	if len(scratch) > 0 && scratch[len(scratch)-1] != wire.ValueEnd {
		scratch = append(scratch, wire.ValueEnd)
	}
	if !unique {
		scratch = wire.AppendProperty(scratch, wire.PropUniqKey, uniqKey(nil, st.PhysOffset))
	}
	switch {
	case java != nil && golang == nil:
		scratch = wire.AppendProperty(scratch, wire.PropShardingKeyGo, java)
	case golang != nil && java == nil:
		scratch = wire.AppendProperty(scratch, wire.PropShardingKey, golang)
	}
	if len(scratch) <= wire.MaxProperties {
		st.Properties = scratch
	}
	return scratch
}

// fillForeign completes st with a message that came by another protocol.
func fillForeign(st *wire.Stored, m *core.Message, scratch []byte) []byte {
	st.Body = m.Body
	p := properties{b: scratch[:0]}
	p.b = wire.AppendProperty(p.b, wire.PropUniqKey, uniqKey(nil, st.PhysOffset))
	if m.Tag != "" {
		p.add(wire.PropTags, m.Tag)
	}
	hasKeys := false
	if m.HasKey && len(m.Key) > 0 {
		key := string(m.Key)
		p.add(wire.PropShardingKey, key)
		p.add(wire.PropShardingKeyGo, key)
		if _, hasKeys = m.Property(wire.PropKeys); !hasKeys {
			p.add(wire.PropKeys, key)
		}
	}
	for _, list := range [2][]core.Property{m.Properties, m.Routed} {
		for _, prop := range list {
			if !reserved[prop.Key] {
				p.add(prop.Key, prop.Value)
			}
		}
	}
	st.Properties = p.b
	return p.b
}

// properties collects pairs as far as they fit into one message.
type properties struct{ b []byte }

// add appends a pair, without the bytes that this encoding cannot carry. Pairs without a name or value are left out, as
// clients would not see them, and so is what does not fit.
func (p *properties) add(name, value string) {
	name, value = clean(name), clean(value)
	if name == "" || value == "" || len(p.b)+len(name)+len(value)+2 > wire.MaxProperties {
		return
	}
	p.b = wire.AppendProperty(p.b, name, value)
}

var cleaner = strings.NewReplacer("\x01", " ", "\x02", " ")

func clean(s string) string {
	if strings.IndexByte(s, wire.NameEnd) < 0 && strings.IndexByte(s, wire.ValueEnd) < 0 {
		return s
	}
	return cleaner.Replace(s)
}

// reserved are the names with a meaning to clients or brokers. A property of that name from another protocol is no such
// thing, so it is not shown; KEYS is harmless and useful, and passes.
//
// Spec: RocketMQ MessageConst.STRING_HASH_SET@5.x
var reserved = setOf("TAGS", "UNIQ_KEY", "WAIT", "DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "TIMER_OUT_MS",
	"TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES", "TIMER_DEL_UNIQKEY", "__STARTDELIVERTIME", "__SHARDINGKEY",
	"SHARDING_KEY", "TRAN_MSG", "PGROUP", "__transactionId__", "TRANSACTION_CHECK_TIMES", "CHECK_IMMUNITY_TIME_IN_SECONDS",
	"TRAN_PREPARED_QUEUE_OFFSET", "REAL_TOPIC", "REAL_QID", "RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "RECONSUME_TIME",
	"MAX_RECONSUME_TIMES", "CONSUME_START_TIME", "MIN_OFFSET", "MAX_OFFSET", "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID",
	"POP_CK", "POP_CK_OFFSET", "1ST_POP_TIME", "MSG_REGION", "TRACE_ON", "CLUSTER", "CORRELATION_ID", "REPLY_TO_CLIENT", "TTL",
	"MSG_TYPE", "ARRIVE_TIME", "PUSH_REPLY_TIME", "INSTANCE_ID", "BUYER_ID", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG",
	"EXTEND_UNIQ_INFO", "REDIRECT", "PROPERTY_FORWARD_QUEUE_ID", "INNER_NUM", "INNER_BASE", "DUP_INFO",
	"INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET", "__CRC32#", "TRACE_CONTEXT", "BORN_TIMESTAMP", "__BORNHOST")

func setOf(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}
