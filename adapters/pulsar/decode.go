package pulsar

import (
	"encoding/base64"
	"fmt"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
)

// maxUncompressed bounds what a compressed body may become for a consumer of another protocol.
const maxUncompressed = 64 << 20

// Decode turns an entry as a Pulsar producer sent it into its messages: the Decoder of core.FormatPulsar. Encrypted
// messages and chunks cannot be read for consumers of other protocols.
func Decode(e *core.Entry, dst []core.Message) ([]core.Message, error) {
	n := len(dst)
	dst, err := decode(e, dst)
	if err != nil {
		return dst[:n], fmt.Errorf("pulsar message at offset %d: %w", e.Base, err)
	}
	return dst, nil
}

func decode(e *core.Entry, dst []core.Message) ([]core.Message, error) {
	p, m, err := opened(e)
	if err != nil {
		return dst, err
	}
	if m.Encrypted || m.HasChunk {
		return dst, fmt.Errorf("encrypted, or a chunk of a larger one: %w", core.ErrUnsupported)
	}
	body, err := bodyOf(&p, &m)
	if err != nil {
		return dst, err
	}
	if m.Batch {
		return decodeBatch(&m, body, dst)
	}
	return decodeOne(&m, p.Metadata, body, dst)
}

// opened reads the metadata of a stored message.
func opened(e *core.Entry) (p wire.Payload, m wire.Metadata, err error) {
	_, checked, err := stored(e)
	if err != nil {
		return p, m, err
	}
	if p, err = wire.ParseChecked(checked); err == nil {
		err = m.Parse(p.Metadata)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", core.ErrInvalid, err)
	}
	return p, m, err
}

// bodyOf is what its producer compressed.
func bodyOf(p *wire.Payload, m *wire.Metadata) ([]byte, error) {
	body, err := wire.Decompress(m.Compression, p.Body, m.UncompressedSize, maxUncompressed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", core.ErrInvalid, err)
	}
	return body, nil
}

func decodeOne(m *wire.Metadata, metadata, body []byte, dst []core.Message) ([]core.Message, error) {
	out := core.Message{
		HasKey: m.HasKey, OrderingKey: m.OrderingKey, Body: body, NullBody: m.NullValue, PublishTime: int64(m.PublishTime),
		EventTime: int64(m.EventTime), Producer: string(m.Producer), Sequence: int64(m.Sequence),
	}
	var err error
	if out.Key, err = decodeKey(m.Key, m.KeyB64); err != nil {
		return dst, err
	}
	if err := wire.MetadataProperties(metadata, collect(&out)); err != nil {
		return dst, fmt.Errorf("%w: %w", core.ErrInvalid, err)
	}
	return append(dst, out), nil
}

// decodeBatch takes a batch apart. Each message has its own key, properties, event time and sequence.
func decodeBatch(m *wire.Metadata, body []byte, dst []core.Message) ([]core.Message, error) {
	producer := string(m.Producer)
	for i := range m.NumMessages {
		var s wire.Single
		var err error
		if body, err = s.Next(body); err != nil {
			return dst, fmt.Errorf("message %d of the batch: %w: %w", i, core.ErrInvalid, err)
		}
		out := core.Message{
			HasKey: s.HasKey, OrderingKey: s.OrderingKey, Body: s.Body, NullBody: s.NullValue, PublishTime: int64(m.PublishTime),
			EventTime: int64(s.EventTime), Producer: producer, Sequence: int64(m.Sequence) + int64(i),
		}
		if s.HasSequence {
			out.Sequence = int64(s.Sequence)
		}
		if out.Key, err = decodeKey(s.Key, s.KeyB64); err != nil {
			return dst, err
		}
		if err := wire.SingleProperties(s.Raw, collect(&out)); err != nil {
			return dst, fmt.Errorf("message %d of the batch: %w: %w", i, core.ErrInvalid, err)
		}
		dst = append(dst, out)
	}
	return dst, nil
}

func decodeKey(key []byte, b64 bool) ([]byte, error) {
	if !b64 {
		return key, nil
	}
	k, err := base64.StdEncoding.AppendDecode(nil, key)
	if err != nil {
		return nil, fmt.Errorf("key: %w: %w", core.ErrInvalid, err)
	}
	return k, nil
}

// collect adds properties to a message; the one that stands for a tag becomes the tag.
func collect(m *core.Message) func(wire.KeyValue) {
	return func(kv wire.KeyValue) {
		if kv.Key == tagProperty && m.Tag == "" {
			m.Tag = kv.Value
			return
		}
		m.Properties = append(m.Properties, core.Property(kv))
	}
}
