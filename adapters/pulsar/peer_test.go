package pulsar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"isthmus/adapters/pulsar/wire"
	"isthmus/adapters/pulsar/wire/wiretest"
)

// Every command survives writing and reading, and the protocol's own decoder reads the same, with no field unknown to it
// and none of the required ones missing.
func TestCommandsAgainstTheClientsOwnMessages(t *testing.T) {
	base, err := protoregistry.GlobalTypes.FindMessageByName("pulsar.proto.BaseCommand")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range wiretest.Samples() {
		f, n, err := wire.Split(s.Frame, 1<<20)
		if err != nil || n != len(s.Frame) || f.Type != s.Type {
			t.Fatalf("%v: split %d of %d bytes, type %v: %v", s.Type, n, len(s.Frame), f.Type, err)
		}
		got := s.Fresh()
		if err := s.Parse(f.Command, got); err != nil || !reflect.DeepEqual(got, s.Want) {
			t.Errorf("%v: %v\n got %+v\nwant %+v", s.Type, err, got, s.Want)
		}
		raw := s.Frame[8 : len(s.Frame)-len(f.Payload)]
		m := base.New().Interface()
		if err := proto.Unmarshal(raw, m); err != nil {
			t.Errorf("%v: the client's decoder: %v", s.Type, err)
			continue
		}
		noUnknown(t, s.Type, m.ProtoReflect())
		again, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(again)+4))
		frame = append(binary.BigEndian.AppendUint32(frame, uint32(len(again))), again...)
		g, _, err := wire.Split(frame, 1<<20)
		if err != nil || g.Type != s.Type {
			t.Fatalf("%v: the client's encoding: %v", s.Type, err)
		}
		got = s.Fresh()
		if err := s.Parse(g.Command, got); err != nil || !reflect.DeepEqual(got, s.Want) {
			t.Errorf("%v written by the client: %v\n got %+v\nwant %+v", s.Type, err, got, s.Want)
		}
	}
}

// newer are messages with a field that the client's release does not have yet.
var newer = map[protoreflect.Name]bool{"FeatureFlags": true, "CommandPartitionedTopicMetadata": true}

func noUnknown(t *testing.T, typ wire.Type, m protoreflect.Message) {
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

// clients makes a message of the client's own type from its text form.
func clients(t testing.TB, name, text string) []byte {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("pulsar.proto." + name))
	if err != nil {
		t.Fatal(err)
	}
	m := mt.New().Interface()
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMetadataOfTheClient(t *testing.T) {
	b := clients(t, "MessageMetadata", `producer_name:"p" sequence_id:7 publish_time:1700000000000
		properties:{key:"a" value:"1"} properties:{key:"a" value:""} replicated_from:"x" partition_key:"a2V5" compression:ZSTD
		uncompressed_size:99 num_messages_in_batch:1 event_time:5 partition_key_b64_encoded:true ordering_key:"o" deliver_at_time:12
		highest_sequence_id:8 null_value:true uuid:"u" num_chunks_from_msg:3 chunk_id:1 encryption_keys:{key:"k" value:"v"} schema_version:"\x01"`)
	var m wire.Metadata
	if err := m.Parse(b); err != nil {
		t.Fatal(err)
	}
	want := wire.Metadata{
		Producer: []byte("p"), Sequence: 7, PublishTime: 1700000000000, HasKey: true, Key: []byte("a2V5"), KeyB64: true,
		HasOrdering: true, OrderingKey: []byte("o"), Compression: wire.CompressionZSTD, UncompressedSize: 99, Batch: true, NumMessages: 1,
		EventTime: 5, Encrypted: true, Highest: 8, HasHighest: true, NullValue: true, HasChunk: true, ChunkID: 1, Chunks: 3, DeliverAt: 12,
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("\n got %+v\nwant %+v", m, want)
	}
	var kvs []wire.KeyValue
	if err := wire.MetadataProperties(b, func(kv wire.KeyValue) { kvs = append(kvs, kv) }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(kvs, []wire.KeyValue{{Key: "a", Value: "1"}, {Key: "a", Value: ""}}) {
		t.Errorf("properties %v", kvs)
	}
	for i := range b {
		if err := m.Parse(b[:i]); err != nil && !errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

func TestOutMetadataIsWhatTheClientReads(t *testing.T) {
	out := wire.OutMetadata{
		Producer: "isthmus", Sequence: 3, PublishTime: 4, HasKey: true, Key: []byte("a2V5"), KeyB64: true, OrderingKey: []byte("o"),
		EventTime: 9, NullValue: true, Batch: true,
	}
	b := out.Append(nil, func(dst []byte) []byte { return wire.AppendProperty(wire.AppendProperty(dst, "a", "1"), "b", "") })
	mt, _ := protoregistry.GlobalTypes.FindMessageByName("pulsar.proto.MessageMetadata")
	got := mt.New().Interface()
	if err := proto.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	want := mt.New().Interface()
	if err := proto.Unmarshal(clients(t, "MessageMetadata", `producer_name:"isthmus" sequence_id:3 publish_time:4 properties:{key:"a" value:"1"}
		properties:{key:"b" value:""} partition_key:"a2V5" num_messages_in_batch:1 event_time:9 partition_key_b64_encoded:true ordering_key:"o" null_value:true`), want); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("\n got %v\nwant %v", got, want)
	}
	var s wire.Single
	rest, err := s.Next(out.AppendSingle(nil))
	if err != nil || len(rest) != 0 || string(s.Key) != "a2V5" || !s.KeyB64 || string(s.OrderingKey) != "o" || s.EventTime != 9 || !s.NullValue || s.Sequence != 3 {
		t.Errorf("single %+v, %d left, %v", s, len(rest), err)
	}
}

func TestBatchOfTheClient(t *testing.T) {
	one := clients(t, "SingleMessageMetadata", `properties:{key:"a" value:"1"} partition_key:"k" payload_size:3 event_time:4 ordering_key:"o" sequence_id:5`)
	batch := append(append([]byte{0, 0, 0, byte(len(one))}, one...), "abc"...)
	var s wire.Single
	rest, err := s.Next(append(batch[:len(batch):len(batch)], batch...))
	if err != nil || string(s.Body) != "abc" || string(s.Key) != "k" || s.EventTime != 4 || string(s.OrderingKey) != "o" || !s.HasSequence || s.Sequence != 5 {
		t.Fatalf("%+v %v", s, err)
	}
	if !bytes.Equal(rest, batch) {
		t.Fatal("rest")
	}
	for i := range batch {
		if _, err := s.Next(batch[:i]); !errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}
