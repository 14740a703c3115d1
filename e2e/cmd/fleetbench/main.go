// Command fleetbench measures the fleet: 500 devices that publish at QoS 1, against the gateway with fsync on and against
// mosquitto without persistence, by the same generator in one run, A B B A so that a drifting machine favours neither.
// Cost is the server process's user and system time; the generator shares the machine, so messages a second is a floor.
//
// Run it from the repository's root: go run ./e2e/cmd/fleetbench
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

var (
	devices = flag.Int("devices", 500, "connections")
	each    = flag.Int("each", 1000, "messages of each device")
	window  = flag.Int("window", 8, "publishes in flight for each device")
	images  = flag.Bool("images", false, "let a few devices send 256 KiB images, as in the fleet test")
	rounds  = flag.Int("rounds", 1, "times A B B A")
	readers = flag.Bool("readers", true, "at the end the gateway once more, with its back ends reading")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "fleetbench:", err)
		os.Exit(1)
	}
}

// server is one thing to measure: it starts fresh, and says where it listens and which process it is.
type server struct {
	name    string
	readers bool // Pulsar and RocketMQ consumers read along, and the cost is taken when they have everything
	start   func(ctx context.Context, dir string) (target, error)
}

type target struct {
	addr  string
	gw    *gateway.Gateway // nil: another server
	usage func() (gateway.Usage, error)
	stop  func()
}

type result struct {
	server     string
	rate       float64 // messages a second
	cpu        float64 // seconds per million messages
	idle, peak int64
}

func run(ctx context.Context) error {
	samples, err := clients.LoadSamples("e2e/testdata/payloads")
	if err != nil {
		return err
	}
	bin, err := gateway.Build(ctx, ".", "e2e/.work")
	if err != nil {
		return err
	}
	a := server{name: "isthmus, fsync", start: func(ctx context.Context, dir string) (target, error) {
		return startGateway(ctx, bin, dir, "{ mode: fsync, window: 1ms }")
	}}
	b := server{name: "mosquitto, no persistence", start: startMosquitto}
	order := []server{a, b, b, a}
	if _, err := exec.LookPath("mosquitto"); err != nil {
		fmt.Println("mosquitto is not installed; the gateway is measured alone")
		order = []server{a, a}
	}
	var results []result
	for range *rounds {
		for _, s := range order {
			r, err := measure(ctx, s, samples)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			results = append(results, r)
		}
	}
	if *readers {
		a.name, a.readers = "isthmus, fsync, five readers", true
		r, err := measure(ctx, a, samples)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		results = append(results, r)
	}
	info, err := os.Stat(bin)
	if err != nil {
		return err
	}
	print(results, info.Size())
	return nil
}

func measure(ctx context.Context, s server, samples clients.Samples) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "fleetbench-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	t, err := s.start(ctx, dir)
	if err != nil {
		return result{}, err
	}
	defer t.stop()
	total := *devices * *each
	everything := func() error { return nil }
	if s.readers {
		var close func()
		if everything, close, err = read(ctx, t.gw, int64(total)); err != nil {
			return result{}, err
		}
		defer close()
	}
	before, err := t.usage()
	if err != nil {
		return result{}, err
	}
	start := time.Now()
	if err := load(ctx, t.addr, samples); err != nil {
		return result{}, err
	}
	took := time.Since(start)
	if err := everything(); err != nil {
		return result{}, err
	}
	after, err := t.usage()
	if err != nil {
		return result{}, err
	}
	n := float64(total)
	return result{s.name, n / took.Seconds(), (after.CPU - before.CPU).Seconds() / n * 1e6, before.RSS, after.Peak}, nil
}

func load(ctx context.Context, addr string, samples clients.Samples) error {
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for d := range *devices {
		wg.Go(func() {
			dev := clients.Device{Addr: addr, ClientID: clients.DeviceName(d), Window: *window, NoReconnect: true}
			err := dev.Run(ctx, *each, func(i int) clients.Publication {
				if !*images {
					i = 0 // the message number 3 of some devices is an image
				}
				return samples.Publication(d, i)
			}, nil)
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	wg.Wait()
	if e := failed.Load(); e != nil {
		return *e
	}
	return nil
}

func startGateway(ctx context.Context, bin, dir, durability string) (target, error) {
	c := gateway.Event
	c.Durability = durability
	g, err := gateway.New(bin, dir, c)
	if err != nil {
		return target{}, err
	}
	if err := g.Start(ctx); err != nil {
		g.Close()
		return target{}, err
	}
	return target{g.MQTT, g, g.Usage, g.Close}, nil
}

func startMosquitto(ctx context.Context, dir string) (target, error) {
	p, err := gateway.FreePorts()
	if err != nil {
		return target{}, err
	}
	conf := filepath.Join(dir, "mosquitto.conf")
	_, port, err := net.SplitHostPort(p.MQTT)
	if err != nil {
		return target{}, err
	}
	text := "listener " + port + " 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return target{}, err
	}
	cmd := exec.CommandContext(ctx, "mosquitto", "-c", conf)
	if err := cmd.Start(); err != nil {
		return target{}, err
	}
	stop := func() { cmd.Process.Kill(); cmd.Wait() }
	if err := awaitPort(ctx, p.MQTT); err != nil {
		stop()
		return target{}, err
	}
	return target{p.MQTT, nil, func() (gateway.Usage, error) { return gateway.ReadUsage(cmd.Process.Pid) }, stop}, nil
}

func print(results []result, size int64) {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "server\tmessages/s\tCPU s per million\tidle RSS MiB\tpeak RSS MiB\t\n")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.1f\t%.1f\t\n", r.server, r.rate, r.cpu, mib(r.idle), mib(r.peak))
	}
	w.Flush()
	fmt.Printf("%d devices × %d messages, window %d; binary %.1f MB\n", *devices, *each, *window, float64(size)/1e6)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
