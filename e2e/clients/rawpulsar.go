package clients

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Command types of PulsarApi.proto that the raw client speaks; a sub-message's field number is its type.
const (
	pConnect, pConnected         = 2, 3
	pSubscribe, pProducer, pSend = 4, 5, 6
	pMessage, pAck, pFlow        = 9, 10, 11
	pSuccess, pError             = 13, 14
	pPing, pPong                 = 18, 19
	pMetadata, pMetadataResponse = 21, 22
	pLookup, pLookupResponse     = 23, 24
	pAckResponse                 = 38
)

// RawPulsar asks what stock clients refuse to ask: they check topic names and acknowledgement types themselves.
type RawPulsar struct {
	net.Conn
	request uint64
}

// Fields builds a protobuf message from number, value pairs; values are string, []byte, int or uint64.
func Fields(pairs ...any) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		n := protowire.Number(pairs[i].(int))
		switch v := pairs[i+1].(type) {
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
		case uint64:
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
		default:
			panic(fmt.Sprintf("field %d: %T", n, v))
		}
	}
	return b
}

// PulsarFrame encodes one simple command.
func PulsarFrame(kind int, body []byte) []byte {
	cmd := Fields(1, kind, kind, body)
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(cmd)))
	return append(binary.BigEndian.AppendUint32(b, uint32(len(cmd))), cmd...)
}

// PulsarSendFrame encodes SEND with its checksum, metadata and payload.
func PulsarSendFrame(producer, sequence uint64, payload []byte) []byte {
	cmd := Fields(1, pSend, pSend, Fields(1, producer, 2, sequence))
	meta := Fields(1, "raw", 2, sequence, 3, uint64(time.Now().UnixMilli()))
	summed := append(binary.BigEndian.AppendUint32(nil, uint32(len(meta))), meta...)
	summed = append(summed, payload...)
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(cmd)+6+len(summed)))
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(cmd))), cmd...)
	b = binary.BigEndian.AppendUint16(b, 0x0e01)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(summed, crc32.MakeTable(crc32.Castagnoli)))
	return append(b, summed...)
}

// Frames of a good conversation, for tests that cut one.
func PulsarConnectFrame() []byte { return PulsarFrame(pConnect, Fields(1, "raw", 4, 19)) }
func PulsarProducerFrame(topic string) []byte {
	return PulsarFrame(pProducer, Fields(1, topic, 2, 1, 3, 1))
}
func PulsarSubscribeFrame(topic, sub string) []byte {
	return PulsarFrame(pSubscribe, Fields(1, topic, 2, sub, 3, 1, 4, 1, 5, 2))
}

// DialRawPulsar connects and waits for CONNECTED.
func DialRawPulsar(addr string) (*RawPulsar, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	r := &RawPulsar{Conn: c}
	if _, err := c.Write(PulsarConnectFrame()); err != nil {
		return nil, err
	}
	_, err = r.Await(pConnected)
	return r, err
}

// Answer is one command from the gateway: scalar and nested fields by number, the last one of each.
type Answer struct {
	Type    int
	Ints    map[int]uint64
	Bytes   map[int][]byte
	Payload []byte
}

func parseAnswer(b []byte) (Answer, error) {
	a := Answer{Ints: map[int]uint64{}, Bytes: map[int][]byte{}}
	for len(b) > 0 {
		n, t, k := protowire.ConsumeTag(b)
		if k < 0 {
			return a, protowire.ParseError(k)
		}
		b = b[k:]
		switch t {
		case protowire.VarintType:
			v, k := protowire.ConsumeVarint(b)
			if k < 0 {
				return a, protowire.ParseError(k)
			}
			a.Ints[int(n)], b = v, b[k:]
		case protowire.BytesType:
			v, k := protowire.ConsumeBytes(b)
			if k < 0 {
				return a, protowire.ParseError(k)
			}
			a.Bytes[int(n)], b = v, b[k:]
		default:
			return a, fmt.Errorf("field %d of wire type %d", n, t)
		}
	}
	return a, nil
}

// Next reads one frame within ten seconds.
func (r *RawPulsar) Next() (Answer, error) {
	r.SetReadDeadline(time.Now().Add(10 * time.Second))
	var head [8]byte
	if _, err := io.ReadFull(r.Conn, head[:]); err != nil {
		return Answer{}, err
	}
	total, size := binary.BigEndian.Uint32(head[:4]), binary.BigEndian.Uint32(head[4:])
	if total > 6<<20 || size+4 > total {
		return Answer{}, fmt.Errorf("frame of %d bytes with a command of %d", total, size)
	}
	b := make([]byte, total-4)
	if _, err := io.ReadFull(r.Conn, b); err != nil {
		return Answer{}, err
	}
	base, err := parseAnswer(b[:size])
	if err != nil {
		return Answer{}, err
	}
	kind := int(base.Ints[1])
	a, err := parseAnswer(base.Bytes[kind])
	a.Type, a.Payload = kind, b[size:]
	return a, err
}

// Await reads until one of the wanted types comes; PINGs are answered on the way.
func (r *RawPulsar) Await(kinds ...int) (Answer, error) {
	for {
		a, err := r.Next()
		if err != nil {
			return a, err
		}
		if a.Type == pPing {
			r.Write(PulsarFrame(pPong, nil))
		}
		for _, k := range kinds {
			if a.Type == k {
				return a, nil
			}
		}
	}
}

// Lookup returns the answer's error code and message; code -1 means accepted.
func (r *RawPulsar) Lookup(topic string) (int, string, error) {
	r.request++
	r.Write(PulsarFrame(pLookup, Fields(1, topic, 2, r.request)))
	a, err := r.Await(pLookupResponse)
	if err != nil {
		return 0, "", err
	}
	if a.Ints[3] == 2 {
		return int(a.Ints[6]), string(a.Bytes[7]), nil
	}
	return -1, "", nil
}

// Metadata returns the partition count, or the error code as a negative number.
func (r *RawPulsar) Metadata(topic string) (int, error) {
	r.request++
	r.Write(PulsarFrame(pMetadata, Fields(1, topic, 2, r.request)))
	a, err := r.Await(pMetadataResponse)
	if err != nil {
		return 0, err
	}
	if a.Ints[3] == 1 {
		return -int(a.Ints[4]), nil
	}
	return int(a.Ints[1]), nil
}

// Subscribe attaches consumer id with a subscription type, from the earliest message. Non-nil error: refused.
func (r *RawPulsar) Subscribe(id int, topic, sub, name string, kind int) error {
	r.request++
	r.Write(PulsarFrame(pSubscribe, Fields(1, topic, 2, sub, 3, kind, 4, id, 5, r.request, 6, name, 13, 1)))
	a, err := r.Await(pSuccess, pError)
	if err == nil && a.Type == pError {
		err = fmt.Errorf("refused: %d %s", a.Ints[2], a.Bytes[3])
	}
	return err
}

func (r *RawPulsar) Flow(id, permits int) error {
	_, err := r.Write(PulsarFrame(pFlow, Fields(1, id, 2, permits)))
	return err
}

// NextMessage waits for a MESSAGE and returns its consumer, ledger, entry and redelivery count.
func (r *RawPulsar) NextMessage() (ledger, entry uint64, redelivery int, err error) {
	a, err := r.Await(pMessage)
	if err != nil {
		return 0, 0, 0, err
	}
	id, err := parseAnswer(a.Bytes[2])
	return id.Ints[1], id.Ints[2], int(a.Ints[3]), err
}

// Ack acknowledges with a request id and waits for the answer. kind: 0 individual, 1 cumulative.
func (r *RawPulsar) Ack(id, kind int, ledger, entry uint64) error {
	r.request++
	r.Write(PulsarFrame(pAck, Fields(1, id, 2, kind, 3, Fields(1, ledger, 2, entry), 8, r.request)))
	a, err := r.Await(pAckResponse)
	if err == nil && len(a.Bytes[5]) > 0 {
		err = fmt.Errorf("ack refused: %s", a.Bytes[5])
	}
	return err
}
