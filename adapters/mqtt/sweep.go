package mqtt

import (
	"context"
	"time"
)

// sweep is the one timer of keep-alive: each second it looks who has been silent for too long. A deadline per
// packet would cost more than the packet.
// Spec: MQTT5 3.1.2.10 [MQTT-3.1.2-22]; MQTT3 3.1.2.10 [MQTT-3.1.2-24]
func (s *Server) sweep(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var sessions []*session
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			sessions = s.tickOnce(sessions)
		}
	}
}

// tickOnce moves the clock of keep-alive on by a second and ends who was silent for too long. scratch is kept.
func (s *Server) tickOnce(scratch []*session) []*session {
	now := s.tick.Add(1)
	scratch = s.clients.all(scratch[:0])
	for _, ss := range scratch {
		// A tick is up to a second late, so one is added: never close early.
		if ss.keepAlive > 0 && now-ss.seen.Load() > ss.keepAlive+ss.keepAlive/2+1 {
			ss.stop(errKeepAlive)
		}
	}
	clear(scratch)
	return scratch
}
