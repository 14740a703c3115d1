package mqtt

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/adapters/mqtt/wire"
	"isthmus/adapters/serve"
	"isthmus/core/auth"
	"isthmus/core/engine"
	"isthmus/routing"
)

// Server is one MQTT listener and its clients.
type Server struct {
	cfg    Config
	limits wire.Limits
	eng    *engine.Engine
	routes func() *routing.Table
	au     auth.Provider
	ac     auth.Access
	log    *slog.Logger

	ln      net.Listener
	clients registry
	tree    tree
	tick    atomic.Int64 // seconds since the start: the clock of keep-alive
	metrics metrics
}

type metrics struct {
	connections                             prometheus.Gauge
	deliveries                              prometheus.Counter
	expired, tooLarge, slow, noTopic, store prometheus.Counter // why a message was dropped
}

// New makes a server. routes returns the table in force.
func New(cfg Config, eng *engine.Engine, routes func() *routing.Table, au auth.Provider, ac auth.Access, log *slog.Logger) *Server {
	s := &Server{cfg: cfg, limits: cfg.limits(), eng: eng, routes: routes, au: au, ac: ac, log: log.With("protocol", protocol)}
	s.clients.init()
	m := eng.Metrics()
	drop := func(reason string) prometheus.Counter { return m.Dropped.WithLabelValues(protocol, reason) }
	s.metrics = metrics{
		connections: m.Connections.WithLabelValues(protocol),
		deliveries:  m.Deliveries.WithLabelValues(protocol),
		expired:     drop("expired"), tooLarge: drop("too_large"), slow: drop("slow"), noTopic: drop("no_topic"), store: drop("not_stored"),
	}
	return s
}

const protocol = "mqtt"

// Listen opens the socket; port 0 works, Addr tells.
func (s *Server) Listen() error {
	ln, err := serve.Listen(s.cfg.Bind)
	if err != nil {
		return fmt.Errorf("mqtt listener %s: %w", s.cfg.Listener, err)
	}
	s.ln = ln
	return nil
}

// Addr is the address it listens on.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Run serves until ctx ends, then takes leave of the clients. Nothing of it is alive when it returns.
func (s *Server) Run(ctx context.Context) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop()
	helpers.Go(func() { s.sweep(inner) })
	place := s.eng.Follower() // before the first client: what is committed after its SUBACK must not be missed
	helpers.Go(func() { s.follow(inner, place) })
	defer context.AfterFunc(ctx, func() { s.clients.stopAll(errShutdown) })()
	return serve.Run(ctx, s.ln, serve.Options{Limit: s.cfg.Connections, Grace: s.cfg.Grace, Log: s.log}, s.serve)
}

// serve is the life of one connection.
func (s *Server) serve(ctx context.Context, c net.Conn) {
	s.metrics.connections.Inc()
	defer s.metrics.connections.Dec()
	in := newInput(c, s.limits.Packet)
	out := serve.NewOut(c, s.cfg.MaxOutput+s.limits.Packet) // one message may be larger than MaxOutput
	var ss *session
	var err error
	apart(func() {
		if ss, err = s.connect(ctx, c, in, out); err == nil {
			_ = ss.flush() // it has stopped the session
		}
	})
	if err != nil {
		// Spec: MQTT5 3.2.2.2 [MQTT-3.2.2-7]
		s.log.Debug("connection refused", "conn", c.RemoteAddr().String(), "err", err)
		out.Close(linger)
		in.release()
		return
	}
	defer ss.end()
	ss.run()
}

// linger is how long a client gets to read our last words.
const linger = 200 * time.Millisecond
