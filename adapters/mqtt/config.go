package mqtt

import (
	"errors"
	"fmt"
	"time"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
)

// What a 3.1.1 client that subscribes to $share gets. The standard gives that name to version 5 alone.
const (
	V311SharedDisconnect = "disconnect"
	V311SharedRefuse     = "refuse" // SUBACK 0x80
	V311SharedAllow      = "allow"
)

// Config of one MQTT listener. Every number is a bound; its comment says what happens there.
type Config struct {
	Bind, Listener string // address, and the name that authentication sees

	Connections    int           // one more is closed at accept
	ConnectTimeout time.Duration // a client that has not sent CONNECT by then is closed
	Grace          time.Duration // at shutdown, for last acknowledgements and farewells
	MaxKeepAlive   time.Duration // version 5 clients are told to ping more often; 0: any interval will do

	MaxPayload     int // with room for topic and properties it makes the maximum packet size: 0x95
	MaxTopic       int // bytes of a topic or filter: 0x90, 0x8F
	MaxLevels      int // levels of a topic or filter: 0x90, 0x8F
	MaxFilters     int // subscriptions of a client, and filters of one packet: 0x97
	MaxUserProps   int // user properties of a packet: 0x97
	ReceiveMaximum int // publishes of a client that wait for their PUBACK: v5 0x93, v3 is not read
	TopicAliases   int // aliases of a client: 0x94

	MaxInflight    int // deliveries that wait for a client's PUBACK; further ones queue
	MaxQueued      int // queued deliveries of plain subscriptions: the client is closed with 0x97
	MaxQueuedBytes int // and their payloads: the same
	MaxOutput      int // bytes a client has not read: messages stop at half, QoS 0 is dropped then; acks beyond it close

	V311Shared string
	ByKey      map[GroupName]bool // groups whose $share members get whole keys, in order; the others any message in turn
}

// GroupName names a core group: $share/Group/… where that reaches Topic.
type GroupName struct {
	Topic core.TopicName
	Group string
}

// DefaultConfig is a listener for a few thousand devices on a small machine.
func DefaultConfig() Config {
	return Config{
		Bind: "127.0.0.1:1883", Listener: "mqtt",
		Connections: 20000, ConnectTimeout: 10 * time.Second, Grace: 5 * time.Second,
		MaxPayload: 5 << 20, MaxTopic: 1024, MaxLevels: 32, MaxFilters: 1000, MaxUserProps: 64,
		ReceiveMaximum: 1024, TopicAliases: 16,
		MaxInflight: 1024, MaxQueued: 1000, MaxQueuedBytes: 16 << 20, MaxOutput: 4 << 20,
		V311Shared: V311SharedDisconnect,
	}
}

// Validate names every fault by its field.
func (c Config) Validate() error {
	var errs []error
	positive := func(name string, v, max int) {
		if v < 1 || v > max {
			errs = append(errs, fmt.Errorf("%s: %d is not between 1 and %d", name, v, max))
		}
	}
	if c.Bind == "" {
		errs = append(errs, errors.New("bind: empty"))
	}
	positive("connections", c.Connections, 1<<24)
	positive("max_payload", c.MaxPayload, wire.MaxVarint-packetOverhead)
	positive("max_topic", c.MaxTopic, 65535)
	positive("max_levels", c.MaxLevels, 32768)
	positive("max_filters", c.MaxFilters, 1<<20)
	positive("max_user_properties", c.MaxUserProps, 1<<16)
	positive("receive_maximum", c.ReceiveMaximum, 65535)
	positive("topic_aliases", c.TopicAliases, 65535)
	positive("max_inflight", c.MaxInflight, 65535)
	positive("max_queued", c.MaxQueued, 1<<24)
	positive("max_queued_bytes", c.MaxQueuedBytes, 1<<40)
	if c.MaxOutput < 4*flushAt || c.MaxOutput > 1<<30 {
		errs = append(errs, fmt.Errorf("max_output: %d is not between 256 KiB and 1 GiB", c.MaxOutput))
	}
	if c.ConnectTimeout <= 0 {
		errs = append(errs, errors.New("connect_timeout: must be positive"))
	}
	if c.Grace < 0 || c.MaxKeepAlive < 0 || c.MaxKeepAlive > 65535*time.Second {
		errs = append(errs, errors.New("grace, max_keep_alive: out of range"))
	}
	switch c.V311Shared {
	case V311SharedDisconnect, V311SharedRefuse, V311SharedAllow:
	default:
		errs = append(errs, fmt.Errorf("v311_shared: %q is none of disconnect, refuse, allow", c.V311Shared))
	}
	return errors.Join(errs...)
}

// packetOverhead is the room for topic and properties beside the largest payload.
const packetOverhead = 64 << 10

// connectPacket bounds the first packet, whose sender is a stranger still; a will's payload is the larger part.
const connectPacket = 320 << 10

func (c Config) limits() wire.Limits {
	return wire.Limits{
		Packet: c.MaxPayload + packetOverhead, Topic: c.MaxTopic, Levels: c.MaxLevels,
		Filters: c.MaxFilters, UserProperties: c.MaxUserProps,
	}
}
