package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/adapters/serve"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

const (
	firstBuffer = 1 << 10  // what a silent connection costs
	idleBuffer  = 64 << 10 // a larger one is given back once its frame is done
	outLimit    = 32 << 20 // bytes for a client that does not read; then it is closed
	outHigh     = 4 << 20  // from here on its requests wait
	lingerTime  = 100 * time.Millisecond
	rearmAfter  = 5 * time.Second
)

// session is one connection. Its reader goroutine owns everything but out and batches, which the committers share.
type session struct {
	srv       *Server
	conn      net.Conn
	out       *serve.Out
	drained   chan struct{} // capacity 1
	remote    netip.AddrPort
	store     netip.AddrPort // where this client reaches the broker
	principal auth.Principal
	producer  *engine.Producer
	armed     time.Time

	header     wire.Header
	send       wire.Send
	target     sendTarget
	scratch    []byte
	properties []byte                // of a message that is parked
	locks      map[lockKey]time.Time // queue locks and when they were granted

	batches batches
	kept    keeping
	flight  flight
	gone    atomic.Bool // nothing may be held for it any more
}

// serve is the handler of both listeners.
func (s *Server) serve(ctx context.Context, c net.Conn) {
	m := s.eng.Metrics()
	m.Connections.WithLabelValues(protocol).Inc()
	defer m.Connections.WithLabelValues(protocol).Dec()
	ses := &session{srv: s, conn: c, out: serve.NewOut(c, outLimit), drained: make(chan struct{}, 1), store: s.store, locks: make(map[lockKey]time.Time)}
	ses.remote = addrPort(c.RemoteAddr())
	if !ses.store.Addr().IsValid() {
		ses.store = netip.AddrPortFrom(addrPort(c.LocalAddr()).Addr(), s.store.Port())
	}
	ses.out.OnDrained(func() {
		select {
		case ses.drained <- struct{}{}:
		default:
		}
	})
	ses.flight.idle = make(chan struct{}, 1)
	ses.producer = s.eng.NewProducer(protocol, ses.sent)
	ses.producer.Wait(patience)
	defer ses.end()
	err := ses.authenticate(ctx)
	if err == nil {
		err = ses.run(ctx)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.log.Debug("connection ended", "protocol", protocol, "conn", c.RemoteAddr().String(), "err", err)
	}
}

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	}
	return netip.AddrPort{}
}

func (s *session) authenticate(ctx context.Context) error {
	p, err := s.srv.auth.Authenticate(ctx, auth.Credentials{Protocol: protocol, Remote: s.remote.String(), Listener: protocol})
	if err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	s.principal = p
	return s.allow(auth.Connect, "")
}

func (s *session) allow(a auth.Action, resource string) error {
	return s.srv.access.Allow(s.principal, a, resource)
}

// mayConsume asks whether the client may read a queue for a group. A queue that does not exist yet has nothing to hide.
func (s *session) mayConsume(p *engine.Partition, group string) error {
	if p == nil {
		return nil
	}
	return s.allow(auth.Consume, p.Topic().Name().String()+"#"+group)
}

// run reads until the client or ctx ends the connection: drain the socket, act on every frame, flush once.
func (s *session) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, 0, firstBuffer)
	for ctx.Err() == nil {
		s.arm()
		if ctx.Err() != nil { // arm may have undone the deadline that ctx set
			break
		}
		n, err := s.conn.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil {
			return err
		}
		if buf, err = s.drain(ctx, buf); err != nil {
			return err
		}
		if err = s.out.Flush(); err != nil {
			return err
		}
		if err = s.breathe(ctx); err != nil {
			return err
		}
	}
	return nil
}

// arm renews the idle deadline, seldom, since each time moves a timer.
func (s *session) arm() {
	if now := time.Now(); now.Sub(s.armed) > rearmAfter || s.armed.IsZero() {
		s.armed = now
		s.conn.SetReadDeadline(now.Add(s.srv.cfg.Idle))
	}
}

// drain acts on the whole frames in buf and returns the buffer to read on with. It grows as bytes arrive, never by what
// a length field promises.
func (s *session) drain(ctx context.Context, buf []byte) ([]byte, error) {
	at := 0
	for {
		f, n, err := wire.Next(buf[at:], wire.MaxFrame)
		if err != nil {
			return buf, err
		}
		if n == 0 {
			break
		}
		at += n
		if err := s.act(ctx, f); err != nil {
			return buf, err
		}
	}
	rest := buf[at:]
	switch {
	case len(rest) == cap(buf):
		return append(make([]byte, 0, 2*cap(buf)), rest...), nil
	case len(rest) == 0 && cap(buf) > idleBuffer:
		return make([]byte, 0, idleBuffer), nil
	}
	return buf[:copy(buf[:cap(buf)], rest)], nil
}

// act answers one frame. An error closes the connection: the stream can no longer be trusted, or written to.
func (s *session) act(ctx context.Context, f wire.Frame) error {
	h := &s.header
	if err := f.Parse(h); err != nil {
		return err
	}
	if h.Response() {
		return nil // our own calls are one-way
	}
	if s.srv.log.Enabled(ctx, slog.LevelDebug) {
		s.srv.log.Debug("request", "protocol", protocol, "conn", s.remote.String(), "command", h.Code, "opaque", h.Opaque, "body", len(f.Body))
	}
	handle := handlerOf(h.Code)
	if handle == nil {
		return s.refuse(h, fmt.Errorf("request type %d %w", h.Code, errUnknownRequest))
	}
	if err := handle(s, ctx, h, f.Body); err != nil {
		return s.refuse(h, err)
	}
	if s.out.Buffered() > outHigh {
		if err := s.out.Flush(); err != nil {
			return err
		}
		return s.breathe(ctx)
	}
	return nil
}

// end takes leave: nothing of this connection is held, registered or pending afterwards.
func (s *session) end() {
	s.srv.holder.drop(s)
	s.srv.producers.drop(s, "")
	s.srv.left(s.srv.registry.drop(s))
	s.producer.Close()
	s.flight.wait(s.srv.cfg.Grace / 2)
	s.out.Close(lingerTime)
}

// queue finds the queue that a request names.
func (s *session) queue(topic string, id int32) (*engine.Partition, error) {
	t, err := s.srv.topic(topic)
	if err != nil {
		return nil, err
	}
	p := t.Partition(id)
	if p == nil {
		return nil, fmt.Errorf("queue %d of topic %s, which has %d: %w", id, topic, t.Logs(), core.ErrInvalid)
	}
	return p, nil
}
