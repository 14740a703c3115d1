package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"
)

// Options of one listener.
type Options struct {
	Limit int           // connections at once; one more is closed at accept. 0: no limit
	Grace time.Duration // between "say goodbye" and deadlines
	Log   *slog.Logger
}

// Handler owns one connection until it returns. Its ctx ends when the listener stops: the time to take leave.
type Handler func(ctx context.Context, c net.Conn)

// Run accepts on ln until ctx ends or the listener fails, and returns when every handler has returned.
func Run(ctx context.Context, ln net.Listener, o Options, handle func(ctx context.Context, c net.Conn)) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &listener{o: o, handle: handle, conns: make(map[net.Conn]struct{})}
	stopAccept := context.AfterFunc(ctx, func() { ln.Close() })
	defer stopAccept()

	err := l.accept(ctx, ln)
	ln.Close()
	if ctx.Err() != nil {
		err = nil
	}
	l.wait()
	return err
}

// listener is the registry of one listener's connections.
type listener struct {
	o       Options
	handle  Handler
	running sync.WaitGroup

	mu    sync.Mutex // leaf: guards conns
	conns map[net.Conn]struct{}
}

func (l *listener) accept(ctx context.Context, ln net.Listener) error {
	var full fullLog
	for pause := time.Duration(0); ; {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return err
			}
			// Out of file descriptors and its like: the condition passes, the listener stays.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			l.o.Log.Warn("accept failed", "err", err)
			if !sleep(ctx, pause) {
				return ctx.Err()
			}
			continue
		}
		pause = 0
		if !l.add(c) {
			full.log(l.o)
			c.Close()
			continue
		}
		l.running.Go(func() { l.serve(ctx, c) })
	}
}

func (l *listener) serve(ctx context.Context, c net.Conn) {
	defer l.remove(c)
	defer c.Close()
	defer func() {
		if r := recover(); r != nil {
			l.o.Log.Error("panic in a connection", "panic", r, "conn", c.RemoteAddr().String(), "stack", string(debug.Stack()))
		}
	}()
	l.handle(ctx, c)
}

// wait gives handlers the grace, then lets the deadlines of those that remain pass.
func (l *listener) wait() {
	timer := time.AfterFunc(l.o.Grace, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.conns {
			c.SetDeadline(time.Now())
		}
	})
	l.running.Wait()
	timer.Stop()
}

func (l *listener) add(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.o.Limit > 0 && len(l.conns) >= l.o.Limit {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *listener) remove(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// fullLog says at most once a second that the limit was met, with how often.
type fullLog struct {
	last  time.Time
	count int
}

func (f *fullLog) log(o Options) {
	f.count++
	if now := time.Now(); now.Sub(f.last) >= time.Second {
		o.Log.Warn("connection limit reached", "limit", o.Limit, "refused", f.count)
		f.last, f.count = now, 0
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
