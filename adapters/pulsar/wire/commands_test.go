package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	_ "github.com/apache/pulsar-client-go/pulsar" // registers the protocol's own messages
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// sample is a command with every field that we know set.
type sample struct {
	t     Type
	frame []byte
	fresh func() any // to parse into
	want  any
	parse func([]byte, any) error
}

func cold(t Type, c Command, fresh func() Command) sample {
	return sample{t, Append(nil, t, c), func() any { return fresh() }, c, func(b []byte, v any) error { return Parse(b, v.(Command)) }}
}

type hot interface{ Parse([]byte) error }

func hotSample(t Type, frame []byte, fresh hot, want any) sample {
	return sample{t, frame, func() any { return fresh }, want, func(b []byte, v any) error { return v.(hot).Parse(b) }}
}

var (
	body     = []byte("\x00\x00\x00\x09\x0a\x01p\x10\x05\x18\xc0\x84\x3dhello")
	anID     = MessageID{Ledger: 7, Entry: 1 << 40, Partition: 3, BatchIndex: 2, BatchSize: 10, AckSet: []int64{-4, 1}}
	features = Features{AuthRefresh: true, BrokerEntryMetadata: true, PartialProducer: true, MetadataWithoutCreation: true}
)

func samples() []sample {
	send := Send{ProducerID: 1, SequenceID: 300, NumMessages: 5, Highest: 304, HasHighest: true, Chunk: true}
	receipt := SendReceipt{ProducerID: 1, SequenceID: 2, ID: anID, Highest: 9, HasHighest: true}
	message := Message{ConsumerID: 5, ID: anID, Redelivery: 3, AckSet: []int64{-2, 7}, HasEpoch: true, Epoch: 4}
	flow := Flow{ConsumerID: 9, Permits: 1000}
	ack := Ack{ConsumerID: 4, Type: AckCumulative, IDs: []MessageID{anID, {Ledger: 1, Entry: 2, Partition: -1, BatchIndex: -1}}, RequestID: 8, HasRequestID: true}
	return []sample{
		cold(TypeConnect, &Connect{"Pulsar-Go-0.19.0", []byte("jwt"), 20, "token", "b:1", features}, func() Command { return &Connect{} }),
		cold(TypeConnected, &Connected{"server", 20, 5 << 20, features}, func() Command { return &Connected{} }),
		cold(TypeSuccess, &Success{1 << 63}, func() Command { return &Success{} }),
		cold(TypeError, &Error{NoRequest, NotAllowedError, "why"}, func() Command { return &Error{} }),
		cold(TypePartitionedMetadata, &PartitionedMetadata{"t", 1, false}, func() Command { return &PartitionedMetadata{AutoCreate: true} }),
		cold(TypePartitionedMetadataReply, &PartitionedMetadataReply{11, 2, 1, 17, true, "bad"}, func() Command { return &PartitionedMetadataReply{} }),
		cold(TypeLookup, &Lookup{"t", 3, true, "internal"}, func() Command { return &Lookup{} }),
		cold(TypeLookupReply, &LookupReply{"pulsar://a", "pulsar+ssl://a", 1, 4, true, 14, true, "m", true}, func() Command { return &LookupReply{} }),
		cold(TypeGetTopicsOfNamespace, &GetTopics{1, "a/b", 2, "x.*", "00"}, func() Command { return &GetTopics{} }),
		cold(TypeGetTopicsOfNamespaceReply, &GetTopicsReply{1, []string{"a", "b"}, true, "ff", false}, func() Command { return &GetTopicsReply{Changed: true} }),
		cold(TypeProducer, &Producer{"t", 1, 2, "n", true, true, Schema{"s", []byte("{}"), 2}, 3, false, 2, 9, true, true, "sub"}, func() Command { return &Producer{UserProvidedName: true} }),
		cold(TypeProducerSuccess, &ProducerSuccess{1, "n", 5, []byte{0, 1}, 6, true, false}, func() Command { return &ProducerSuccess{LastSequenceID: -1, Ready: true} }),
		cold(TypeCloseProducer, &Close{1, NoRequest}, func() Command { return &Close{} }),
		cold(TypeCloseConsumer, &Close{1, 2}, func() Command { return &Close{} }),
		cold(TypeGetSchema, &GetSchema{1, "t", []byte{1}}, func() Command { return &GetSchema{} }),
		cold(TypeGetSchemaReply, &GetSchemaReply{1, 11, true, "none", true, Schema{"s", []byte("{}"), 4}, []byte{1}}, func() Command { return &GetSchemaReply{} }),
		cold(TypeGetOrCreateSchema, &GetOrCreateSchema{1, "t", true, Schema{"s", []byte("d"), 1}}, func() Command { return &GetOrCreateSchema{} }),
		cold(TypeGetOrCreateSchemaReply, &GetOrCreateSchemaReply{1, 10, true, "none", []byte{1}}, func() Command { return &GetOrCreateSchemaReply{} }),
		cold(TypeConsumerStatsReply, &Reply{1, 13, true, "none"}, func() Command { return &Reply{} }),
		cold(TypeTcClientConnectReply, &Reply{1, 22, true, "none"}, func() Command { return &Reply{} }),
		cold(TypeNewTxnReply, &TxnReply{1, 22, true, "none"}, func() Command { return &TxnReply{} }),
		cold(TypeEndTxnReply, &TxnReply{1, 22, true, "none"}, func() Command { return &TxnReply{} }),
		cold(TypeSubscribe, &Subscribe{"t", "s", 2, 3, 4, "n", 5, false, true, anID, true, true, Schema{"s", []byte("d"), 1}, 1, false, 7, true, 8}, func() Command { s := NewSubscribe(); return &s }),
		cold(TypeUnsubscribe, &Unsubscribe{1, 2, true}, func() Command { return &Unsubscribe{} }),
		cold(TypeSeek, &Seek{1, 2, true, anID, true, 3}, func() Command { return &Seek{ID: NewMessageID()} }),
		cold(TypeGetLastMessageID, &GetLastMessageID{1, 2}, func() Command { return &GetLastMessageID{} }),
		cold(TypeGetLastMessageIDReply, &GetLastMessageIDReply{anID, 2, true, anID}, func() Command {
			return &GetLastMessageIDReply{Last: NewMessageID(), MarkDelete: NewMessageID()}
		}),
		cold(TypeActiveConsumerChange, &ActiveConsumerChange{1, true}, func() Command { return &ActiveConsumerChange{} }),
		cold(TypeConsumerStats, &ConsumerStats{1, 2}, func() Command { return &ConsumerStats{} }),
		cold(TypeAckResponse, &AckResponse{1, 22, true, "m", 9}, func() Command { return &AckResponse{} }),
		cold(TypeSendError, &SendError{1, 2, ChecksumError, "m"}, func() Command { return &SendError{} }),
		cold(TypeRedeliver, &Redeliver{1, []MessageID{anID}, true, 2}, func() Command { return &Redeliver{} }),
		hotSample(TypeSend, send.Append(nil, Checksum(body), body), &Send{}, &send),
		hotSample(TypeSendReceipt, receipt.Append(nil), &SendReceipt{}, &receipt),
		hotSample(TypeMessage, message.Append(nil, Checksum(body), body), &Message{}, &message),
		hotSample(TypeFlow, flow.Append(nil), &Flow{}, &flow),
		hotSample(TypeAck, ack.Append(nil), &Ack{}, &ack),
	}
}

// Every command survives writing and reading, and the protocol's own decoder reads the same, with no field unknown to it
// and none of the required ones missing.
func TestCommandsAgainstTheClientsOwnMessages(t *testing.T) {
	base, err := protoregistry.GlobalTypes.FindMessageByName("pulsar.proto.BaseCommand")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples() {
		f, n, err := Split(s.frame, 1<<20)
		if err != nil || n != len(s.frame) || f.Type != s.t {
			t.Fatalf("%v: split %d of %d bytes, type %v: %v", s.t, n, len(s.frame), f.Type, err)
		}
		got := s.fresh()
		if err := s.parse(f.Command, got); err != nil || !reflect.DeepEqual(got, s.want) {
			t.Errorf("%v: %v\n got %+v\nwant %+v", s.t, err, got, s.want)
		}
		raw := s.frame[8 : len(s.frame)-len(f.Payload)]
		m := base.New().Interface()
		if err := proto.Unmarshal(raw, m); err != nil {
			t.Errorf("%v: the client's decoder: %v", s.t, err)
			continue
		}
		noUnknown(t, s.t, m.ProtoReflect())
		again, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var g Frame
		if err := g.base(again); err != nil || g.Type != s.t {
			t.Fatalf("%v: the client's encoding: %v", s.t, err)
		}
		got = s.fresh()
		if err := s.parse(g.Command, got); err != nil || !reflect.DeepEqual(got, s.want) {
			t.Errorf("%v written by the client: %v\n got %+v\nwant %+v", s.t, err, got, s.want)
		}
	}
}

// newer are messages with a field that the client's release does not have yet.
var newer = map[protoreflect.Name]bool{"FeatureFlags": true, "CommandPartitionedTopicMetadata": true}

func noUnknown(t *testing.T, typ Type, m protoreflect.Message) {
	if len(m.GetUnknown()) > 0 && !newer[m.Descriptor().Name()] {
		t.Errorf("%v: %s has unknown fields %x", typ, m.Descriptor().Name(), m.GetUnknown())
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				noUnknown(t, typ, v.List().Get(i).Message())
			}
		case fd.Message() != nil && !fd.IsList():
			noUnknown(t, typ, v.Message())
		}
		return true
	})
}

// A frame that is cut anywhere is incomplete, a command that is cut anywhere is an error or another valid command, never
// a panic.
func TestTruncation(t *testing.T) {
	for _, s := range samples() {
		for i := range s.frame {
			if _, n, err := Split(s.frame[:i], 1<<20); n != 0 || err != nil {
				t.Fatalf("%v cut at %d: n=%d err=%v", s.t, i, n, err)
			}
		}
		f, _, _ := Split(s.frame, 1<<20)
		for i := range f.Command {
			if err := s.parse(f.Command[:i], s.fresh()); err != nil && !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v cut at %d: %v", s.t, i, err)
			}
		}
		for i := range f.Payload {
			p, err := ParsePayload(f.Payload[:i])
			if err == nil && Checksum(p.Checked) == p.Sum {
				t.Fatalf("%v: payload cut at %d is whole", s.t, i)
			}
		}
	}
}

func TestRequiredFields(t *testing.T) {
	for _, s := range samples() {
		if s.t == TypeActiveConsumerChange {
			continue
		}
		if err := s.parse(nil, s.fresh()); s.t != TypeSendReceipt && s.t != TypeMessage && !errors.Is(err, ErrMalformed) {
			t.Errorf("%v without fields: %v", s.t, err)
		}
	}
}

func TestSplitLimits(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      error
	}{
		{"2 GiB", "80000000", ErrFrameTooLarge},
		{"4 GiB", "ffffffff", ErrFrameTooLarge},
		{"no room for a command", "00000003", ErrMalformed},
		{"command larger than the frame", "0000000800000005", ErrMalformed},
		{"command without a type", "0000000400000000", ErrMalformed},
		{"field number 0", "000000060000000200ff", ErrMalformed},
	} {
		b, _ := hex.DecodeString(c.hex)
		if _, _, err := Split(b, 5<<20); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// The broker entry metadata that a server may put before the checksum is passed over.
func TestPayloadSections(t *testing.T) {
	plain := body
	summed := appendPayload(nil, Checksum(body), body)
	broker := append([]byte{0x0e, 0x02, 0, 0, 0, 2, 0x10, 0x05}, summed...)
	for name, b := range map[string][]byte{"plain": plain, "summed": summed, "broker": broker} {
		p, err := ParsePayload(b)
		if err != nil || !bytes.Equal(p.Checked, body) || string(p.Body) != "hello" || p.HasSum != (name != "plain") {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
}

func TestHotCommandsAllocateNothing(t *testing.T) {
	ss := map[Type][]byte{}
	for _, s := range samples() {
		f, _, _ := Split(s.frame, 1<<20)
		ss[s.t] = f.Command
	}
	meta := OutMetadata{Producer: "p", HasKey: true, Key: []byte("k")}
	metadata := meta.Append(nil, nil)
	var ack Ack
	_ = ack.Parse(ss[TypeAck])
	dst := make([]byte, 0, 4096)
	var m Metadata
	for name, f := range map[string]func(){
		"SEND":            func() { var c Send; _ = c.Parse(ss[TypeSend]) },
		"FLOW":            func() { var c Flow; _ = c.Parse(ss[TypeFlow]) },
		"ACK":             func() { _ = ack.Parse(ss[TypeAck]) },
		"MessageMetadata": func() { _ = m.Parse(metadata) },
		"SEND_RECEIPT": func() {
			c := SendReceipt{ProducerID: 1, SequenceID: 2, ID: MessageID{Ledger: 1, Entry: 2, Partition: -1, BatchIndex: -1}}
			c.Append(dst)
		},
		"MESSAGE": func() {
			c := Message{ConsumerID: 1, ID: MessageID{Ledger: 1, Entry: 2, Partition: -1, BatchIndex: -1}}
			c.Append(dst, 0, body)
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
