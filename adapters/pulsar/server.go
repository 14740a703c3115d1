package pulsar

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/adapters/serve"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// protocolName is what the engine's metrics, aliases and groups call this adapter.
const protocolName = "pulsar"

// Server serves Pulsar clients.
type Server struct {
	cfg    Config
	eng    *engine.Engine
	auth   auth.Provider
	access auth.Access
	log    *slog.Logger
	ln     net.Listener

	instance string        // part of the producer names that the server gives
	names    atomic.Uint64 // counter of those names
	conns    atomic.Uint64
	schemas  schemas

	mu struct {
		sync.Mutex
		producers map[producerKey]*producer
		seeks     map[subscriptionKey]seekMark
	}
}

// producerKey is where a producer's name is unique.
type producerKey struct {
	topic string // with its partition
	name  string
}

// New makes a server. It opens nothing: call Listen, then Run.
func New(cfg Config, eng *engine.Engine, au auth.Provider, ac auth.Access, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg.withDefaults(), eng: eng, auth: au, access: ac, log: log.With("protocol", protocolName)}
	s.instance = strconv.FormatInt(time.Now().UnixMilli(), 36)
	s.mu.producers = map[producerKey]*producer{}
	s.mu.seeks = map[subscriptionKey]seekMark{}
	return s
}

// Listen opens the socket.
func (s *Server) Listen() (err error) {
	if s.ln, err = serve.Listen(s.cfg.Bind); err != nil {
		return fmt.Errorf("pulsar listener: %w", err)
	}
	return nil
}

// Addr is the address that Listen got.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Run serves until ctx ends and every connection is gone.
func (s *Server) Run(ctx context.Context) error {
	o := serve.Options{Limit: s.cfg.Connections, Grace: s.cfg.Grace, Log: s.log}
	return serve.Run(ctx, s.ln, o, s.serve)
}

func (s *Server) serve(ctx context.Context, c net.Conn) {
	active := s.eng.Metrics().Connections.WithLabelValues(protocolName)
	active.Inc()
	defer active.Dec()
	newSession(s, c).run(ctx)
}

// newName gives a producer name that no other producer has, also after a restart.
func (s *Server) newName() string {
	return "isthmus-" + s.instance + "-" + strconv.FormatUint(s.names.Add(1), 10)
}
