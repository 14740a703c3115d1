package serve

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// ErrSlow says that a client did not read what it was sent until the limit was full. Its connection has to go.
var ErrSlow = errors.New("client does not read: output limit reached")

// Out holds the bytes on their way to one client. Any goroutine may append and flush. What an Append callback
// touches is guarded by the Out's lock: small state whose order must be the order on the wire (a ring of
// pending acks, a window of packet ids) may live there. A callback must not block or take another lock.
type Out struct {
	c     net.Conn
	raw   syscall.RawConn // nil: not a socket, every write goes by the writer goroutine
	limit int

	mu      sync.Mutex
	buf     []byte // nil while there is nothing to say
	taken   int    // bytes that the writer goroutine took and has not written yet
	writing bool   // a writer goroutine is at work; it alone writes until it clears this
	last    bool   // nothing may be appended any more
	closing bool   // nobody starts a writer any more
	err     error  // first failure, for good

	writer  sync.WaitGroup
	drained func() // called by the writer goroutine when the socket took everything

	try    func(fd uintptr) bool // attempt, bound once so that a flush allocates nothing
	n      int                   // outcome of the last attempt
	tryErr error
}

// NewOut makes the output of c; limit bounds the bytes held for a client that does not read (one more append
// may go beyond it, so that a packet is never cut).
func NewOut(c net.Conn, limit int) *Out {
	o := &Out{c: c, limit: limit}
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			o.raw, o.try = raw, o.attempt
		}
	}
	return o
}

// OnDrained sets a function that is called, without the lock, each time a full socket has taken everything.
// It must not block. Set it before the first Append.
func (o *Out) OnDrained(f func()) { o.drained = f }

// Append lets f add to the pending bytes and tells how many are pending now. Nothing is written before a
// Flush. f is not called once the Out has failed or is closing.
func (o *Out) Append(f func(dst []byte) []byte) (buffered int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.open(); err != nil {
		return 0, err
	}
	return o.add(f)
}

// Last is Append, and from then on nothing can be appended: what f adds is the last the peer gets.
func (o *Out) Last(f func(dst []byte) []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.open(); err != nil {
		return err
	}
	o.last = true
	_, err := o.add(f)
	return err
}

// open tells whether more may be said. The caller holds the lock, as below.
func (o *Out) open() error {
	if o.err == nil && (o.last || o.closing) {
		return net.ErrClosed
	}
	return o.err
}

func (o *Out) add(f func(dst []byte) []byte) (buffered int, err error) {
	if len(o.buf)+o.taken > o.limit {
		o.err = ErrSlow
		return 0, o.err
	}
	if o.buf == nil {
		o.buf = GetBuffer()
	}
	o.buf = f(roomy(o.buf))
	if len(o.buf) == 0 {
		o.release()
	}
	return len(o.buf) + o.taken, nil
}

// With runs f under the lock, unless the Out has failed or is closing: for state that lives under it.
func (o *Out) With(f func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.open(); err != nil {
		return err
	}
	f()
	return nil
}

func (o *Out) release() {
	PutBuffer(o.buf)
	o.buf = nil
}

// Write appends a copy of p without flushing.
func (o *Out) Write(p []byte) (int, error) {
	if _, err := o.Append(func(dst []byte) []byte { return append(dst, p...) }); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Buffered tells how many bytes wait for a flush or for the socket.
func (o *Out) Buffered() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.buf) + o.taken
}

// Flush writes what the socket takes at once. The rest, if any, is left to a writer goroutine.
func (o *Out) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.flush()
}

func (o *Out) flush() error {
	if o.err != nil || o.writing || o.closing || len(o.buf) == 0 {
		return o.err
	}
	if o.raw != nil {
		if o.err = o.writeNow(); o.err != nil {
			return o.err
		}
		if len(o.buf) == 0 {
			o.release()
			return nil
		}
	}
	o.writing = true
	o.writer.Go(o.drain)
	return nil
}

// writeNow makes one attempt that never waits: a system call of a few microseconds under the lock, which keeps
// the order of bytes without a second queue.
func (o *Out) writeNow() error {
	o.n, o.tryErr = 0, nil
	if err := o.raw.Write(o.try); err != nil {
		return err
	}
	if o.tryErr != nil {
		return o.tryErr
	}
	o.buf = o.buf[:copy(o.buf, o.buf[o.n:])]
	return nil
}

func (o *Out) attempt(fd uintptr) bool {
	for {
		n, err := syscall.Write(int(fd), o.buf)
		switch err {
		case nil:
			o.n = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
		default:
			o.tryErr = err
		}
		return true // one attempt is all: never park
	}
}

// drain writes until nothing is pending. It takes the whole buffer each time, so appends go on meanwhile.
func (o *Out) drain() {
	o.mu.Lock()
	for len(o.buf) > 0 && o.err == nil {
		b := o.buf
		o.buf, o.taken = nil, len(b)
		o.mu.Unlock()
		_, err := o.c.Write(b)
		PutBuffer(b)
		o.mu.Lock()
		o.taken = 0
		if err != nil && o.err == nil {
			o.err = err
		}
	}
	o.writing = false
	healthy := o.err == nil && !o.closing
	o.mu.Unlock()
	if healthy && o.drained != nil {
		o.drained()
	}
}
