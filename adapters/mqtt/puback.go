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
	var done []lease
	expired := 0
	_, err := s.out.Append(func(dst []byte) []byte {
		var ok bool
		if l, ok = s.outbox.ack(p.ID); ok && len(s.outbox.queue) > 0 {
			dst, done, expired = s.outbox.drain(dst, s, nowMilli, done)
		}
		return dst
	})
	l.finish()
	s.finished(done, expired)
	return err
}

// pump goes on with the queue when a full socket has taken everything. The output's writer goroutine calls it.
func (s *session) pump() {
	var done []lease
	expired := 0
	n, err := s.out.Append(func(dst []byte) []byte {
		dst, done, expired = s.outbox.drain(dst, s, nowMilli, done)
		return dst
	})
	if n > 0 || err != nil {
		s.afterAppend(err)
	}
	s.finished(done, expired)
}

func (s *session) finished(done []lease, expired int) {
	for _, l := range done {
		l.finish()
	}
	if expired > 0 {
		s.srv.metrics.expired.Add(float64(expired))
	}
}

func nowMilli() int64 { return time.Now().UnixMilli() }
