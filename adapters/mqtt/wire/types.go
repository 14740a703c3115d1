package wire

// Version is the protocol level byte of CONNECT.
type Version byte

// The versions that are spoken here.
const (
	V31  Version = 3 // "MQIsdp"
	V311 Version = 4
	V5   Version = 5
)

// Type is the packet type, the high half of the first byte.
type Type byte

// Spec: MQTT5 2.1.2; MQTT3 2.2.1
const (
	CONNECT Type = 1 + iota
	CONNACK
	PUBLISH
	PUBACK
	PUBREC
	PUBREL
	PUBCOMP
	SUBSCRIBE
	SUBACK
	UNSUBSCRIBE
	UNSUBACK
	PINGREQ
	PINGRESP
	DISCONNECT
	AUTH
)

// will stands for the properties of a will in the table of properties; type 0 is reserved on the wire.
const will Type = 0

var typeNames = [16]string{
	"RESERVED", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE", "SUBACK",
	"UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH",
}

func (t Type) String() string { return typeNames[t&15] }

// Limits bound what a parser accepts. A zero limit is no limit, except that of the standard.
type Limits struct {
	Packet         int // bytes of a packet, fixed header included
	Topic          int // bytes of a topic or filter
	Levels         int // levels of a topic or filter
	Filters        int // filters of one SUBSCRIBE or UNSUBSCRIBE
	UserProperties int // pairs in one packet
}

// Error is a packet that breaks the standard or a limit.
type Error struct {
	Reason Reason // what a version 5 peer is told
	What   string
}

func (e *Error) Error() string { return e.What + " (" + e.Reason.String() + ")" }

func malformed(what string) *Error { return &Error{MalformedPacket, what} }
func protocol(what string) *Error  { return &Error{ProtocolError, what} }
