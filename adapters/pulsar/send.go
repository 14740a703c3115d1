package pulsar

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// maxBatch bounds the messages of a batch; clients send a thousand unless they are told otherwise.
const maxBatch = 1 << 16

// SEND. What arrives is stored as it came, from the checksum on; of the metadata only what the engine needs is read.
// Deviates: a message that says of itself more than its body can hold is refused; deliver_at_time holds a message back for
// every kind of subscription and reader, not for Shared and Key_Shared alone.
// Spec: Pulsar CommandSend; one wire batch is one entry
func (s *session) publish(f wire.Frame) error {
	var c wire.Send
	if err := c.Parse(f.Command); err != nil {
		return err
	}
	p := s.producer(c.ProducerID)
	if p == nil {
		if s.recentlyClosed(c.ProducerID) {
			return nil
		}
		return fmt.Errorf("producer %d is not open: %w", c.ProducerID, errProtocol)
	}
	if p.ring.full() {
		_ = s.out.Flush() // before the reader waits
	}
	token, ok := p.ring.reserve(&c)
	if !ok {
		return nil
	}
	if err := s.submit(p, &c, f.Payload, token); err != nil {
		p.ring.fail(token, err)
	}
	return nil
}

// submit checks a message and gives it to the engine. An error means that no receipt will come.
func (s *session) submit(p *producer, c *wire.Send, payload []byte, token uint64) error {
	if c.HasID || c.Txn {
		return fmt.Errorf("message id or transaction in SEND: %w", errNotAllowed)
	}
	pl, err := wire.ParsePayload(payload)
	if err != nil {
		return fmt.Errorf("%w: %w", errMetadata, err)
	}
	sum := wire.Checksum(pl.Checked)
	if pl.HasSum && sum != pl.Sum {
		return fmt.Errorf("0x%08x, computed 0x%08x: %w", pl.Sum, sum, errChecksum)
	}
	var m wire.Metadata
	if err := m.Parse(pl.Metadata); err != nil {
		return fmt.Errorf("%w: %w", errMetadata, err)
	}
	if err := plausible(p, c, &m, len(pl.Body)); err != nil {
		return err
	}
	e := core.Entry{
		Count: m.NumMessages, Format: core.FormatPulsar, PublishTime: int64(m.PublishTime), Producer: m.Producer,
		OrderingKey: m.OrderingKey, SeqLow: int64(c.SequenceID), SeqHigh: highest(c, &m),
	}
	if err := s.keyOf(&e, &m); err != nil {
		return err
	}
	e.Flags |= flagsOf(&m)
	if pl.HasSum { // sum and message lie side by side already
		e.Data = payload[len(payload)-len(pl.Checked)-4:]
	} else {
		s.data = append(binary.BigEndian.AppendUint32(s.data[:0], sum), pl.Checked...)
		e.Data = s.data
	}
	e.Handle = max(p.chosen(), 0)
	if m.Batch && !m.Encrypted && (p.byKey || p.part == nil) {
		return s.scatter(p, &e, &m, &pl, token)
	}
	at := p.topic.Place(e.Key, e.Flags&core.FlagHasKey != 0, p.chosen())
	return p.store(at, &e, &m, token)
}

// store gives an entry to the engine: for its time, if it has one.
// Deviates: a delay that is too long is not NotAllowedError, after which Go's producer is dead.
// Spec: Pulsar MessageMetadata.deliver_at_time
func (p *producer) store(at int32, e *core.Entry, m *wire.Metadata, token uint64) error {
	err := p.pub.PublishAt(p.topic.Partition(at), e, m.DeliverAt, token)
	if errors.Is(err, engine.ErrDelayTooLong) {
		return fmt.Errorf("%w: %w", errMetadata, err)
	}
	return err
}

// chosen is the partition that the client chose, -1 when it left that to us.
func (p *producer) chosen() int32 {
	if p.part == nil {
		return -1
	}
	return p.part.Index()
}

// plausible refuses a message whose header cannot be true.
// Spec: Pulsar Producer.checkAndStartPublish: encryption, then the order of the two sequence ids
func plausible(p *producer, c *wire.Send, m *wire.Metadata, body int) error {
	if p.encrypted && !m.Encrypted {
		return fmt.Errorf("messages must be encrypted: %w", errMetadata)
	}
	if c.HasHighest && c.Highest < c.SequenceID {
		return fmt.Errorf("sequence ids %d to %d: %w", c.SequenceID, c.Highest, errMetadata)
	}
	const least = 6 // bytes of a message in a batch: size, and the field that says how long its body is
	if m.NumMessages > maxBatch {
		return fmt.Errorf("%d messages in a batch, at most %d: %w", m.NumMessages, maxBatch, errMetadata)
	}
	if m.Batch && !m.Encrypted && int64(m.NumMessages)*least > max(int64(body), int64(m.UncompressedSize)) {
		return fmt.Errorf("%d messages in %d bytes: %w", m.NumMessages, body, errMetadata)
	}
	return nil
}

func highest(c *wire.Send, m *wire.Metadata) int64 {
	if c.HasHighest {
		return int64(c.Highest)
	}
	return int64(c.SequenceID) + int64(m.NumMessages) - 1 // Go numbers the messages of a batch one by one
}

// keyOf sets the key of an entry; a binary key travels as base64.
func (s *session) keyOf(e *core.Entry, m *wire.Metadata) error {
	if !m.HasKey {
		return nil
	}
	e.Key, e.Flags = m.Key, e.Flags|core.FlagHasKey
	if !m.KeyB64 {
		return nil
	}
	var err error
	if s.key, err = base64.StdEncoding.AppendDecode(s.key[:0], m.Key); err != nil {
		return fmt.Errorf("%w: key: %w", errMetadata, err)
	}
	e.Key = s.key
	return nil
}

func flagsOf(m *wire.Metadata) core.Flags {
	f := core.FlagSequenced
	if m.NullValue {
		f |= core.FlagNullBody
	}
	if m.HasChunk {
		f |= core.FlagChunk
		if m.ChunkID < m.Chunks-1 {
			f |= core.FlagMoreChunks
		}
	}
	if m.Encrypted {
		f |= core.FlagEncrypted
	}
	return f
}
