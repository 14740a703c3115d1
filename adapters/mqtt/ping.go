package mqtt

import "isthmus/adapters/mqtt/wire"

// PINGREQ, all versions. It is answered however full the client's window is.
// Spec: MQTT5 3.12.4 [MQTT-3.12.4-1]; MQTT3 3.12.4 [MQTT-3.12.4-1]
func (s *session) ping(body []byte) error {
	if err := wire.ParsePing(body); err != nil {
		return err
	}
	_, err := s.out.Append(func(dst []byte) []byte { return wire.AppendPing(dst, wire.PINGRESP) })
	return err
}
