package serve

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener hands out pipes, so that time can be virtual.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) dial() net.Conn {
	ours, peer := net.Pipe()
	l.conns <- ours
	return peer
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestStopHasTwoSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		told, ended := make(chan time.Time, 1), make(chan error, 1)
		start := time.Now()
		go func() {
			ended <- Run(ctx, ln, Options{Grace: 5 * time.Second}, func(ctx context.Context, c net.Conn) {
				defer context.AfterFunc(ctx, func() { told <- time.Now() })()
				io.Copy(io.Discard, c) // a handler that does not listen to its ctx
			})
		}()
		peer := ln.dial()
		defer peer.Close()
		synctest.Wait()
		stop()
		if at := <-told; at.Sub(start) != 0 {
			t.Fatal("handlers are told late:", at.Sub(start))
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 5*time.Second {
			t.Fatal("ended after", d)
		}
	})
}

func TestConnectionLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go Run(ctx, ln, Options{Limit: 1}, func(_ context.Context, c net.Conn) { io.Copy(io.Discard, c) })
		first := ln.dial()
		second := ln.dial()
		if _, err := second.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal("second connection:", err)
		}
		first.Close()
		synctest.Wait()
		third := ln.dial()
		if _, err := third.Write([]byte("x")); err != nil {
			t.Fatal("a place was free:", err)
		}
		third.Close()
	})
}

func TestPanicClosesOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go Run(ctx, ln, Options{}, func(_ context.Context, c net.Conn) {
			b := make([]byte, 1)
			c.Read(b)
			if b[0] == '!' {
				panic("a bug")
			}
			c.Write(b)
		})
		bad, good := ln.dial(), ln.dial()
		bad.Write([]byte("!"))
		if _, err := bad.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal(err)
		}
		good.Write([]byte("x"))
		if _, err := good.Read(make([]byte, 1)); err != nil {
			t.Fatal("the other connection suffered:", err)
		}
	})
}
