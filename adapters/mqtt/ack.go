package mqtt

import (
	"errors"
	"fmt"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core/engine"
)

// committed is called by committer goroutines when publishes of this client are durable: the acks are built and
// tried on the socket right here, which saves waking a goroutine per connection and commit.
// Invariant I1: this, and a refusal, are the only ways to a PUBACK.
// Spec: MQTT5 2.2.1 [MQTT-2.2.1-5]
func (s *session) committed(rs []engine.Receipt) {
	var failure error
	if _, err := s.out.Append(func(dst []byte) []byte {
		for i := range rs {
			if rs[i].Token != noAck {
				s.ring.finish(rs[i].Token, pubackCode(rs[i].Err))
			}
			if rs[i].Err != nil {
				failure = rs[i].Err
			}
		}
		var refused bool
		dst, refused = s.ring.emit(dst, s.version)
		switch {
		case !refused:
			failure = nil
		case failure == nil:
			failure = errRefused // earlier, and it is its turn now
		}
		return dst
	}); err != nil {
		s.stop(err)
	} else {
		_ = s.flush() // it has stopped the session
	}
	if failure != nil {
		s.stop(fmt.Errorf("publish: %w", failure))
	}
	s.ring.nudge(s.wake)
}

// errRefused: the reason was logged when the publish was refused.
var errRefused = errors.New("refused, which version 3 cannot say")

func pubackCode(err error) wire.Reason {
	if err == nil {
		return wire.Success
	}
	return codesOf(err).puback
}

// refusePublish answers a publish that was not stored.
func (s *session) refusePublish(token uint64, topic []byte, err error) error {
	s.srv.log.Debug("publish refused", "client_id", s.id, "topic", string(topic), "err", err)
	if token == noAck {
		s.srv.metrics.store.Inc() // QoS 0: nobody waits for an answer
		return nil
	}
	var refused bool
	if _, e := s.out.Append(func(dst []byte) []byte {
		s.ring.finish(token, pubackCode(err))
		dst, refused = s.ring.emit(dst, s.version)
		return dst
	}); e != nil {
		return e
	}
	if refused {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// reserve takes a place in the ring for a QoS 1 publish.
// Spec: MQTT5 3.3.4 [MQTT-3.3.4-7]
func (s *session) reserve(id uint16) (token uint64, err error) {
	for {
		var ok bool
		if err := s.out.With(func() { token, ok = s.ring.push(id) }); err != nil {
			return 0, err
		}
		if ok {
			return token, nil
		}
		if s.version == wire.V5 {
			return 0, refuse(wire.ReceiveMaximumExceeded, "more publishes than the receive maximum")
		}
		// A version 3 client knows no limit: it is not read until there is room.
		if err := s.out.Flush(); err != nil {
			return 0, err
		}
		<-s.wake
		if err := s.stopped(); err != nil {
			return 0, err
		}
	}
}

func (s *session) ringEmpty() bool {
	empty := false
	err := s.out.With(func() { empty = s.ring.len() == 0 })
	return empty || err != nil
}
