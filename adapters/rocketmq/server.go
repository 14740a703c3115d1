package rocketmq

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"isthmus/adapters/serve"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// brokerName is the name of slot 0: a single node has one slot, a cluster will name each slot's broker so.
const brokerName = "isthmus-0"

// Server answers as name server and as broker.
type Server struct {
	cfg       Config
	eng       *engine.Engine
	auth      auth.Provider
	access    auth.Access
	log       *slog.Logger
	registry  registry
	producers producers
	holder    holder
	decoded   decoded
	sooner    chan struct{} // a group is to be called before the next look

	deliveries prometheus.Counter

	names, broker net.Listener   // broker is nil when one port serves both roles
	store         netip.AddrPort // where clients reach the broker; the zero address: where they connected to
}

// New starts nothing.
func New(cfg Config, eng *engine.Engine, au auth.Provider, ac auth.Access, log *slog.Logger) *Server {
	cfg.setDefaults()
	s := &Server{cfg: cfg, eng: eng, auth: au, access: ac, log: log, sooner: make(chan struct{}, 1)}
	s.deliveries = eng.Metrics().Deliveries.WithLabelValues(protocol)
	s.registry.init()
	s.holder.init()
	return s
}

// Listen opens the ports.
func (s *Server) Listen() error {
	var err error
	if s.names, err = serve.Listen(s.cfg.Bind); err != nil {
		return fmt.Errorf("rocketmq name server port: %w", err)
	}
	if s.cfg.Broker != "" && s.cfg.Broker != s.cfg.Bind {
		if s.broker, err = serve.Listen(s.cfg.Broker); err != nil {
			s.names.Close()
			return fmt.Errorf("rocketmq broker port: %w", err)
		}
	}
	if s.store, err = s.storeHost(); err != nil {
		s.names.Close()
		if s.broker != nil {
			s.broker.Close()
		}
	}
	return err
}

// storeHost is the broker's address as message ids and stored messages carry it: numbers, since they have no room for
// a host name.
func (s *Server) storeHost() (netip.AddrPort, error) {
	if s.cfg.Advertise == "" {
		at := netip.MustParseAddrPort(s.BrokerAddr())
		if at.Addr().IsUnspecified() {
			return netip.AddrPortFrom(netip.Addr{}, at.Port()), nil
		}
		return at, nil
	}
	host, port, err := net.SplitHostPort(s.cfg.Advertise)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("rocketmq advertised address: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("rocketmq advertised port: %w", err)
	}
	ip, err := net.ResolveIPAddr("ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("rocketmq advertised address: %w", err)
	}
	addr, _ := netip.AddrFromSlice(ip.IP)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), nil
}

// Addr is the name server address.
func (s *Server) Addr() string { return s.names.Addr().String() }

// BrokerAddr is the address of the broker port.
func (s *Server) BrokerAddr() string {
	if s.broker == nil {
		return s.Addr()
	}
	return s.broker.Addr().String()
}

// Run serves until ctx ends. When it returns, nothing of it is alive.
func (s *Server) Run(ctx context.Context) error {
	s.eng.OnCheck(core.FormatRocketMQ, s.ask)
	s.eng.OnPool(s.poolChanged)
	g, ctx := errgroup.WithContext(ctx)
	// Held pulls and the sweep go on until the last connection is gone.
	bg, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	back := new(errgroup.Group)
	back.Go(func() error { s.holder.sweep(bg); return nil })
	for range pullWorkers {
		back.Go(func() error { s.holder.work(func(p *pull) { s.answerPull(bg, p) }); return nil })
	}
	back.Go(func() error { s.expire(bg); return nil })

	o := serve.Options{Limit: s.cfg.Connections, Grace: s.cfg.Grace, Log: s.log}
	for _, ln := range []net.Listener{s.names, s.broker} {
		if ln != nil {
			g.Go(func() error { return serve.Run(ctx, ln, o, s.serve) })
		}
	}
	err := g.Wait()
	stop()
	s.holder.close()
	back.Wait()
	return err
}

// expire drops client ids that have sent no heartbeat for as long as real brokers wait, and calls groups that are to
// balance again, until ctx ends.
func (s *Server) expire(ctx context.Context) {
	tick, early := time.NewTicker(min(settle, s.cfg.Idle/12, s.cfg.LockTime/6)), time.NewTimer(settle)
	defer tick.Stop()
	defer early.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.left(s.registry.expire(now.Add(-s.cfg.Idle)))
			s.producers.expire(now.Add(-s.cfg.Idle))
			s.remind(now)
		case <-s.sooner:
			early.Reset(soon)
		case now := <-early.C:
			s.remind(now)
		}
	}
}

// remind calls the groups whose time has come.
func (s *Server) remind(now time.Time) {
	for name, members := range s.registry.reminders(now) {
		s.notify(name, members)
	}
}
