package serve

import (
	"context"
	"net"
	"time"
)

// Listen opens a TCP listener. Probes find dead peers of protocols that have no keep-alive of their own, and
// are rare enough to cost an idle fleet nothing.
func Listen(bind string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 2 * time.Minute, Interval: 30 * time.Second, Count: 4,
	}}
	return lc.Listen(context.Background(), "tcp", bind)
}
