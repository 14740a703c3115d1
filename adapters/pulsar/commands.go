package pulsar

import (
	"fmt"

	"isthmus/adapters/pulsar/wire"
)

// handle acts on one frame. An error ends the session.
func (s *session) handle(f wire.Frame) error {
	if !s.client.connected {
		if f.Type != wire.TypeConnect {
			return fmt.Errorf("before CONNECT: %w", errProtocol)
		}
		return s.connect(f.Command)
	}
	switch f.Type {
	case wire.TypeSend:
		return s.publish(f)
	case wire.TypeAck:
		return s.acknowledge(f.Command)
	case wire.TypeFlow:
		return s.flow(f.Command)
	case wire.TypePing:
		s.send(wire.TypePong, nil)
		return nil
	case wire.TypePong:
		return nil
	case wire.TypeConnect:
		// Spec: Pulsar CommandConnect: a second CONNECT closes the connection
		return fmt.Errorf("second CONNECT: %w", errProtocol)
	case wire.TypeLookup:
		return s.lookup(f.Command)
	case wire.TypePartitionedMetadata:
		return s.partitionedMetadata(f.Command)
	case wire.TypeProducer:
		return s.openProducer(f.Command)
	case wire.TypeCloseProducer:
		return s.closeProducer(f.Command)
	case wire.TypeSubscribe:
		return s.subscribe(f.Command)
	case wire.TypeUnsubscribe:
		return s.unsubscribe(f.Command)
	case wire.TypeCloseConsumer:
		return s.closeConsumer(f.Command)
	case wire.TypeRedeliver:
		return s.redeliver(f.Command)
	case wire.TypeSeek:
		return s.seek(f.Command)
	case wire.TypeGetLastMessageID:
		return s.lastMessageID(f.Command)
	case wire.TypeGetTopicsOfNamespace:
		return s.topicsOfNamespace(f.Command)
	case wire.TypeGetSchema:
		return s.getSchema(f.Command)
	case wire.TypeGetOrCreateSchema:
		return s.getOrCreateSchema(f.Command)
	case wire.TypeAuthResponse:
		return nil // nothing was challenged; a late answer does no harm
	}
	return s.unsupported(f)
}
