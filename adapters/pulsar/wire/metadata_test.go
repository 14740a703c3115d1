package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

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
		highest_sequence_id:8 null_value:true uuid:"u" chunk_id:1 encryption_keys:{key:"k" value:"v"} schema_version:"\x01"`)
	var m Metadata
	if err := m.Parse(b); err != nil {
		t.Fatal(err)
	}
	want := Metadata{
		Producer: []byte("p"), Sequence: 7, PublishTime: 1700000000000, HasKey: true, Key: []byte("a2V5"), KeyB64: true,
		HasOrdering: true, OrderingKey: []byte("o"), Compression: CompressionZSTD, UncompressedSize: 99, Batch: true, NumMessages: 1,
		EventTime: 5, Encrypted: true, Highest: 8, HasHighest: true, NullValue: true, HasChunk: true,
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("\n got %+v\nwant %+v", m, want)
	}
	var kvs []KeyValue
	if err := MetadataProperties(b, func(kv KeyValue) { kvs = append(kvs, kv) }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(kvs, []KeyValue{{"a", "1"}, {"a", ""}}) {
		t.Errorf("properties %v", kvs)
	}
	for i := range b {
		if err := m.Parse(b[:i]); err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

func TestOutMetadataIsWhatTheClientReads(t *testing.T) {
	out := OutMetadata{
		Producer: "isthmus", Sequence: 3, PublishTime: 4, HasKey: true, Key: []byte("a2V5"), KeyB64: true, OrderingKey: []byte("o"),
		EventTime: 9, NullValue: true, Batch: true,
	}
	b := out.Append(nil, func(add func(k, v string)) { add("a", "1"); add("b", "") })
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
	var s Single
	rest, err := s.Next(out.AppendSingle(nil))
	if err != nil || len(rest) != 0 || string(s.Key) != "a2V5" || !s.KeyB64 || string(s.OrderingKey) != "o" || s.EventTime != 9 || !s.NullValue || s.Sequence != 3 {
		t.Errorf("single %+v, %d left, %v", s, len(rest), err)
	}
}

func TestBatchOfTheClient(t *testing.T) {
	one := clients(t, "SingleMessageMetadata", `properties:{key:"a" value:"1"} partition_key:"k" payload_size:3 event_time:4 ordering_key:"o" sequence_id:5`)
	batch := append(append([]byte{0, 0, 0, byte(len(one))}, one...), "abc"...)
	var s Single
	rest, err := s.Next(append(batch[:len(batch):len(batch)], batch...))
	if err != nil || string(s.Body) != "abc" || string(s.Key) != "k" || s.EventTime != 4 || string(s.OrderingKey) != "o" || !s.HasSequence || s.Sequence != 5 {
		t.Fatalf("%+v %v", s, err)
	}
	if !bytes.Equal(rest, batch) {
		t.Fatal("rest")
	}
	for i := range batch {
		if _, err := s.Next(batch[:i]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}
