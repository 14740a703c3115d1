package mqtt

import (
	"time"

	"isthmus/adapters/mqtt/wire"
)

// PUBACK from the client, all versions: the message is consumed, whether the client liked it or not.
// Spec: MQTT5 4.3.2, 4.4.0 [MQTT-4.4.0-2], 4.8.2 [MQTT-4.8.2-6]; MQTT3 4.3.2
func (s *session) puback(body []byte) error {
	var p wire.Ack
	if err := p.Parse(wire.PUBACK, body, s.version, s.limits); err != nil {
		return err
	}
	var l lease
	var waiting bool
	if err := s.out.With(func() {
		l, _ = s.outbox.ack(p.ID)
		waiting = len(s.outbox.queue) > 0
	}); err != nil {
		return err
	}
	l.finish()
	switch {
	case !waiting:
	case s.out.Buffered() >= flushAt:
		s.starved.Store(true) // flush or pump goes on when the socket has taken that
	default:
		return s.refill()
	}
	return nil
}

// refill appends what waits in the queue and has room now.
func (s *session) refill() error {
	var d drained
	_, err := s.out.Append(func(dst []byte) []byte {
		var more bool
		dst, d, more = s.outbox.drain(dst, s, nowMilli)
		s.starved.Store(more)
		return dst
	})
	for _, l := range d.done {
		l.finish()
	}
	if d.expired > 0 {
		s.srv.metrics.expired.Add(float64(d.expired))
	}
	return err
}

// flush writes what was appended, and goes on with the queue as long as the socket takes everything at once. If it
// does not, pump goes on. It ends a session that cannot be written to.
func (s *session) flush() error {
	for {
		err := s.out.Flush()
		if err == nil && s.starved.Load() && s.out.Buffered() == 0 {
			if err = s.refill(); err == nil {
				continue
			}
		}
		if err != nil {
			s.stop(err)
		}
		return err
	}
}

// pump goes on with the queue when a full socket has taken everything. The output's writer goroutine calls it.
func (s *session) pump() {
	if s.starved.Load() {
		if err := s.refill(); err != nil {
			s.stop(err)
			return
		}
		_ = s.flush() // it has stopped the session
	}
}

func nowMilli() int64 { return time.Now().UnixMilli() }
