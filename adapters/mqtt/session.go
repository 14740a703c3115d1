package mqtt

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"sync/atomic"
	"time"

	"isthmus/adapters/mqtt/wire"
	"isthmus/adapters/serve"
	"isthmus/core/auth"
)

// Why the server ends a connection.
var (
	errTakenOver = refuse(wire.SessionTakenOver, "another connection uses the client id")
	errKeepAlive = refuse(wire.KeepAliveTimeout, "silent for longer than its keep alive")
	errShutdown  = refuse(wire.ServerShuttingDown, "server stops")
	errSlow      = refuse(wire.QuotaExceeded, "does not take what it subscribed to")
	errGoodbye   = errors.New("client disconnected") // the client's own farewell: nothing is answered
)

// session is one connected client, owned by the goroutine that reads its connection. What others touch says so.
type session struct {
	srv       *Server
	ctx       context.Context
	conn      net.Conn
	in        *input
	out       *serve.Out // any goroutine
	id        string
	username  string
	principal auth.Principal
	version   wire.Version
	keepAlive int64 // seconds, 0: none
	maxPacket int   // the client's limit, 0: none
	limits    *wire.Limits

	publisher publisher
	subs      map[string]*subscription

	ring    ring         // guarded by out
	outbox  outbox       // guarded by out
	starved atomic.Bool  // the outbox's queue waits for the socket
	fan     fanMark      // owned by the fan-out goroutine
	seen    atomic.Int64 // tick since which the reader waits for the client, or atWork
	why     atomic.Pointer[error]
	wake    chan struct{} // capacity 1: the ring has room again, or the session is stopped
	gone    chan struct{} // closed when nothing of the session is left in the server
}

// stop ends the session from any goroutine; the first reason counts. The reader says it to the client.
func (s *session) stop(err error) {
	if s.why.CompareAndSwap(nil, &err) {
		s.conn.SetReadDeadline(time.Unix(1, 0))
		s.ring.nudge(s.wake)
	}
}

func (s *session) stopped() error {
	if p := s.why.Load(); p != nil {
		return *p
	}
	return nil
}

// run reads until the connection ends: everything the socket has is handled before one flush.
func (s *session) run() {
	for {
		if err := s.drain(); err != nil {
			s.stop(err)
			return
		}
		if s.flush() != nil {
			return
		}
		s.seen.Store(s.srv.tick.Load())
		err := s.in.fill()
		s.seen.Store(atWork)
		if err != nil {
			s.stop(err)
			return
		}
	}
}

// atWork instead of a tick: the reader handles what came, and may wait for the disk. That is not the client's silence.
const atWork = math.MaxInt64

// drain handles all whole packets of the read buffer.
func (s *session) drain() error {
	s.publisher.now = 0
	for {
		if err := s.stopped(); err != nil {
			return err
		}
		h, body, n, err := wire.Split(s.in.bytes(), s.version, s.limits.Packet)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if err := s.handle(h, body); err != nil {
			return err
		}
		s.in.consume(n)
	}
}

// handle is the table of what a client may send after CONNECT.
// Spec: MQTT5 2.1.2; MQTT5 3.1.0 [MQTT-3.1.0-2]; MQTT3 3.1 [MQTT-3.1.0-2]
func (s *session) handle(h wire.Header, body []byte) error {
	switch h.Type {
	case wire.PUBLISH:
		return s.publish(h, body)
	case wire.PUBACK:
		return s.puback(body)
	case wire.PUBREC, wire.PUBREL, wire.PUBCOMP:
		return s.qos2(h.Type, body)
	case wire.SUBSCRIBE:
		return s.subscribe(body)
	case wire.UNSUBSCRIBE:
		return s.unsubscribe(body)
	case wire.PINGREQ:
		return s.ping(body)
	case wire.DISCONNECT:
		return s.disconnect(body)
	case wire.CONNECT:
		return refuse(wire.ProtocolError, "second CONNECT")
	case wire.CONNACK, wire.SUBACK, wire.UNSUBACK, wire.PINGRESP, wire.AUTH:
	}
	return refuse(wire.ProtocolError, h.Type.String()+" from a client")
}

// end takes the session out of the server, says why to the client, and closes. The next connection of the client
// id may begin as soon as nothing of this one is left inside; the farewell may take longer.
func (s *session) end() {
	s.stop(errors.New("connection handler ended")) // only a panic comes here without a reason
	why := s.stopped()
	if errors.Is(why, errShutdown) {
		s.awaitAcks()
	}
	s.leaveAll()
	s.publisher.close()
	s.srv.clients.release(s)
	close(s.gone)
	s.farewell(why)
	s.out.Close(linger)
	s.in.release()
	s.srv.log.Info("client left", "client_id", s.id, "conn", s.conn.RemoteAddr().String(), "err", why)
}

// farewell is the DISCONNECT of the server, which version 3 does not have. Nothing follows it.
// Spec: MQTT5 4.13.1 [MQTT-4.13.1-1]; MQTT5 3.14 [MQTT-3.14.0-1]; MQTT5 3.14.4
func (s *session) farewell(why error) {
	if s.version < wire.V5 || errors.Is(why, errGoodbye) || lost(why) {
		return
	}
	d := wire.Disconnect{Reason: reasonOf(why)}
	if !d.Reason.Legal(wire.DISCONNECT) {
		d.Reason = wire.UnspecifiedError
	}
	s.out.Last(func(dst []byte) []byte { return d.Append(dst, wire.DISCONNECT, s.version) })
}

// lost tells whether the connection itself failed.
func lost(err error) bool {
	var n net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &n) || errors.Is(err, serve.ErrSlow)
}

// awaitAcks gives publishes that are on their way to the disk the time to be acknowledged before the server leaves.
func (s *session) awaitAcks() {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	for !s.ringEmpty() {
		select {
		case <-s.wake:
		case <-t.C:
			return
		}
	}
}
