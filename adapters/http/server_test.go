package http

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server until the test ends.
func start(t *testing.T, cfg Config, ready func() error, mount func(*Server)) string {
	t.Helper()
	cfg.Bind = "127.0.0.1:0"
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "isthmus_test_things_total", Help: "Things."})
	c.Add(3)
	reg.MustRegister(c)
	s := New(cfg, reg, ready, slog.New(slog.DiscardHandler))
	if mount != nil {
		mount(s)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		nethttp.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return s.Addr().String()
}

func isReady() error { return nil }

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := nethttp.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestEndpoints(t *testing.T) {
	notReady := make(chan error, 1)
	notReady <- errors.New("journals are being recovered")
	ready := func() error {
		select {
		case err := <-notReady:
			return err
		default:
			return nil
		}
	}
	addr := start(t, Config{}, ready, func(s *Server) {
		s.Mount("GET /lookup/", nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
			_, _ = io.WriteString(w, "mounted "+r.URL.Path)
		}))
		s.Mount("POST /echo", nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				nethttp.Error(w, err.Error(), nethttp.StatusRequestEntityTooLarge)
			}
		}))
	})
	for _, c := range []struct {
		path string
		code int
		has  string
	}{
		{"/healthz", 200, "alive"},
		{"/readyz", 503, "journals are being recovered"},
		{"/readyz", 200, "ready"},
		{"/metrics", 200, "isthmus_test_things_total 3"},
		{"/lookup/x", 200, "mounted /lookup/x"},
		{"/other", 404, ""},
	} {
		if code, body := get(t, "http://"+addr+c.path); code != c.code || !strings.Contains(body, c.has) {
			t.Errorf("%s: %d %q", c.path, code, body)
		}
	}
	r, err := nethttp.Post("http://"+addr+"/echo", "text/plain", strings.NewReader(strings.Repeat("x", 2<<20)))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != nethttp.StatusRequestEntityTooLarge {
		t.Errorf("a body beyond the limit: %d", r.StatusCode)
	}
}

// A connection that says nothing, and one that says too much, are closed; others are served meanwhile.
func TestSilentAndLoudConnectionsAreClosed(t *testing.T) {
	addr := start(t, Config{HeaderTimeout: 50 * time.Millisecond}, isReady, nil)
	for _, say := range []string{"", "GET /healthz HT", "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 64<<10)} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, say); err != nil {
			t.Fatal(err)
		}
		if code, _ := get(t, "http://"+addr+"/healthz"); code != 200 {
			t.Errorf("somebody else is disturbed: %d", code)
		}
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		// Either an answer (431, 408) or nothing, and then the end.
		if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Errorf("%.20q: still open", say)
		}
		c.Close()
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestConnectionsAreLimited(t *testing.T) {
	addr := start(t, Config{Connections: 1}, isReady, nil)
	first, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	ask := func(c net.Conn) error {
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		r, err := nethttp.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		return r.Body.Close()
	}
	if err := ask(first); err != nil {
		t.Fatal(err)
	}
	second, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := ask(second); err == nil {
		t.Error("a connection beyond the limit was served")
	}
	if err := ask(first); err != nil {
		t.Errorf("the first is disturbed: %v", err)
	}
}

func TestStopWaitsForRequests(t *testing.T) {
	s := New(Config{Bind: "127.0.0.1:0"}, prometheus.NewRegistry(), isReady, slog.New(slog.DiscardHandler))
	entered, leave := make(chan struct{}), make(chan struct{})
	s.Mount("/slow", nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		close(entered)
		<-leave
		_, _ = io.WriteString(w, "done")
	}))
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	answered := make(chan string, 1)
	go func() {
		r, err := nethttp.Get("http://" + s.Addr().String() + "/slow")
		if err != nil {
			answered <- err.Error()
			return
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		answered <- string(b)
	}()
	<-entered
	cancel()
	close(leave)
	if got := <-answered; got != "done" {
		t.Errorf("the request in progress got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	nethttp.DefaultClient.CloseIdleConnections()
}
