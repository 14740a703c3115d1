// Package wiretest has a sample of every command, for the tests and the fuzz target of package wire and for the comparison
// with the client's own decoder, which lives elsewhere because it links the client.
package wiretest

import "isthmus/adapters/pulsar/wire"

// Sample is a command with every field that we know set.
type Sample struct {
	Type  wire.Type
	Frame []byte
	Fresh func() any // to parse into
	Want  any
	Parse func([]byte, any) error
}

func cold(t wire.Type, c wire.Command, fresh func() wire.Command) Sample {
	return Sample{t, wire.Append(nil, t, c), func() any { return fresh() }, c, func(b []byte, v any) error { return wire.Parse(b, v.(wire.Command)) }}
}

type hot interface{ Parse([]byte) error }

func hotSample(t wire.Type, frame []byte, fresh hot, want any) Sample {
	return Sample{t, frame, func() any { return fresh }, want, func(b []byte, v any) error { return v.(hot).Parse(b) }}
}

var (
	body     = []byte("\x00\x00\x00\x09\x0a\x01p\x10\x05\x18\xc0\x84\x3dhello")
	anID     = wire.MessageID{Ledger: 7, Entry: 1 << 40, Partition: 3, BatchIndex: 2, BatchSize: 10, AckSet: []int64{-4, 1}}
	features = wire.Features{AuthRefresh: true, BrokerEntryMetadata: true, PartialProducer: true, MetadataWithoutCreation: true}
)

// Samples has one of every command that is spoken.
func Samples() []Sample {
	send := wire.Send{ProducerID: 1, SequenceID: 300, NumMessages: 5, Highest: 304, HasHighest: true, Chunk: true}
	receipt := wire.SendReceipt{ProducerID: 1, SequenceID: 2, ID: anID, Highest: 9, HasHighest: true}
	message := wire.Message{ConsumerID: 5, ID: anID, Redelivery: 3, AckSet: []int64{-2, 7}, HasEpoch: true, Epoch: 4}
	flow := wire.Flow{ConsumerID: 9, Permits: 1000}
	ack := wire.Ack{ConsumerID: 4, Type: wire.AckCumulative, IDs: []wire.MessageID{anID, {Ledger: 1, Entry: 2, Partition: -1, BatchIndex: -1}}, RequestID: 8, HasRequestID: true}
	return []Sample{
		cold(wire.TypeConnect,
			&wire.Connect{ClientVersion: "Pulsar-Go-0.19.0", AuthData: []byte("jwt"), ProtocolVersion: 20, AuthMethodName: "token", ProxyToBroker: "b:1", Features: features},
			func() wire.Command { return &wire.Connect{} }),
		cold(wire.TypeConnected,
			&wire.Connected{ServerVersion: "server", ProtocolVersion: 20, MaxMessageSize: 5 << 20, Features: features},
			func() wire.Command { return &wire.Connected{} }),
		cold(wire.TypeSuccess, &wire.Success{RequestID: 1 << 63}, func() wire.Command { return &wire.Success{} }),
		cold(wire.TypeError,
			&wire.Error{RequestID: wire.NoRequest, Code: wire.NotAllowedError, Message: "why"},
			func() wire.Command { return &wire.Error{} }),
		cold(wire.TypePartitionedMetadata,
			&wire.PartitionedMetadata{Topic: "t", RequestID: 1, AutoCreate: false},
			func() wire.Command { return &wire.PartitionedMetadata{AutoCreate: true} }),
		cold(wire.TypePartitionedMetadataReply,
			&wire.PartitionedMetadataReply{Partitions: 11, RequestID: 2, Response: 1, Code: 17, HasCode: true, Message: "bad"},
			func() wire.Command { return &wire.PartitionedMetadataReply{} }),
		cold(wire.TypeLookup,
			&wire.Lookup{Topic: "t", RequestID: 3, Authoritative: true, Listener: "internal"},
			func() wire.Command { return &wire.Lookup{} }),
		cold(wire.TypeLookupReply,
			&wire.LookupReply{URL: "pulsar://a", URLTLS: "pulsar+ssl://a", Response: 1, RequestID: 4, Authoritative: true, Code: 14, HasCode: true, Message: "m", Proxy: true},
			func() wire.Command { return &wire.LookupReply{} }),
		cold(wire.TypeGetTopicsOfNamespace,
			&wire.GetTopics{RequestID: 1, Namespace: "a/b", Mode: 2, Pattern: "x.*", Hash: "00"},
			func() wire.Command { return &wire.GetTopics{} }),
		cold(wire.TypeGetTopicsOfNamespaceReply,
			&wire.GetTopicsReply{RequestID: 1, Topics: []string{"a", "b"}, Filtered: true, Hash: "ff", Changed: false},
			func() wire.Command { return &wire.GetTopicsReply{Changed: true} }),
		cold(wire.TypeProducer,
			&wire.Producer{Topic: "t", ProducerID: 1, RequestID: 2, Name: "n", Encrypted: true, HasSchema: true, Schema: wire.Schema{Name: "s", Data: []byte("{}"), Type: 2}, Epoch: 3, UserProvidedName: false, AccessMode: 2, TopicEpoch: 9, HasTopicEpoch: true, TxnEnabled: true, InitialSubscription: "sub"},
			func() wire.Command { return &wire.Producer{UserProvidedName: true} }),
		cold(wire.TypeProducerSuccess,
			&wire.ProducerSuccess{RequestID: 1, Name: "n", LastSequenceID: 5, SchemaVersion: []byte{0, 1}, TopicEpoch: 6, HasTopicEpoch: true, Ready: false},
			func() wire.Command { return &wire.ProducerSuccess{LastSequenceID: -1, Ready: true} }),
		cold(wire.TypeCloseProducer, &wire.Close{ID: 1, RequestID: wire.NoRequest}, func() wire.Command { return &wire.Close{} }),
		cold(wire.TypeCloseConsumer, &wire.Close{ID: 1, RequestID: 2}, func() wire.Command { return &wire.Close{} }),
		cold(wire.TypeGetSchema,
			&wire.GetSchema{RequestID: 1, Topic: "t", Version: []byte{1}},
			func() wire.Command { return &wire.GetSchema{} }),
		cold(wire.TypeGetSchemaReply,
			&wire.GetSchemaReply{RequestID: 1, Code: 11, HasCode: true, Message: "none", HasSchema: true, Schema: wire.Schema{Name: "s", Data: []byte("{}"), Type: 4}, Version: []byte{1}},
			func() wire.Command { return &wire.GetSchemaReply{} }),
		cold(wire.TypeGetOrCreateSchema,
			&wire.GetOrCreateSchema{RequestID: 1, Topic: "t", HasSchema: true, Schema: wire.Schema{Name: "s", Data: []byte("d"), Type: 1}},
			func() wire.Command { return &wire.GetOrCreateSchema{} }),
		cold(wire.TypeGetOrCreateSchemaReply,
			&wire.GetOrCreateSchemaReply{RequestID: 1, Code: 10, HasCode: true, Message: "none", Version: []byte{1}},
			func() wire.Command { return &wire.GetOrCreateSchemaReply{} }),
		cold(wire.TypeConsumerStatsReply,
			&wire.Reply{RequestID: 1, Code: 13, HasCode: true, Message: "none"},
			func() wire.Command { return &wire.Reply{} }),
		cold(wire.TypeTcClientConnectReply,
			&wire.Reply{RequestID: 1, Code: 22, HasCode: true, Message: "none"},
			func() wire.Command { return &wire.Reply{} }),
		cold(wire.TypeNewTxnReply,
			&wire.TxnReply{RequestID: 1, Code: 22, HasCode: true, Message: "none"},
			func() wire.Command { return &wire.TxnReply{} }),
		cold(wire.TypeEndTxnReply,
			&wire.TxnReply{RequestID: 1, Code: 22, HasCode: true, Message: "none"},
			func() wire.Command { return &wire.TxnReply{} }),
		cold(wire.TypeSubscribe,
			&wire.Subscribe{Topic: "t", Subscription: "s", SubType: 2, ConsumerID: 3, RequestID: 4, ConsumerName: "n", Priority: 5, Durable: false, HasStart: true, Start: anID, ReadCompacted: true, HasSchema: true, Schema: wire.Schema{Name: "s", Data: []byte("d"), Type: 1}, Earliest: 1, ForceCreation: false, RollbackSeconds: 7, HasKeys: true, Keys: wire.KeySharedMeta{Mode: 1, Ranges: []wire.IntRange{{Start: 0, End: 9}, {Start: 10, End: 65535}}, OutOfOrder: true}, HasConsumerEpoch: true, ConsumerEpoch: 8},
			func() wire.Command { s := wire.NewSubscribe(); return &s }),
		cold(wire.TypeUnsubscribe,
			&wire.Unsubscribe{ConsumerID: 1, RequestID: 2, Force: true},
			func() wire.Command { return &wire.Unsubscribe{} }),
		cold(wire.TypeSeek,
			&wire.Seek{ConsumerID: 1, RequestID: 2, HasID: true, ID: anID, HasTime: true, Time: 3},
			func() wire.Command { return &wire.Seek{ID: wire.NewMessageID()} }),
		cold(wire.TypeGetLastMessageID,
			&wire.GetLastMessageID{ConsumerID: 1, RequestID: 2},
			func() wire.Command { return &wire.GetLastMessageID{} }),
		cold(wire.TypeGetLastMessageIDReply,
			&wire.GetLastMessageIDReply{Last: anID, RequestID: 2, HasMark: true, MarkDelete: anID},
			func() wire.Command {
				return &wire.GetLastMessageIDReply{Last: wire.NewMessageID(), MarkDelete: wire.NewMessageID()}
			}),
		cold(wire.TypeActiveConsumerChange,
			&wire.ActiveConsumerChange{ConsumerID: 1, Active: true},
			func() wire.Command { return &wire.ActiveConsumerChange{} }),
		cold(wire.TypeConsumerStats,
			&wire.ConsumerStats{RequestID: 1, ConsumerID: 2},
			func() wire.Command { return &wire.ConsumerStats{} }),
		cold(wire.TypeAckResponse,
			&wire.AckResponse{ConsumerID: 1, Code: 22, HasCode: true, Message: "m", RequestID: 9},
			func() wire.Command { return &wire.AckResponse{} }),
		cold(wire.TypeSendError,
			&wire.SendError{ProducerID: 1, SequenceID: 2, Code: wire.ChecksumError, Message: "m"},
			func() wire.Command { return &wire.SendError{} }),
		cold(wire.TypeRedeliver,
			&wire.Redeliver{ConsumerID: 1, IDs: []wire.MessageID{anID}, HasEpoch: true, Epoch: 2},
			func() wire.Command { return &wire.Redeliver{} }),
		hotSample(wire.TypeSend, send.Append(nil, wire.Checksum(body), body), &wire.Send{}, &send),
		hotSample(wire.TypeSendReceipt, receipt.Append(nil), &wire.SendReceipt{}, &receipt),
		hotSample(wire.TypeMessage, message.Append(nil, wire.Checksum(body), body), &wire.Message{}, &message),
		hotSample(wire.TypeFlow, flow.Append(nil), &wire.Flow{}, &flow),
		hotSample(wire.TypeAck, ack.Append(nil), &wire.Ack{}, &ack),
	}
}
