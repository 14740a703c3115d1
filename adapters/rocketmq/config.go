package rocketmq

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"time"
)

// Config of the RocketMQ listeners.
type Config struct {
	Bind      string // name server port, such as "127.0.0.1:9876"
	Broker    string // broker port; "" = the name server port answers everything
	Advertise string // host:port of the broker as clients reach it; "" = the address they connected to
	Cluster   string // default "DefaultCluster"

	Connections        int           // per listener; 0: no limit
	Grace              time.Duration // between end of service and deadlines; default 2 s
	Idle               time.Duration // a connection that says nothing is closed; default 120 s, as real brokers do
	LockTime           time.Duration // how long a queue lock lasts unless renewed; default 60 s, as real brokers do
	TransactionTimeout time.Duration // how long a producer may take to decide before it is asked; default 6 s, as real brokers do
	MaxBody            int           // bytes of one message; default 4 MiB, as real brokers do

	DelayLevels []time.Duration // what levels 1, 2, ... mean; default DelayLevels()
}

const maxBody = 15 << 20

func (c *Config) setDefaults() {
	c.Cluster = cmp.Or(c.Cluster, "DefaultCluster")
	c.Grace = cmp.Or(c.Grace, 2*time.Second)
	c.Idle = cmp.Or(c.Idle, 120*time.Second)
	// Clients renew each 20 s and distrust their own lock after 30.
	// Spec: RocketMQ RebalanceLockManager.REBALANCE_LOCK_MAX_LIVE_TIME@5.x
	c.LockTime = cmp.Or(c.LockTime, 60*time.Second)
	c.TransactionTimeout = cmp.Or(c.TransactionTimeout, 6*time.Second)
	c.MaxBody = cmp.Or(c.MaxBody, 4<<20)
	if len(c.DelayLevels) == 0 {
		c.DelayLevels = DelayLevels()
	}
}

// Validate names every fault by its path.
func (c Config) Validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(c.Bind); err != nil {
		errs = append(errs, fmt.Errorf("bind: %w", err))
	}
	for path, addr := range map[string]string{"broker": c.Broker, "advertise": c.Advertise} {
		if addr == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
	}
	if c.Connections < 0 || c.Grace < 0 || c.Idle < 0 || c.LockTime < 0 || c.TransactionTimeout < 0 {
		errs = append(errs, errors.New("connections, grace, idle, lock time, transaction timeout: negative"))
	}
	for i, d := range c.DelayLevels {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("delay level %d: %v", i+1, d))
		}
	}
	if c.MaxBody < 0 || c.MaxBody > maxBody {
		errs = append(errs, fmt.Errorf("max body: %d is not within %d, what fits a frame", c.MaxBody, maxBody))
	}
	return errors.Join(errs...)
}
