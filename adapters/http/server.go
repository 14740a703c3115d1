package http

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	nethttp "net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config is what the listener is made of. Zero values mean the defaults of each field.
type Config struct {
	Bind          string
	Connections   int           // at once; default 1000
	HeaderTimeout time.Duration // until a request's header is there; default 5 s
	Timeout       time.Duration // to read a request, and to write its answer; default 30 s
	IdleTimeout   time.Duration // between requests; default 2 min
	MaxHeader     int           // bytes; default 16 KiB
	MaxBody       int64         // bytes; default 1 MiB
	Grace         time.Duration // for requests in progress when the gateway stops; default 5 s
}

// Validate joins every fault.
func (c Config) Validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(c.Bind); err != nil {
		errs = append(errs, fmt.Errorf("bind: %w", err))
	}
	least := min(int64(c.Connections), int64(c.HeaderTimeout), int64(c.Timeout), int64(c.IdleTimeout), int64(c.MaxHeader), c.MaxBody, int64(c.Grace))
	if least < 0 {
		errs = append(errs, errors.New("a limit is negative"))
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	orDefault(&c.Connections, 1000)
	orDefault(&c.HeaderTimeout, 5*time.Second)
	orDefault(&c.Timeout, 30*time.Second)
	orDefault(&c.IdleTimeout, 2*time.Minute)
	orDefault(&c.MaxHeader, 16<<10)
	orDefault(&c.MaxBody, 1<<20)
	orDefault(&c.Grace, 5*time.Second)
}

func orDefault[T comparable](v *T, d T) {
	if *v == *new(T) {
		*v = d
	}
}

// Server is the listener. Mount before Run.
type Server struct {
	cfg  Config
	mux  *nethttp.ServeMux
	ln   net.Listener
	log  *slog.Logger
	open atomic.Int64 // connections
}

// New starts nothing. Metrics come from g; ready tells why the gateway is not ready, nil when it is, and answers from
// memory.
func New(cfg Config, g prometheus.Gatherer, ready func() error, log *slog.Logger) *Server {
	cfg.setDefaults()
	s := &Server{cfg: cfg, mux: nethttp.NewServeMux(), log: log}
	s.mux.HandleFunc("GET /healthz", func(w nethttp.ResponseWriter, _ *nethttp.Request) { answer(w, nethttp.StatusOK, "alive") })
	s.mux.HandleFunc("GET /readyz", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		if err := ready(); err != nil {
			answer(w, nethttp.StatusServiceUnavailable, err.Error())
			return
		}
		answer(w, nethttp.StatusOK, "ready")
	})
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: cfg.Timeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}))
	return s
}

func answer(w nethttp.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text) // a client that has gone does not matter here
}

// Mount hands a pattern of net/http.ServeMux to another room. Two rooms that claim the same one are a mistake of the
// wiring, and panic at start.
func (s *Server) Mount(pattern string, h nethttp.Handler) { s.mux.Handle(pattern, h) }

// Listen opens the socket; port 0 picks one.
func (s *Server) Listen() (err error) {
	s.ln, err = net.Listen("tcp", s.cfg.Bind)
	return err
}

// Addr is where it listens, after Listen.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Run serves until ctx ends, then lets requests in progress finish for the grace. Nothing of it is alive when it
// returns.
func (s *Server) Run(ctx context.Context) error {
	h := &nethttp.Server{
		Handler:           nethttp.MaxBytesHandler(s.mux, s.cfg.MaxBody),
		ReadHeaderTimeout: s.cfg.HeaderTimeout,
		ReadTimeout:       s.cfg.Timeout,
		WriteTimeout:      s.cfg.Timeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    s.cfg.MaxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnState:         s.count,
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan error, 1)
	go func() { // awaited below
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Grace)
		defer cancel()
		if err := h.Shutdown(grace); err != nil {
			stopped <- errors.Join(err, h.Close())
			return
		}
		stopped <- nil
	}()
	served := h.Serve(s.ln)
	stop()
	if err := <-stopped; err != nil {
		s.log.Warn("http requests cut off", "err", err)
	}
	if !errors.Is(served, nethttp.ErrServerClosed) {
		return fmt.Errorf("http listener %s: %w", s.Addr(), served)
	}
	return nil
}

// count closes connections beyond the limit.
func (s *Server) count(c net.Conn, state nethttp.ConnState) {
	switch state {
	case nethttp.StateNew:
		if s.open.Add(1) > int64(s.cfg.Connections) {
			c.Close()
		}
	case nethttp.StateClosed, nethttp.StateHijacked:
		s.open.Add(-1)
	case nethttp.StateActive, nethttp.StateIdle:
	}
}
