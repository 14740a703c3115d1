package clients

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Device is an MQTT 3.1.1 publisher cut down to what a fleet of hundreds needs: a connection, a window of publishes in
// flight, and the habit of real devices to come back and go on where the acknowledgements ended.
type Device struct {
	Addr, ClientID string
	Window         int           // QoS 1 publishes in flight, at least 1
	Pace           time.Duration // pause between publishes, 0 = as fast as the window allows
	NoReconnect    bool
}

// Publication is one message of a device.
type Publication struct {
	Topic   string
	Payload []byte
}

var errRefused = errors.New("mqtt connect refused")

// Run publishes next(0) … next(n-1) at QoS 1 and returns when all are acknowledged. acked, if not nil, is told of each.
// After a lost connection it connects again and sends from the first unacknowledged one: order stays, copies may appear.
func (d *Device) Run(ctx context.Context, n int, next func(i int) Publication, acked func(i int)) error {
	for done := 0; done < n; {
		err := d.session(ctx, n, &done, next, acked)
		if err == nil || ctx.Err() != nil || d.NoReconnect {
			return errors.Join(err, ctx.Err())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("device %s: %d of %d acknowledged: %w (last: %w)", d.ClientID, done, n, ctx.Err(), err)
		case <-time.After(100 * time.Millisecond): // the back-off of a device, not a wait of a test
		}
	}
	return nil
}

// session is one connection's life. done moves with every PUBACK, which MQTT promises to come in order.
func (d *Device) session(ctx context.Context, n int, done *int, next func(int) Publication, acked func(int)) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", d.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	unhook := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	defer unhook()
	r := bufio.NewReaderSize(conn, 512)
	if err := d.connect(conn, r); err != nil {
		return err
	}
	acks := make(chan uint16, d.Window)
	fault := make(chan error, 1)
	go func() { fault <- readAcks(r, acks) }() // ends when the deferred Close breaks the read

	sent, buf := *done, make([]byte, 0, 512)
	var pace <-chan time.Time
	if d.Pace > 0 {
		t := time.NewTicker(d.Pace)
		defer t.Stop()
		pace = t.C
	}
	for *done < n {
		if sent < n && sent-*done < max(d.Window, 1) {
			if pace != nil {
				select {
				case <-pace:
				case id := <-acks:
					if err := d.ack(id, done, acked); err != nil {
						return err
					}
					continue
				case err := <-fault:
					return err
				}
			}
			buf = AppendPublish(buf[:0], next(sent), packetID(sent))
			if _, err := conn.Write(buf); err != nil {
				return err
			}
			sent++
			if sent < n && sent-*done < d.Window && pace == nil {
				continue
			}
		}
		select {
		case id := <-acks:
			if err := d.ack(id, done, acked); err != nil {
				return err
			}
		case err := <-fault:
			return err
		case <-time.After(30 * time.Second):
			return fmt.Errorf("device %s: no PUBACK for 30 s", d.ClientID)
		}
	}
	conn.Write([]byte{0xe0, 0})
	return nil
}

func packetID(i int) uint16 { return uint16(i%65535) + 1 }

func (d *Device) ack(id uint16, done *int, acked func(int)) error {
	if want := packetID(*done); id != want {
		return fmt.Errorf("device %s: PUBACK %d, want %d: acknowledgements out of order", d.ClientID, id, want)
	}
	if acked != nil {
		acked(*done)
	}
	*done++
	return nil
}

func (d *Device) connect(conn net.Conn, r *bufio.Reader) error {
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write(AppendConnect(nil, d.ClientID, 4)); err != nil {
		return err
	}
	var ack [4]byte
	if _, err := io.ReadFull(r, ack[:]); err != nil {
		return err
	}
	if ack[0] != 0x20 || ack[3] != 0 {
		return fmt.Errorf("%w: % x", errRefused, ack)
	}
	return conn.SetDeadline(time.Time{})
}

func readAcks(r *bufio.Reader, acks chan<- uint16) error {
	var p [4]byte
	for {
		if _, err := io.ReadFull(r, p[:2]); err != nil {
			return err
		}
		if p[0] != 0x40 || p[1] != 2 {
			return fmt.Errorf("unexpected packet % x", p[:2])
		}
		if _, err := io.ReadFull(r, p[2:]); err != nil {
			return err
		}
		acks <- binary.BigEndian.Uint16(p[2:]) // never blocks for long: no more acks come than the window
	}
}

// AppendConnect encodes CONNECT with a clean session and no keep-alive. version is 4 (3.1.1) or 5.
func AppendConnect(b []byte, clientID string, version byte) []byte {
	body := append(appendString(nil, "MQTT"), version, 2, 0, 0)
	if version == 5 {
		body = append(body, 0)
	}
	body = appendString(body, clientID)
	return append(appendLength(append(b, 0x10), len(body)), body...)
}

// AppendPublish encodes a QoS 1 PUBLISH of MQTT 3.1.1.
func AppendPublish(b []byte, p Publication, id uint16) []byte {
	b = appendLength(append(b, 0x32), 2+len(p.Topic)+2+len(p.Payload))
	b = appendString(b, p.Topic)
	b = binary.BigEndian.AppendUint16(b, id)
	return append(b, p.Payload...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func appendLength(b []byte, n int) []byte {
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}
