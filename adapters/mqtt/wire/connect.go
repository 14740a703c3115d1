package wire

import "encoding/binary"

// Connect opens a connection. Fields are views.
// Spec: MQTT5 3.1; MQTT3 3.1
type Connect struct {
	Version    Version
	CleanStart bool // clean session in version 3
	KeepAlive  uint16
	ClientID   []byte
	Will       *Will
	Username   []byte // nil: none
	Password   []byte // nil: none
	Properties Properties
}

// Will is the message a client leaves behind.
type Will struct {
	QoS        byte
	Retain     bool
	Topic      []byte
	Payload    []byte
	Properties Properties
}

const (
	flagCleanStart = 1 << 1
	flagWill       = 1 << 2
	flagWillRetain = 1 << 5
	flagPassword   = 1 << 6
	flagUsername   = 1 << 7
)

// Parse reads the body of a CONNECT. When the protocol level is unknown the error's reason is
// UnsupportedVersion and Version is what the client asked for.
func (c *Connect) Parse(body []byte, l *Limits) error {
	r := reader{b: body}
	if !c.parseProtocol(&r) {
		return r.err
	}
	flags := r.u8()
	c.KeepAlive = r.u16()
	if !c.checkFlags(&r, flags) {
		return r.err
	}
	c.CleanStart = flags&flagCleanStart != 0
	c.Properties.parse(&r, c.Version, CONNECT, l)
	c.ClientID = r.text()
	c.Will = nil
	if flags&flagWill != 0 {
		c.Will = parseWill(&r, flags, c.Version, l)
	}
	c.Username, c.Password = nil, nil
	if flags&flagUsername != 0 {
		c.Username = r.text()
	}
	if flags&flagPassword != 0 {
		c.Password = r.bytes()
	}
	if r.err == nil && c.Properties.Has(AuthData) && !c.Properties.Has(AuthMethod) {
		r.fail(protocol("authentication data without a method"))
	}
	return r.end()
}

// Spec: MQTT5 3.1.2.1 [MQTT-3.1.2-1]; MQTT5 3.1.2.2 [MQTT-3.1.2-2]
func (c *Connect) parseProtocol(r *reader) bool {
	name := string(r.bytes())
	c.Version = Version(r.u8())
	switch {
	case r.err != nil:
	case name == "MQTT" && (c.Version == V311 || c.Version == V5):
	case name == "MQIsdp" && c.Version == V31:
	case name == "MQTT" || name == "MQIsdp":
		r.fail(&Error{UnsupportedVersion, "unknown protocol level"})
	default:
		r.fail(protocol("not the MQTT protocol"))
	}
	return r.err == nil
}

// Spec: MQTT5 3.1.2.3 [MQTT-3.1.2-3]; MQTT5 3.1.2.6 [MQTT-3.1.2-11] [MQTT-3.1.2-12]; MQTT5 3.1.2.7 [MQTT-3.1.2-13]
// Spec: MQTT3 3.1.2.9 [MQTT-3.1.2-22]
func (c *Connect) checkFlags(r *reader, flags byte) bool {
	qos := flags >> 3 & 3
	switch {
	case r.err != nil:
	case flags&1 != 0:
		r.fail(malformed("reserved connect flag"))
	case qos == 3:
		r.fail(malformed("will QoS 3"))
	case flags&flagWill == 0 && (qos != 0 || flags&flagWillRetain != 0):
		r.fail(malformed("will QoS or will retain without a will"))
	case c.Version < V5 && flags&flagPassword != 0 && flags&flagUsername == 0:
		r.fail(malformed("password without a user name"))
	}
	return r.err == nil
}

func parseWill(r *reader, flags byte, v Version, l *Limits) *Will {
	w := &Will{QoS: flags >> 3 & 3, Retain: flags&flagWillRetain != 0}
	w.Properties.parse(r, v, will, l)
	w.Topic = r.bytes()
	w.Payload = r.bytes()
	if r.err == nil {
		if err := checkTopic(w.Topic, l); err != nil {
			r.fail(err)
		}
	}
	return w
}

// Append encodes the packet.
func (c *Connect) Append(dst []byte) []byte {
	name := "MQTT"
	if c.Version == V31 {
		name = "MQIsdp"
	}
	length := 2 + len(name) + 4 + c.Properties.sizeWithLength(c.Version) + 2 + len(c.ClientID)
	var flags byte
	if c.CleanStart {
		flags |= flagCleanStart
	}
	if w := c.Will; w != nil {
		flags |= flagWill | w.QoS<<3
		if w.Retain {
			flags |= flagWillRetain
		}
		length += w.Properties.sizeWithLength(c.Version) + 4 + len(w.Topic) + len(w.Payload)
	}
	if c.Username != nil {
		flags |= flagUsername
		length += 2 + len(c.Username)
	}
	if c.Password != nil {
		flags |= flagPassword
		length += 2 + len(c.Password)
	}
	dst = appendHeader(dst, CONNECT, 0, length)
	dst = append(appendBytes(dst, name), byte(c.Version), flags)
	dst = binary.BigEndian.AppendUint16(dst, c.KeepAlive)
	dst = c.Properties.append(dst, c.Version)
	dst = appendBytes(dst, c.ClientID)
	if w := c.Will; w != nil {
		dst = w.Properties.append(dst, c.Version)
		dst = appendBytes(appendBytes(dst, w.Topic), w.Payload)
	}
	if c.Username != nil {
		dst = appendBytes(dst, c.Username)
	}
	if c.Password != nil {
		dst = appendBytes(dst, c.Password)
	}
	return dst
}
