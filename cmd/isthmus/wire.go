package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"isthmus/adapters/http"
	"isthmus/adapters/http/api"
	"isthmus/adapters/mqtt"
	"isthmus/adapters/pulsar"
	"isthmus/adapters/rocketmq"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
	"isthmus/core/journal"
	"isthmus/core/journal/disk"
	"isthmus/core/meta/bolt"
	"isthmus/routing"
)

// server is what every adapter is to the wiring.
type server interface {
	Listen() error
	Run(ctx context.Context) error
}

// listener is a server under its name in the configuration.
type listener struct {
	server
	name, bind string
}

// run composes the gateway and keeps it running until ctx ends. The engine starts before the adapters and stops after
// them, so that what a client was promised is written down.
func run(ctx context.Context, cfg *Config, log *slog.Logger) (err error) {
	log.Info("gateway starting", "version", version(), "node", cfg.Node.ID, "data_dir", cfg.Node.DataDir, "durability", cfg.Durability.Mode)
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	release, err := lockDataDir(cfg.Node.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	store, err := bolt.Open(filepath.Join(cfg.Node.DataDir, "meta.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	journals, err := disk.New(journalOptions(cfg, log))
	if err != nil {
		return err
	}
	eng, err := engine.Open(ctx, engine.Config{
		Journals: journals, Meta: store, Log: log, Registerer: metrics,
		Splitters: map[core.Format]engine.Splitter{core.FormatPulsar: pulsar.Split},
		Decoders:  map[core.Format]core.Decoder{core.FormatPulsar: pulsar.Decode, core.FormatRocketMQ: rocketmq.Decode},
		Storage:   storage(cfg),
		Defaults: engine.Defaults{
			Tenant: cfg.Defaults.Tenant, Namespace: cfg.Defaults.Namespace, AutoCreate: cfg.Defaults.AutoCreate,
			Partitions: cfg.Defaults.Partitions, RocketMQQueues: cfg.Defaults.RocketMQQueues,
			Policy:         policy(cfg.Defaults.PolicyConfig),
			DeleteWhenIdle: time.Duration(cfg.Defaults.DeleteWhenIdle),
			Deduplicate:    cfg.Defaults.Deduplication,
			Split:          keySplits[cfg.Defaults.KeySplit],
		},
		Window: time.Duration(cfg.Durability.Window), MaxMessage: int(cfg.Limits.MaxPayload) + 1<<20,
		Parked: parkedLimits(cfg),
	})
	if err != nil {
		return err
	}
	stop := runEngine(ctx, eng)
	defer func() { err = errors.Join(err, stop()) }()
	if err := declare(cfg, eng); err != nil {
		return err
	}
	routes, err := cfg.Routes()
	if err != nil {
		return err
	}

	everybody := auth.Anonymous{Tenant: cfg.Defaults.Tenant}
	var ready readiness
	ready.eng = eng
	var servers []listener
	for _, name := range cfg.Listeners.Keys {
		l := cfg.Listeners.Values[name]
		var s server
		switch l.Protocol {
		case "mqtt":
			table := func() *routing.Table { return routes }
			s = mqtt.New(mqttConfig(cfg, name, l), eng, table, everybody, everybody, log)
		case "pulsar":
			s = pulsar.New(pulsarConfig(cfg, l), eng, everybody, everybody, log)
		case "rocketmq":
			s = rocketmq.New(rocketmqConfig(cfg, l), eng, everybody, everybody, log)
		case "http":
			s = newWeb(http.New(http.Config{Bind: l.Bind}, metrics, ready.check, log), api.New(eng, everybody, everybody, log))
		}
		servers = append(servers, listener{s, name, l.Bind})
	}
	mountLookups(servers)
	return serveAll(ctx, servers, &ready, log)
}

// runEngine starts the engine; the returned function stops it and waits.
func runEngine(ctx context.Context, eng *engine.Engine) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// serveAll opens every socket before it serves any, so that a taken port stops the start and nothing else.
func serveAll(ctx context.Context, servers []listener, ready *readiness, log *slog.Logger) error {
	for _, s := range servers {
		if err := s.Listen(); err != nil {
			return err
		}
		log.Info("listening", "listener", s.name, "bind", s.bind)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range servers {
		group.Go(func() error { return s.Run(ctx) })
	}
	ready.up.Store(true)
	log.Info("gateway ready")
	err := group.Wait()
	ready.up.Store(false)
	log.Info("gateway stopping")
	return err
}

// newWeb is the HTTP listener with our own API.
func newWeb(s *http.Server, h nethttp.Handler) *http.Server {
	s.Mount(api.Prefix, h)
	return s
}

// mountLookups lets the HTTP listener answer what Pulsar clients with an http:// service URL ask.
func mountLookups(servers []listener) {
	var web *http.Server
	var broker *pulsar.Server
	for _, s := range servers {
		switch s := s.server.(type) {
		case *http.Server:
			web = s
		case *pulsar.Server:
			broker = s
		}
	}
	if web != nil && broker != nil {
		h := broker.HTTP()
		web.Mount("/lookup/", h)
		web.Mount("/admin/", h)
	}
}

// readiness says whether the gateway takes traffic.
type readiness struct {
	up  atomic.Bool
	eng *engine.Engine
}

func (r *readiness) check() error {
	if !r.up.Load() {
		return errors.New("starting or stopping")
	}
	return r.eng.Health()
}

// declare creates what the configuration names: topics with journals of their own, and groups that exist before their
// first consumer.
func declare(cfg *Config, eng *engine.Engine) error {
	groups := map[core.TopicName][]GroupConfig{}
	var names []core.TopicName
	for _, key := range cfg.Topics.Keys {
		names = append(names, cfg.topicName(key))
	}
	for _, key := range cfg.Groups.Keys {
		n := cfg.topicName(key)
		if _, declared := cfg.topic(n); !declared && groups[n] == nil {
			names = append(names, n)
		}
		groups[n] = append(groups[n], cfg.Groups.Values[key]...)
	}
	for _, n := range names {
		t, declared := cfg.topic(n)
		if !declared {
			t.inherit(n.String(), &cfg.Defaults)
		}
		topic, err := eng.DeclareTopic(n, engine.TopicSpec{
			Partitions: t.Partitions, ByKey: t.Placement == "key", Names: t.Names,
			Policy: policy(t.PolicyConfig), Deduplicate: *t.Deduplication, Groups: groupNames(groups[n]),
		})
		if errors.Is(err, journal.ErrDamaged) {
			continue // the engine has said so; the other topics go on
		}
		if err != nil {
			return fmt.Errorf("declare %s: %w", n, err)
		}
		if err := cfg.declareRetries(topic, groups[n]); err != nil {
			return err
		}
	}
	return nil
}

func journalOptions(cfg *Config, log *slog.Logger) disk.Options {
	o := disk.Options{
		Dir: filepath.Join(cfg.Node.DataDir, "journals"), Log: log,
		Hashes: func(dst []uint32, x journal.Extent) []uint32 { return core.AppendHashes(dst, x.Data) },
	}
	if cfg.Durability.Mode == "interval" {
		o.Sync = disk.Interval
		log.Warn("messages are acknowledged before they are on the disk", "durability", "interval", "interval", "100ms")
	}
	return o
}

func parkedLimits(cfg *Config) engine.ParkedLimits {
	return engine.ParkedLimits{
		MaxDelay: time.Duration(cfg.Limits.Delay), Max: cfg.Limits.Parked,
		CheckEvery: time.Duration(cfg.RocketMQ.TransactionCheckInterval), MaxChecks: cfg.RocketMQ.TransactionCheckMax,
	}
}

func mqttConfig(cfg *Config, name string, l ListenerConfig) mqtt.Config {
	c := mqtt.DefaultConfig()
	c.Bind, c.Listener = l.Bind, name
	c.Connections, c.MaxPayload = cfg.Limits.Connections, int(cfg.Limits.MaxPayload)
	c.V311Shared = cmp.Or(l.V311Shared, c.V311Shared)
	c.ByKey = cfg.byKey()
	return c
}

func pulsarConfig(cfg *Config, l ListenerConfig) pulsar.Config {
	c := pulsar.NewConfig()
	c.Bind, c.Connections, c.MaxMessageSize = l.Bind, cfg.Limits.Connections, int(cfg.Limits.MaxPayload)
	if u, err := url.Parse(l.Advertise); err == nil && u.Host != "" {
		c.Advertise = u.Host
	}
	return c
}

func rocketmqConfig(cfg *Config, l ListenerConfig) rocketmq.Config {
	var levels []time.Duration
	for _, d := range cfg.RocketMQ.DelayLevels {
		levels = append(levels, time.Duration(d))
	}
	return rocketmq.Config{
		DelayLevels: levels, TransactionTimeout: time.Duration(cfg.RocketMQ.TransactionTimeout),
		Bind: l.Bind, Broker: l.Broker, Advertise: l.Advertise, Connections: cfg.Limits.Connections,
		MaxBody: min(int(cfg.Limits.MaxPayload), 15<<20),
	}
}
