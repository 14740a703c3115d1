package mqtt

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"time"

	"isthmus/adapters/mqtt/wire"
	"isthmus/adapters/serve"
	"isthmus/core/auth"
)

// CONNECT, versions 3.1, 3.1.1 and 5.
// Declined: sessions that outlive the connection (v5 is told session expiry 0, v3 session present 0), QoS 2 and
// retained messages (v5 is told so), enhanced authentication (0x8C). A will is checked and not sent.
// Spec: MQTT5 3.1, 3.2 [MQTT-3.1.2-4] [MQTT-3.1.3-5] [MQTT-3.2.0-1] [MQTT-3.2.2-2]; MQTT3 3.1, 3.2
func (s *Server) connect(ctx context.Context, c net.Conn, in *input, out *serve.Out) (*session, error) {
	ss := &session{
		srv: s, ctx: ctx, conn: c, in: in, out: out, limits: &s.limits,
		wake: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	ss.seen.Store(atWork)
	var p wire.Connect
	c.SetReadDeadline(time.Now().Add(s.cfg.ConnectTimeout))
	known := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) }) // nobody waits for a stranger
	err := ss.readConnect(&p)
	known()
	if err != nil {
		ss.refuseConnect(p.Version, err)
		return nil, err
	}
	c.SetReadDeadline(time.Time{})
	ack, err := ss.accept(&p)
	if err == nil {
		err = s.clients.claim(ctx, ss)
	}
	if err != nil {
		ss.refuseConnect(p.Version, err)
		return nil, err
	}
	if ctx.Err() != nil { // it came too late to be told with the others
		ss.stop(errShutdown)
	}
	out.OnDrained(ss.pump)
	out.Append(func(dst []byte) []byte { return ack.Append(dst, ss.version) })
	s.log.Debug("client connected", "client_id", ss.id, "conn", c.RemoteAddr().String(), "version", int(ss.version))
	return ss, nil
}

// readConnect waits for the first packet. A stranger's other packet is refused at its first byte, and a long one
// at its length.
// Spec: MQTT5 3.1.0 [MQTT-3.1.0-1]; MQTT3 3.1 [MQTT-3.1.0-1]
func (s *session) readConnect(p *wire.Connect) error {
	for {
		if err := s.in.fill(); err != nil {
			return err
		}
		h, body, n, err := wire.Split(s.in.bytes(), wire.V311, connectPacket)
		switch {
		case err != nil:
			return err
		case h.Type != wire.CONNECT:
			return refuse(wire.ProtocolError, "first packet is "+h.Type.String())
		case n > 0:
			if err := p.Parse(body, s.limits); err != nil {
				return err
			}
			s.version = p.Version
			s.id, s.username = string(p.ClientID), string(p.Username)
			s.keepAlive = int64(p.KeepAlive)
			defer s.in.consume(n)
			return s.authenticate(p)
		}
	}
}

func (s *session) authenticate(p *wire.Connect) error {
	if p.Properties.Has(wire.AuthMethod) {
		// Spec: MQTT5 4.12.0 [MQTT-4.12.0-1]
		return refuse(wire.BadAuthMethod, "enhanced authentication")
	}
	var err error
	if s.principal, err = s.srv.au.Authenticate(s.ctx, auth.Credentials{
		Protocol: protocol, Listener: s.srv.cfg.Listener, Remote: s.conn.RemoteAddr().String(),
		ClientID: s.id, Username: s.username, Password: append([]byte(nil), p.Password...),
	}); err != nil {
		return err
	}
	return s.srv.ac.Allow(s.principal, auth.Connect, s.id)
}

// accept checks what the packet asks of a session, sets the session up and writes its CONNACK.
func (s *session) accept(p *wire.Connect) (wire.Connack, error) {
	var ack wire.Connack
	if w := p.Will; w != nil && s.version == wire.V5 {
		// Spec: MQTT5 3.2.2.3.4 [MQTT-3.2.2-12]; MQTT5 3.2.2.3.5 [MQTT-3.2.2-13]
		if w.QoS == 2 {
			return ack, refuse(wire.QoSNotSupported, "will of QoS 2")
		}
		if w.Retain {
			return ack, refuse(wire.RetainNotSupported, "retained will")
		}
	}
	if s.id == "" {
		// Spec: MQTT3 3.1.3.1 [MQTT-3.1.3-8]
		if s.version < wire.V5 && !p.CleanStart {
			return ack, refuse(wire.ClientIDNotValid, "no client id and no clean session")
		}
		// Spec: MQTT5 3.1.3.1 [MQTT-3.1.3-6] [MQTT-3.2.2-16]
		s.id = "auto-" + rand.Text()
		ack.Properties.SetText(wire.AssignedClientID, []byte(s.id))
	}
	cfg := &s.srv.cfg
	s.maxPacket = int(p.Properties.Num(wire.MaximumPacketSize, 0))
	window := min(cfg.MaxInflight, int(p.Properties.Num(wire.ReceiveMaximum, 65535)))
	s.outbox.init(window, cfg)
	s.ring.limit = cfg.ReceiveMaximum
	s.publisher.aliases = aliases{max: cfg.TopicAliases}
	if s.version < wire.V5 {
		return ack, nil
	}
	s.announce(p, &ack)
	// Spec: MQTT5 3.1.2.11.4 [MQTT-3.1.2-24]
	if s.maxPacket > 0 && len(ack.Append(nil, s.version)) > s.maxPacket {
		return ack, refuse(wire.PacketTooLarge, "CONNACK exceeds the client's maximum packet size")
	}
	return ack, nil
}

// announce tells a version 5 client what this server does differently from the defaults of the standard.
// Spec: MQTT5 3.2.2.3 [MQTT-3.2.2-9]
func (s *session) announce(p *wire.Connect, ack *wire.Connack) {
	cfg, props := &s.srv.cfg, &ack.Properties
	if p.Properties.Num(wire.SessionExpiry, 0) != 0 {
		props.SetNum(wire.SessionExpiry, 0)
	}
	props.SetNum(wire.ReceiveMaximum, uint32(cfg.ReceiveMaximum))
	props.SetNum(wire.MaximumQoS, 1)
	props.SetNum(wire.RetainAvailable, 0)
	props.SetNum(wire.MaximumPacketSize, uint32(s.limits.Packet))
	props.SetNum(wire.TopicAliasMaximum, uint32(cfg.TopicAliases))
	// Spec: MQTT5 3.1.2.10 [MQTT-3.1.2-21]
	if most := int64(cfg.MaxKeepAlive / time.Second); most > 0 && (s.keepAlive == 0 || s.keepAlive > most) {
		s.keepAlive = most
		props.SetNum(wire.ServerKeepAlive, uint32(most))
	}
}

// refuseConnect answers a CONNECT that is not accepted, where its version has an answer.
// Spec: MQTT5 3.1.4 [MQTT-3.1.4-1]; MQTT3 3.1.4 [MQTT-3.1.4-1]
func (s *session) refuseConnect(v wire.Version, err error) {
	var ack wire.Connack
	var w *wire.Error
	isWire := errors.As(err, &w)
	switch {
	case lost(err):
		return
	case isWire && w.Reason == wire.UnsupportedVersion:
		// Spec: MQTT3 3.1.2.2 [MQTT-3.1.2-2]: a level nobody knows is answered in the oldest form.
		v, ack.Reason = wire.V311, wire.V3UnsupportedVersion
	case v == wire.V5 && isWire:
		ack.Reason = w.Reason
	case v == wire.V5:
		ack.Reason = codesOf(err).connack
	case isWire && w.Reason == wire.ClientIDNotValid:
		ack.Reason = wire.V3IDRejected
	case v == wire.V31 || v == wire.V311:
		if ack.Reason = codesOf(err).v3; isWire || ack.Reason == closed {
			return
		}
	default:
		return
	}
	if v == wire.V5 && !ack.Reason.Legal(wire.CONNACK) {
		ack.Reason = wire.UnspecifiedError
	}
	s.out.Append(func(dst []byte) []byte { return ack.Append(dst, v) })
}
