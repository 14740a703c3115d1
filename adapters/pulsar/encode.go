package pulsar

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// foreignProducer is the producer name of messages whose producer has none: it must not be empty.
const foreignProducer = "isthmus"

// tagProperty is where a tag travels: Pulsar has none.
const tagProperty = "TAGS"

// stored splits the bytes of an entry in Pulsar's form.
func stored(e *core.Entry) (sum uint32, checked []byte, err error) {
	if len(e.Data) < 8 {
		return 0, nil, fmt.Errorf("stored message of %d bytes: %w", len(e.Data), core.ErrInvalid)
	}
	return binary.BigEndian.Uint32(e.Data), e.Data[4:], nil
}

// appendForeign writes the messages of an entry of another protocol, each as a message of its own at (ledger, offset).
// It runs under Out's lock, which guards the scratch.
func (c *consumer) appendForeign(dst []byte, m *wire.Message, d *engine.Delivery) ([]byte, error) {
	s := c.sess
	var err error
	if s.foreign, err = s.srv.eng.Messages(&d.Entry, s.foreign[:0]); err != nil {
		return dst, err
	}
	for i := range s.foreign {
		at := d.Entry.Base + int64(i)
		if covered(d.Acked, at) {
			continue
		}
		m.ID.Entry = uint64(at)
		s.encoded = encode(s.encoded[:0], &s.foreign[i])
		dst = m.Append(dst, wire.Checksum(s.encoded), s.encoded)
	}
	clear(s.foreign) // do not keep the entry's bytes
	return dst, nil
}

func covered(rs []core.Range, at core.Offset) bool {
	for _, r := range rs {
		if at >= r.From && at < r.To {
			return true
		}
	}
	return false
}

// encode appends metadata size, metadata and body of a message. The same message always gives the same bytes.
// An empty body without properties becomes a batch of one: the Go client (0.19) takes the plain form for a corrupt message.
func encode(dst []byte, m *core.Message) []byte {
	out := wire.OutMetadata{
		Producer: m.Producer, Sequence: uint64(max(m.Sequence, 0)), PublishTime: uint64(max(m.PublishTime, 0)),
		EventTime: uint64(max(m.EventTime, 0)), OrderingKey: m.OrderingKey, HasKey: m.HasKey, Key: m.Key, NullValue: m.NullBody,
	}
	if out.Producer == "" {
		out.Producer = foreignProducer
	}
	if m.HasKey && !utf8.Valid(m.Key) {
		out.Key, out.KeyB64 = base64.StdEncoding.AppendEncode(nil, m.Key), true
	}
	body, batch := m.Body, len(m.Body) == 0 && len(m.Properties) == 0 && len(m.Routed) == 0 && m.Tag == ""
	if batch {
		body, out.Batch = out.AppendSingle(nil), true
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = out.Append(dst, func(dst []byte) []byte {
		for _, list := range [2][]core.Property{m.Properties, m.Routed} {
			for i := range list {
				dst = wire.AppendProperty(dst, list[i].Key, list[i].Value)
			}
		}
		if m.Tag != "" {
			dst = wire.AppendProperty(dst, tagProperty, m.Tag)
		}
		return dst
	})
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return append(dst, body...)
}
