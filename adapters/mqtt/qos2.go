package mqtt

import "isthmus/adapters/mqtt/wire"

// PUBREC, PUBREL and PUBCOMP, all versions. No exchange of QoS 2 is ever begun, so their ids are unknown.
// Spec: MQTT5 4.3.3; MQTT3 4.3.3
func (s *session) qos2(t wire.Type, body []byte) error {
	var p wire.Ack
	if err := p.Parse(t, body, s.version, s.limits); err != nil {
		return err
	}
	answer := wire.PUBCOMP
	switch {
	case t == wire.PUBREC && p.Reason < wire.UnspecifiedError:
		answer = wire.PUBREL
	case t == wire.PUBREL:
	default:
		return nil
	}
	_, err := s.out.Append(func(dst []byte) []byte {
		return wire.AppendAck(dst, answer, p.ID, wire.PacketIDNotFound, s.version)
	})
	return err
}
