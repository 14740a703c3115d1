package mqtt

import "isthmus/adapters/mqtt/wire"

// DISCONNECT from the client, all versions.
// Spec: MQTT5 3.14; MQTT3 3.14
func (s *session) disconnect(body []byte) error {
	var p wire.Disconnect
	if err := p.Parse(wire.DISCONNECT, body, s.version, s.limits); err != nil {
		return err
	}
	// Spec: MQTT5 3.14.2.2.2: the session expiry granted at CONNECT was 0, so it cannot become another.
	if p.Properties.Num(wire.SessionExpiry, 0) != 0 {
		return refuse(wire.ProtocolError, "session expiry changed from 0")
	}
	return errGoodbye
}
