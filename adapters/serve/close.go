package serve

import (
	"net"
	"sync/atomic"
	"time"
)

const (
	maxLingering   = 256      // sockets at once that are given time to read our last words; more are closed at once
	maxLingerBytes = 64 << 10 // input discarded meanwhile
	maxLingerTime  = 200 * time.Millisecond
)

var lingering atomic.Int32

// Close sends what is pending within linger, takes leave of the peer and closes. It reads from the connection:
// call it from the goroutine that reads, once, as the last thing. When it returns no goroutine of the Out is left.
func (o *Out) Close(linger time.Duration) {
	linger = min(linger, maxLingerTime)
	if lingering.Add(1) <= maxLingering && linger > 0 {
		o.farewell(time.Now().Add(linger))
	} else {
		_ = o.Flush() // what the socket takes at once
	}
	lingering.Add(-1)
	o.fail(net.ErrClosed)
	o.c.Close()
	o.writer.Wait()
}

func (o *Out) farewell(deadline time.Time) {
	o.c.SetDeadline(deadline)
	o.mu.Lock()
	err := o.flush()
	o.closing = true // from here on nobody starts a writer
	o.mu.Unlock()
	o.writer.Wait()
	if err != nil {
		return
	}
	half, ok := o.c.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	scratch := GetBuffer()
	defer PutBuffer(scratch)
	for left := maxLingerBytes; left > 0; {
		n, err := o.c.Read(scratch[:cap(scratch)])
		if err != nil {
			return
		}
		left -= n
	}
}

// Fail makes every later Append and Flush return err and unblocks a reader of the connection. The first
// failure stays. Any goroutine may call it.
func (o *Out) Fail(err error) {
	o.fail(err)
	o.c.SetDeadline(time.Unix(1, 0))
}

func (o *Out) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}
