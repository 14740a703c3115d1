package mqtt

import (
	"io"
	"net"
	"syscall"

	"isthmus/adapters/serve"
)

// input is the read side of one connection, owned by its reader goroutine. While a socket is idle it holds no
// buffer: the attempt to read that finds nothing gives it back before the goroutine parks.
type input struct {
	c    net.Conn
	raw  syscall.RawConn // nil: not a socket; then the buffer stays
	buf  []byte          // bytes r to w are unread
	r, w int
	max  int  // bytes of the largest packet
	full bool // the last read filled the buffer: there is more

	try func(fd uintptr) bool // attempt, bound once
	err error
}

func newInput(c net.Conn, max int) *input {
	in := &input{c: c, max: max}
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			in.raw, in.try = raw, in.attempt
		}
	}
	return in
}

// bytes are the unread ones; consume takes n off.
func (in *input) bytes() []byte { return in.buf[in.r:in.w] }
func (in *input) consume(n int) { in.r += n }

// fill waits until there are more bytes.
func (in *input) fill() error {
	in.makeRoom()
	before := in.w
	if in.raw == nil {
		if in.buf == nil {
			in.borrow()
		}
		n, err := in.c.Read(in.buf[in.w:])
		in.w += n
		if n > 0 {
			err = nil
		}
		in.full = in.w == len(in.buf)
		return err
	}
	in.err = nil
	if err := in.raw.Read(in.try); err != nil && in.w == before {
		return err
	}
	return in.err
}

func (in *input) attempt(fd uintptr) bool {
	if in.buf == nil {
		in.borrow()
	}
	for {
		n, err := syscall.Read(int(fd), in.buf[in.w:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			if in.r == in.w {
				in.release()
			}
			return false // park until readable
		case err != nil:
			in.err = err
		case n == 0:
			in.err = io.EOF
		default:
			in.w += n
			in.full = in.w == len(in.buf)
		}
		return true
	}
}

// makeRoom makes the buffer able to take at least one byte more: by going back to its front, or, with a packet
// that is larger, by doubling it as its bytes arrive, never by what a length field promises.
func (in *input) makeRoom() {
	switch {
	case in.buf == nil:
	case in.r == in.w:
		in.r, in.w = 0, 0
		if in.full && cap(in.buf) < largeInput || cap(in.buf) > largeInput {
			serve.PutBuffer(in.buf)
			in.buf = serve.GetLarge()[:largeInput]
		}
	case in.w < len(in.buf):
	case in.r > 0:
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	default:
		in.grow()
	}
}

const largeInput = 64 << 10

func (in *input) grow() {
	var next []byte
	if len(in.buf) < largeInput {
		next = serve.GetLarge()[:largeInput]
	} else {
		next = make([]byte, min(2*len(in.buf), max(in.max, 2*largeInput)))
	}
	copy(next, in.buf[:in.w])
	serve.PutBuffer(in.buf)
	in.buf = next
}

func (in *input) borrow() {
	b := serve.GetBuffer()
	in.buf = b[:cap(b)]
}

func (in *input) release() {
	serve.PutBuffer(in.buf)
	in.buf, in.r, in.w, in.full = nil, 0, 0, false
}
