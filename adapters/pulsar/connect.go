package pulsar

import (
	"fmt"
	"strings"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

const (
	serverVersion = "Pulsar Server Isthmus" // C++ refuses an empty one
	serverMax     = 20                      // protocol version; 21 implies nothing that is served here
)

// CONNECT, protocol versions up to 20. Feature flag 5 is set: a client may ask for partitions without creating a topic.
// Deviates: a proxy's fields are ignored, because the gateway is where it leads.
// Spec: Pulsar CommandConnect: answered by CONNECTED or ERROR, never by a challenge, which Go and C++ cannot take
func (s *session) connect(b []byte) error {
	var q wire.Connect
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	c := auth.Credentials{
		Protocol: protocolName, Listener: s.srv.cfg.Bind, Remote: s.conn.RemoteAddr().String(), ClientID: q.ClientVersion,
		Method: q.AuthMethodName, Data: q.AuthData,
	}
	p, err := s.srv.auth.Authenticate(s.ctx, c)
	if err == nil {
		err = s.srv.access.Allow(p, auth.Connect, "")
	}
	if err != nil {
		return s.refuse(err)
	}
	s.client = client{
		connected: true, version: q.ClientVersion, isGo: strings.HasPrefix(q.ClientVersion, "Pulsar Go") || strings.HasPrefix(q.ClientVersion, "Pulsar-Go"),
		protocol: q.ProtocolVersion, principal: p,
	}
	// Spec: Pulsar CommandConnected.protocol_version: the lower of both sides
	s.send(wire.TypeConnected, &wire.Connected{
		ServerVersion: serverVersion, ProtocolVersion: min(serverMax, q.ProtocolVersion),
		MaxMessageSize: int32(s.srv.cfg.MaxMessageSize), Features: wire.Features{MetadataWithoutCreation: true},
	})
	s.log.Debug("connected", "client", q.ClientVersion, "protocol_version", q.ProtocolVersion, "principal", p.Name)
	return nil
}

// refuse answers a failed handshake and closes.
// Spec: Pulsar CommandError: request id 2^64-1 and AuthenticationError, then close after the flush
func (s *session) refuse(err error) error {
	message := "Failed to authenticate" // what clients know; the cause is for our log alone
	if codeOf(err) != wire.AuthenticationError && codeOf(err) != wire.AuthorizationError {
		message = err.Error()
	}
	s.send(wire.TypeError, &wire.Error{RequestID: wire.NoRequest, Code: codeOf(err), Message: message})
	s.log.Warn("authentication failed", "err", err)
	return fmt.Errorf("handshake: %w", err)
}

// allow asks whether the client may do one of these with a topic.
func (s *session) allow(name core.TopicName, actions ...auth.Action) error {
	return s.srv.mayDo(s.client.principal, name, actions...)
}

func (s *Server) mayDo(p auth.Principal, name core.TopicName, actions ...auth.Action) (err error) {
	for _, a := range actions {
		if err = s.access.Allow(p, a, name.String()); err == nil {
			return nil
		}
	}
	return err
}
