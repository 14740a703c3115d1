package pulsar

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Config of the Pulsar listener. A zero value means the default of NewConfig.
type Config struct {
	Bind string `yaml:"bind"`
	// Advertise is the service URL or host:port that lookups answer. Empty: clients are told to come back through the address that
	// they already use, which suits NAT, containers and load balancers.
	Advertise      string        `yaml:"advertise"`
	MaxMessageSize int           `yaml:"max_message_size"` // what clients are told; a frame may be 10 KiB larger
	KeepAlive      time.Duration `yaml:"keep_alive"`       // silence before a PING; as long again before the end; also the deadline of CONNECT
	Probe          time.Duration `yaml:"probe"`            // how long the holder of a name may take to prove that it lives
	Connections    int           `yaml:"connections"`      // at once; 20000 by default
	Pending        int           `yaml:"pending"`          // publishes of a producer without a receipt before its connection is not read
	OutBytes       int           `yaml:"out_bytes"`        // held for a client that does not read; messages wait in the log long before
	Grace          time.Duration `yaml:"grace"`
}

// NewConfig returns the defaults.
func NewConfig() Config {
	return Config{
		Bind: ":6650", MaxMessageSize: 5 << 20, KeepAlive: 30 * time.Second, Probe: 5 * time.Second, Connections: 20000,
		Pending: 1000, OutBytes: 64 << 20, Grace: 5 * time.Second,
	}
}

// withDefaults fills what was not said.
func (c Config) withDefaults() Config {
	d := NewConfig()
	return Config{
		Bind: cmp.Or(c.Bind, d.Bind), Advertise: c.Advertise, MaxMessageSize: cmp.Or(c.MaxMessageSize, d.MaxMessageSize),
		KeepAlive: cmp.Or(c.KeepAlive, d.KeepAlive), Probe: cmp.Or(c.Probe, d.Probe), Connections: cmp.Or(c.Connections, d.Connections),
		Pending: cmp.Or(c.Pending, d.Pending), OutBytes: cmp.Or(c.OutBytes, d.OutBytes), Grace: cmp.Or(c.Grace, d.Grace),
	}
}

// Validate names every fault.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("pulsar."+format, args...))
		}
	}
	_, _, err := net.SplitHostPort(c.Bind)
	bad(err == nil, "bind: %v", err)
	_, _, err = net.SplitHostPort(strings.TrimPrefix(c.Advertise, "pulsar://"))
	bad(c.Advertise == "" || err == nil, "advertise: %v", err)
	bad(c.MaxMessageSize >= 1<<10 && c.MaxMessageSize <= 32<<20, "max_message_size: %d is not within 1 KiB and 32 MiB", c.MaxMessageSize)
	bad(c.KeepAlive >= time.Second, "keep_alive: %v is less than a second", c.KeepAlive)
	bad(c.Probe > 0, "probe: %v is not positive", c.Probe)
	bad(c.Connections >= 0, "connections: %d is negative", c.Connections)
	bad(c.Pending >= 1 && c.Pending <= 1<<20, "pending: %d is not within 1 and 1048576", c.Pending)
	bad(c.OutBytes >= 1<<20, "out_bytes: %d is less than 1 MiB", c.OutBytes)
	bad(c.Grace >= 0, "grace: %v is negative", c.Grace)
	return errors.Join(errs...)
}
