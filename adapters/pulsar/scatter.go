package pulsar

import (
	"fmt"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
)

// scattered is one message of a batch on its way to the partition of its key. Owned by the reader, reused.
type scattered struct {
	single wire.Single
	key    []byte
	at     int32
}

// scatter stores a batch on a topic that places by key. A batch whose messages belong to one partition is stored there as it
// came; of any other each message becomes an entry of its own, its bytes kept. Unkeyed messages stay where the client put
// them. The client counts the receipt as the place of the first message.
func (s *session) scatter(p *producer, e *core.Entry, m *wire.Metadata, pl *wire.Payload, token uint64) error {
	body, err := wire.Decompress(m.Compression, pl.Body, m.UncompressedSize, maxUncompressed)
	if err != nil {
		return fmt.Errorf("%w: %w", errMetadata, err)
	}
	free := p.topic.Place(nil, false, p.chosen())
	s.scattered = s.scattered[:0]
	together := true
	for range m.NumMessages {
		var x scattered
		if body, err = x.single.Next(body); err == nil {
			x.key, err = decodeKey(x.single.Key, x.single.KeyB64)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errMetadata, err)
		}
		x.at = free
		if x.single.HasKey {
			x.at = p.topic.Place(x.key, true, p.chosen())
		}
		s.scattered = append(s.scattered, x)
		together = together && x.at == s.scattered[0].at
	}
	defer clear(s.scattered) // they point into the read buffer
	if together {
		return p.store(s.scattered[0].at, e, m, token)
	}
	p.ring.expect(token, len(s.scattered))
	for i := range s.scattered {
		part := token
		if i > 0 {
			part |= follower
		}
		if err := s.publishOne(p, e, m, pl, i, part); err != nil {
			p.ring.giveUp(token, len(s.scattered)-i, err)
			return nil
		}
	}
	return nil
}

// publishOne stores one message of a batch as an entry.
func (s *session) publishOne(p *producer, batch *core.Entry, m *wire.Metadata, pl *wire.Payload, i int, token uint64) error {
	x := &s.scattered[i]
	e, err := unpacked(batch, m, pl, &x.single, int32(i), s.data)
	if err != nil {
		return fmt.Errorf("%w: %w", errMetadata, err)
	}
	s.data = e.Data
	return p.store(x.at, &e, m, token)
}
