package pulsar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"isthmus/adapters/pulsar/wire"
	"isthmus/adapters/serve"
	"isthmus/core"
	"isthmus/core/auth"
)

const (
	handshakeLimit = 64 << 10 // bytes of a frame before the client is known
	firstBuffer    = 4 << 10
	keptBuffer     = 256 << 10 // a read buffer that grew beyond it goes when it is empty
	busyBuffer     = 64 << 10  // what a connection with much to say reads at once
)

// session is one connection. Its reader goroutine owns it; other goroutines look at mu and append to out.
type session struct {
	srv       *Server
	conn      net.Conn
	out       *serve.Out
	log       *slog.Logger
	ctx       context.Context // ends with the session
	client    client
	ops       sync.WaitGroup // requests that wait for a probe
	ack       wire.Ack       // reused by the reader
	key       []byte         // scratch of the reader: a decoded key
	data      []byte         // scratch of the reader: bytes of an entry that is not stored as it came
	scattered []scattered    // scratch of the reader

	foreign []core.Message // scratch of Deliver, guarded by out's lock
	encoded []byte         // the same

	pinged bool   // a PING is unanswered
	heard  uint64 // grows with everything that arrives
	armed  uint64 // heard when the deadline was set

	mu struct {
		sync.Mutex
		producers map[uint64]*producer
		consumers map[uint64]*consumer
		pending   map[waitKey]context.CancelFunc // PRODUCER and SUBSCRIBE requests that wait for a probe
		closed    map[uint64]time.Time           // producers that were closed: their SENDs may still arrive
		waiters   []chan struct{}                // probes; closed by the next arrival or the end
		over      bool
	}
}

// maxRoles bounds the producers, and the consumers, of one connection.
const maxRoles = 10000

// room tells whether the session may have one more producer or consumer.
func (s *session) room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if max(len(s.mu.producers), len(s.mu.consumers)) >= maxRoles || len(s.mu.pending) >= maxWaiting {
		return fmt.Errorf("too many producers or consumers on the connection: %w", core.ErrOverloaded)
	}
	return nil
}

// client is what CONNECT told. It is written once, before the session is known to others.
type client struct {
	connected bool
	version   string
	isGo      bool
	protocol  int32
	principal auth.Principal
}

func newSession(srv *Server, c net.Conn) *session {
	s := &session{srv: srv, conn: c, out: serve.NewOut(c, srv.cfg.OutBytes)}
	s.log = srv.log.With("conn", srv.conns.Add(1), "remote", c.RemoteAddr().String())
	s.out.OnDrained(s.drained)
	s.mu.producers = map[uint64]*producer{}
	s.mu.consumers = map[uint64]*consumer{}
	s.mu.pending = map[waitKey]context.CancelFunc{}
	s.mu.closed = map[uint64]time.Time{}
	return s
}

// Errors that end a session without an answer.
var (
	errProtocol = errors.New("protocol violation")
	errSilent   = errors.New("nothing heard")
)

func (s *session) run(stop context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(stop))
	s.ctx = ctx
	// The end of stop must wake the reader, wherever its deadline stands.
	wake := context.AfterFunc(stop, func() { s.conn.SetReadDeadline(time.Unix(1, 0)) })
	err := s.read(stop)
	wake()
	cancel()
	s.ops.Wait()
	s.leave(stop.Err() != nil)
	s.out.Close(time.Second)
	s.log.Info("connection ended", "client", s.client.version, "principal", s.client.principal.Name, "err", err)
}

// read is the loop of the reader: read what there is, act on every whole frame, flush once.
func (s *session) read(stop context.Context) error {
	if err := s.arm(stop); err != nil {
		return err
	}
	var buf []byte
	for {
		buf = roomFor(buf)
		n, err := s.conn.Read(buf[len(buf):cap(buf)])
		if n > 0 {
			s.arrived()
			buf = buf[:len(buf)+n]
			used, ferr := s.frames(buf)
			if ferr != nil {
				return ferr
			}
			if used > 0 {
				buf = buf[:copy(buf, buf[used:])]
			}
			if ferr := s.out.Flush(); ferr != nil {
				return ferr
			}
		}
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			if err := s.idle(stop); err != nil {
				return err
			}
			if len(buf) == 0 {
				buf = nil // an idle connection keeps little
			}
		}
	}
}

// frames acts on every complete frame in b and tells how many bytes they took.
func (s *session) frames(b []byte) (used int, err error) {
	for {
		f, n, err := wire.Split(b[used:], s.limit())
		if err != nil {
			return used, err
		}
		if n == 0 {
			return used, nil
		}
		if err := s.handle(f); err != nil {
			return used, fmt.Errorf("%v: %w", f.Type, err)
		}
		used += n
	}
}

// limit is how large a frame may be.
func (s *session) limit() int {
	if !s.client.connected {
		return handshakeLimit
	}
	return s.srv.cfg.MaxMessageSize + wire.Padding
}

// roomFor makes sure that there is room to read into. It doubles with what arrived, never with what a size field says.
func roomFor(b []byte) []byte {
	switch {
	case len(b) == 0 && cap(b) > keptBuffer:
		return make([]byte, 0, busyBuffer)
	case len(b) < cap(b):
		return b
	case cap(b) == 0:
		return make([]byte, 0, firstBuffer)
	}
	return append(make([]byte, 0, max(2*cap(b), busyBuffer)), b...)
}

// arm sets the time at which silence is noticed.
func (s *session) arm(stop context.Context) error {
	s.armed = s.heard
	s.conn.SetReadDeadline(time.Now().Add(s.srv.cfg.KeepAlive))
	// After the deadline is set: a stop or an eviction in between has set its own, and was overwritten.
	if stop.Err() != nil {
		return context.Cause(stop)
	}
	return s.out.Flush() // tells when the session was evicted
}

// idle runs when the deadline passed: one quiet interval is asked about, a second one ends the session.
// Spec: Pulsar keep-alive: PING after an idle interval, close when nothing arrived by the next one; CONNECT within one
func (s *session) idle(stop context.Context) error {
	if stop.Err() != nil {
		return context.Cause(stop)
	}
	if !s.client.connected {
		return fmt.Errorf("no CONNECT within %v: %w", s.srv.cfg.KeepAlive, errSilent)
	}
	if s.heard == s.armed { // the deadline is set once an interval, not once a read: something may have arrived since
		if s.pinged {
			return fmt.Errorf("no answer to a PING within %v: %w", s.srv.cfg.KeepAlive, errSilent)
		}
		s.pinged = true
		s.tell(wire.TypePing, nil)
	}
	return s.arm(stop)
}

// arrived notes that the client lives.
func (s *session) arrived() {
	s.heard++
	s.pinged = false
	s.mu.Lock()
	waiters := s.mu.waiters
	s.mu.waiters = nil
	s.mu.Unlock()
	for _, w := range waiters {
		close(w)
	}
}

// send appends a command; the reader flushes when it has acted on everything. A failed Out ends the session by itself.
func (s *session) send(t wire.Type, c wire.Command) {
	_, _ = s.out.Append(func(dst []byte) []byte { return wire.Append(dst, t, c) })
}

// tell is send for other goroutines than the reader.
func (s *session) tell(t wire.Type, c wire.Command) {
	s.send(t, c)
	_ = s.out.Flush()
}

// fail answers a request with ERROR.
func (s *session) fail(request uint64, err error) {
	s.log.Debug("request refused", "err", err)
	s.send(wire.TypeError, &wire.Error{RequestID: request, Code: codeOf(err), Message: err.Error()})
}

// leave takes everything of the session out of the server and the engine. When the server stops the client is told.
func (s *session) leave(polite bool) {
	s.mu.Lock()
	s.mu.over = true
	producers, consumers, waiters := s.mu.producers, s.mu.consumers, s.mu.waiters
	s.mu.producers, s.mu.consumers, s.mu.waiters = nil, nil, nil
	s.mu.Unlock()
	for _, w := range waiters {
		close(w)
	}
	for _, c := range consumers {
		c.leave()
		if polite {
			s.send(wire.TypeCloseConsumer, &wire.Close{ID: c.id, RequestID: wire.NoRequest})
		}
	}
	for _, p := range producers {
		p.wait() // every accepted publish gets its receipt before the goodbye
		p.close()
		if polite {
			s.send(wire.TypeCloseProducer, &wire.Close{ID: p.id, RequestID: wire.NoRequest})
		}
	}
}
