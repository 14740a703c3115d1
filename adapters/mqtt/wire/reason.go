package wire

import "fmt"

// Reason is a version 5 reason code; SUBACK codes of version 3 are a subset.
type Reason byte

// Spec: MQTT5 2.4
const (
	Success                Reason = 0x00 // also normal disconnection, granted QoS 0
	GrantedQoS1            Reason = 0x01
	GrantedQoS2            Reason = 0x02
	DisconnectWithWill     Reason = 0x04
	NoMatchingSubscribers  Reason = 0x10
	NoSubscriptionExisted  Reason = 0x11
	ContinueAuthentication Reason = 0x18
	ReAuthenticate         Reason = 0x19
	UnspecifiedError       Reason = 0x80
	MalformedPacket        Reason = 0x81
	ProtocolError          Reason = 0x82
	ImplementationSpecific Reason = 0x83
	UnsupportedVersion     Reason = 0x84
	ClientIDNotValid       Reason = 0x85
	BadUserNameOrPassword  Reason = 0x86
	NotAuthorized          Reason = 0x87
	ServerUnavailable      Reason = 0x88
	ServerBusy             Reason = 0x89
	Banned                 Reason = 0x8A
	ServerShuttingDown     Reason = 0x8B
	BadAuthMethod          Reason = 0x8C
	KeepAliveTimeout       Reason = 0x8D
	SessionTakenOver       Reason = 0x8E
	TopicFilterInvalid     Reason = 0x8F
	TopicNameInvalid       Reason = 0x90
	PacketIDInUse          Reason = 0x91
	PacketIDNotFound       Reason = 0x92
	ReceiveMaximumExceeded Reason = 0x93
	TopicAliasInvalid      Reason = 0x94
	PacketTooLarge         Reason = 0x95
	MessageRateTooHigh     Reason = 0x96
	QuotaExceeded          Reason = 0x97
	AdministrativeAction   Reason = 0x98
	PayloadFormatInvalid   Reason = 0x99
	RetainNotSupported     Reason = 0x9A
	QoSNotSupported        Reason = 0x9B
	UseAnotherServer       Reason = 0x9C
	ServerMoved            Reason = 0x9D
	SharedNotSupported     Reason = 0x9E
	ConnectionRateExceeded Reason = 0x9F
	MaximumConnectTime     Reason = 0xA0
	SubIDsNotSupported     Reason = 0xA1
	WildcardsNotSupported  Reason = 0xA2
)

// in is a set of packet types.
func in(ts ...Type) (set uint16) {
	for _, t := range ts {
		set |= 1 << t
	}
	return set
}

var (
	ackAll   = in(PUBACK, PUBREC)
	filterAl = in(SUBACK, UNSUBACK)
)

// legal tells in which packets a reason may stand, and its name.
var legal = map[Reason]struct {
	in   uint16
	name string
}{
	Success:                {in(CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH), "success"},
	GrantedQoS1:            {in(SUBACK), "granted QoS 1"},
	GrantedQoS2:            {in(SUBACK), "granted QoS 2"},
	DisconnectWithWill:     {in(DISCONNECT), "disconnect with will"},
	NoMatchingSubscribers:  {ackAll, "no matching subscribers"},
	NoSubscriptionExisted:  {in(UNSUBACK), "no subscription existed"},
	ContinueAuthentication: {in(AUTH), "continue authentication"},
	ReAuthenticate:         {in(AUTH), "re-authenticate"},
	UnspecifiedError:       {ackAll | filterAl | in(CONNACK, DISCONNECT), "unspecified error"},
	MalformedPacket:        {in(CONNACK, DISCONNECT), "malformed packet"},
	ProtocolError:          {in(CONNACK, DISCONNECT), "protocol error"},
	ImplementationSpecific: {ackAll | filterAl | in(CONNACK, DISCONNECT), "implementation specific error"},
	UnsupportedVersion:     {in(CONNACK), "unsupported protocol version"},
	ClientIDNotValid:       {in(CONNACK), "client identifier not valid"},
	BadUserNameOrPassword:  {in(CONNACK), "bad user name or password"},
	NotAuthorized:          {ackAll | filterAl | in(CONNACK, DISCONNECT), "not authorized"},
	ServerUnavailable:      {in(CONNACK), "server unavailable"},
	ServerBusy:             {in(CONNACK, DISCONNECT), "server busy"},
	Banned:                 {in(CONNACK), "banned"},
	ServerShuttingDown:     {in(DISCONNECT), "server shutting down"},
	BadAuthMethod:          {in(CONNACK, DISCONNECT), "bad authentication method"},
	KeepAliveTimeout:       {in(DISCONNECT), "keep alive timeout"},
	SessionTakenOver:       {in(DISCONNECT), "session taken over"},
	TopicFilterInvalid:     {filterAl | in(DISCONNECT), "topic filter invalid"},
	TopicNameInvalid:       {ackAll | in(CONNACK, DISCONNECT), "topic name invalid"},
	PacketIDInUse:          {ackAll | filterAl, "packet identifier in use"},
	PacketIDNotFound:       {in(PUBREL, PUBCOMP), "packet identifier not found"},
	ReceiveMaximumExceeded: {in(DISCONNECT), "receive maximum exceeded"},
	TopicAliasInvalid:      {in(DISCONNECT), "topic alias invalid"},
	PacketTooLarge:         {in(CONNACK, DISCONNECT), "packet too large"},
	MessageRateTooHigh:     {in(DISCONNECT), "message rate too high"},
	QuotaExceeded:          {ackAll | in(CONNACK, SUBACK, DISCONNECT), "quota exceeded"},
	AdministrativeAction:   {in(DISCONNECT), "administrative action"},
	PayloadFormatInvalid:   {ackAll | in(CONNACK, DISCONNECT), "payload format invalid"},
	RetainNotSupported:     {in(CONNACK, DISCONNECT), "retain not supported"},
	QoSNotSupported:        {in(CONNACK, DISCONNECT), "QoS not supported"},
	UseAnotherServer:       {in(CONNACK, DISCONNECT), "use another server"},
	ServerMoved:            {in(CONNACK, DISCONNECT), "server moved"},
	SharedNotSupported:     {in(SUBACK, DISCONNECT), "shared subscriptions not supported"},
	ConnectionRateExceeded: {in(CONNACK, DISCONNECT), "connection rate exceeded"},
	MaximumConnectTime:     {in(DISCONNECT), "maximum connect time"},
	SubIDsNotSupported:     {in(SUBACK, DISCONNECT), "subscription identifiers not supported"},
	WildcardsNotSupported:  {in(SUBACK, DISCONNECT), "wildcard subscriptions not supported"},
}

// Legal tells whether r may stand in a packet of type t.
func (r Reason) Legal(t Type) bool { return legal[r].in&(1<<t) != 0 }

func (r Reason) String() string {
	if l, ok := legal[r]; ok {
		return l.name
	}
	return fmt.Sprintf("reason 0x%02X", byte(r))
}
