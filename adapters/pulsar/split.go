package pulsar

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
)

// Split takes a batch apart for a key_shared group: the engine.Splitter of core.FormatPulsar. A batch of one key stays
// whole; of any other each message gets the metadata that it would have had outside, and keeps its bytes.
func Split(e *core.Entry, dst []core.Entry) ([]core.Entry, error) {
	n := len(dst)
	dst, err := split(e, dst)
	if err != nil {
		return dst[:n], fmt.Errorf("pulsar batch at offset %d: %w", e.Base, err)
	}
	return dst, nil
}

func split(e *core.Entry, dst []core.Entry) ([]core.Entry, error) {
	p, m, err := opened(e)
	if err != nil {
		return dst, err
	}
	if !m.Batch || m.Encrypted || m.HasChunk {
		return append(dst, *e), nil
	}
	body, err := bodyOf(&p, &m)
	if err != nil {
		return dst, err
	}
	whole, same, err := oneKey(e, &m, body)
	if err != nil || same {
		return append(dst, whole), err
	}
	for i := range m.NumMessages {
		var x wire.Single
		if body, err = x.Next(body); err != nil {
			return dst, fmt.Errorf("message %d: %w: %w", i, core.ErrInvalid, err)
		}
		one, err := unpacked(e, &m, &p, &x, i, nil)
		if err != nil {
			return dst, fmt.Errorf("message %d: %w", i, err)
		}
		one.Base = e.Base + core.Offset(i)
		dst = append(dst, one)
	}
	return dst, nil
}

// oneKey looks whether all messages of a batch have the key, or the ordering key, of the first, and returns the batch under it.
func oneKey(e *core.Entry, m *wire.Metadata, body []byte) (whole core.Entry, same bool, err error) {
	var first wire.Single
	same = true
	for i := range m.NumMessages {
		var x wire.Single
		if body, err = x.Next(body); err != nil {
			return *e, false, fmt.Errorf("message %d: %w: %w", i, core.ErrInvalid, err)
		}
		if i == 0 {
			first = x
		}
		same = same && x.HasKey == first.HasKey && x.KeyB64 == first.KeyB64 && bytes.Equal(x.Key, first.Key) && bytes.Equal(x.OrderingKey, first.OrderingKey)
	}
	whole = *e
	whole.OrderingKey = first.OrderingKey
	whole.Flags &^= core.FlagHasKey
	if whole.Key, err = decodeKey(first.Key, first.KeyB64); first.HasKey {
		whole.Flags |= core.FlagHasKey
	}
	return whole, same, err
}

// unpacked is one message of a batch as an entry of its own, its data written to buf. Base is still the batch's.
func unpacked(batch *core.Entry, m *wire.Metadata, p *wire.Payload, x *wire.Single, i int32, buf []byte) (e core.Entry, err error) {
	e = *batch
	e.Count, e.OrderingKey, e.Flags = 1, x.OrderingKey, batch.Flags&core.FlagSequenced
	if x.HasKey {
		e.Flags |= core.FlagHasKey
	}
	if x.NullValue {
		e.Flags |= core.FlagNullBody
	}
	if e.Key, err = decodeKey(x.Key, x.KeyB64); err != nil {
		return e, err
	}
	sequence := m.Sequence + uint64(i)
	if x.HasSequence {
		sequence = x.Sequence
	}
	e.SeqLow, e.SeqHigh = int64(sequence), int64(sequence)
	buf = append(buf[:0], 0, 0, 0, 0, 0, 0, 0, 0) // checksum, size of the metadata
	if buf, err = x.AppendMetadata(buf, p.Metadata, sequence); err != nil {
		return e, fmt.Errorf("%w: %w", core.ErrInvalid, err)
	}
	binary.BigEndian.PutUint32(buf[4:], uint32(len(buf)-8))
	buf = append(buf, x.Body...)
	binary.BigEndian.PutUint32(buf, wire.Checksum(buf[4:]))
	e.Data = buf
	return e, nil
}
