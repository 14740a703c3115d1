// Package gateway runs the built binary as a child process: start, wait until ready, stop, kill, start again on the same
// ports and folder, and read what it costs from /proc (Linux only).
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Gateway is one configuration, one folder, one set of ports; the process behind it comes and goes.
type Gateway struct {
	Ports
	Dir string // holds isthmus.yaml, data/ and log.txt

	bin string
	log *os.File

	mu   sync.Mutex
	proc *process // nil: not running
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process was waited for
	err  error
}

// Build compiles the gateway into dir. ISTHMUS_BIN names one that is there already, ISTHMUS_RACE=1 adds the race detector.
func Build(ctx context.Context, root, dir string) (string, error) {
	if bin := os.Getenv("ISTHMUS_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "isthmus")
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", bin}
	env := append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	if os.Getenv("ISTHMUS_RACE") == "1" {
		args, env = append(args, "-race"), os.Environ()
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/isthmus")...)
	cmd.Dir, cmd.Env = root, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	return bin, nil
}

// New writes the configuration; it starts nothing.
func New(bin, dir string, c Config) (*Gateway, error) {
	p, err := FreePorts()
	if err != nil {
		return nil, err
	}
	g := &Gateway{Ports: p, Dir: dir, bin: bin}
	if err := g.Write(c); err != nil {
		return nil, err
	}
	g.log, err = os.OpenFile(filepath.Join(dir, "log.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return g, err
}

// Write replaces the configuration file; the next start reads it.
func (g *Gateway) Write(c Config) error {
	return os.WriteFile(g.ConfigFile(), []byte(c.yaml(filepath.Join(g.Dir, "data"), g.Ports)), 0o644)
}

// ConfigFile is the path that `isthmus run --config` gets.
func (g *Gateway) ConfigFile() string { return filepath.Join(g.Dir, "isthmus.yaml") }

// Start runs the process and returns when /readyz says yes.
func (g *Gateway) Start(ctx context.Context) error {
	cmd := exec.Command(g.bin, "run", "--config", g.ConfigFile())
	cmd.Stdout, cmd.Stderr = g.log, g.log
	// A test that dies must not leave a gateway behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &process{cmd: cmd, done: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.proc != nil {
		return errors.New("gateway already runs")
	}
	if err := start(cmd); err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	go func() { p.err = cmd.Wait(); close(p.done) }() // awaited through done by Kill and Stop
	g.proc = p
	return g.awaitReady(ctx, p)
}

func (g *Gateway) awaitReady(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+g.HTTP+"/readyz", nil)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.done:
			g.proc = nil
			return fmt.Errorf("gateway ended before it was ready: %s\n%s", fmt.Sprint(p.err), g.Tail(30))
		case <-ctx.Done():
			return fmt.Errorf("gateway not ready: %w\n%s", ctx.Err(), g.Tail(30))
		case <-tick.C:
		}
	}
}

// Kill is SIGKILL: what the kernel had not been given is gone.
func (g *Gateway) Kill() error { return g.end(syscall.SIGKILL, 10*time.Second) }

// Stop is SIGTERM, and an error when the process did not leave by itself with status 0.
func (g *Gateway) Stop() error { return g.end(syscall.SIGTERM, 20*time.Second) }

func (g *Gateway) end(sig syscall.Signal, patience time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.proc
	if p == nil {
		return nil
	}
	g.proc = nil
	p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("gateway did not end within %s of %s\n%s", patience, sig, g.Tail(30))
	}
	if sig == syscall.SIGTERM && p.err != nil {
		return fmt.Errorf("gateway stopped with %w\n%s", p.err, g.Tail(30))
	}
	return nil
}

// Alive says whether the process still runs.
func (g *Gateway) Alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.proc == nil {
		return false
	}
	select {
	case <-g.proc.done:
		return false
	default:
		return true
	}
}

// Died says whether the process ended without having been told to.
func (g *Gateway) Died() bool {
	g.mu.Lock()
	told := g.proc == nil
	g.mu.Unlock()
	return !told && !g.Alive()
}

// Close ends the process, whatever it is doing.
func (g *Gateway) Close() {
	g.Kill()
	g.log.Close()
}

// Tail returns the last n lines of the log of all runs.
func (g *Gateway) Tail(n int) string {
	b, _ := os.ReadFile(filepath.Join(g.Dir, "log.txt"))
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
