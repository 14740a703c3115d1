package mqtt

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/adapters/mqtt/wire"
)

// client speaks MQTT in one line per packet, as the scripts write it.
type client struct {
	t    testing.TB
	name string
	conn net.Conn
	v    wire.Version
	buf  []byte
	talk *transcript
}

func (b *bed) client(name string, v wire.Version) *client {
	return &client{t: b.t, name: name, conn: b.dial(), v: v, talk: new(transcript)}
}

// connected is a client that was let in with a clean session.
func (b *bed) connected(name string, v wire.Version, options ...string) *client {
	b.t.Helper()
	c := b.client(name, v)
	c.send("CONNECT id=" + name + " clean " + strings.Join(options, " "))
	if got := c.receive(); !strings.HasPrefix(got, "CONNACK 00") {
		c.fail("not let in: %s", got)
	}
	return c
}

func (c *client) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\nthe talk was:\n%s", fmt.Sprintf(format, args...), c.talk)
}

// transcript is both sides of a talk, for the failure message: its last lines, bodies cut short.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (t *transcript) note(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(line) > 100 {
		line = line[:100] + "…"
	}
	if len(t.lines) > 100 {
		t.lines = t.lines[60:]
	}
	t.lines = append(t.lines, line)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// send writes the packet of a line.
func (c *client) send(line string) {
	c.t.Helper()
	c.talk.note(c.name + "> " + line)
	b, err := encode(line, c.v)
	if err != nil {
		c.fail("script: %v", err)
	}
	if _, err := c.conn.Write(b); err != nil {
		c.talk.note("   " + err.Error())
	}
}

// receive reads one packet and puts it as a line.
func (c *client) receive() string {
	c.t.Helper()
	line := c.read(10 * time.Second)
	c.talk.note(c.name + "< " + line)
	return line
}

func (c *client) read(timeout time.Duration) string {
	c.conn.SetReadDeadline(time.Now().Add(timeout))
	for {
		h, body, n, err := wire.Split(c.buf, c.v, 0)
		if err != nil {
			return "BROKEN " + err.Error()
		}
		if n > 0 {
			line := describe(h, body, c.v)
			c.buf = c.buf[n:]
			return line
		}
		chunk := make([]byte, 4096)
		m, err := c.conn.Read(chunk)
		c.buf = append(c.buf, chunk[:m]...)
		switch {
		case m > 0:
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "TIMEOUT"
		case errors.Is(err, io.EOF):
			return "CLOSED"
		case err != nil:
			return "RESET"
		}
	}
}

func (c *client) expect(want string) {
	c.t.Helper()
	got := c.receive()
	prefix, open := strings.CutSuffix(want, " ...")
	if got != want && !(open && strings.HasPrefix(got, prefix)) {
		c.fail("got  %s\nwant %s", got, want)
	}
}

// quiet makes sure that nothing was sent before the answer to a ping.
func (c *client) quiet() {
	c.t.Helper()
	c.send("PINGREQ")
	c.expect("PINGRESP")
}

// fields of a line: words and key=value pairs, in order.
type fields struct {
	words []string
	pairs [][2]string
}

func parseFields(line string) (f fields) {
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			f.pairs = append(f.pairs, [2]string{k, v})
		} else {
			f.words = append(f.words, w)
		}
	}
	return f
}

func (f fields) has(w string) bool {
	for _, x := range f.words[1:] {
		if x == w {
			return true
		}
	}
	return false
}

func (f fields) get(k string) string {
	for _, p := range f.pairs {
		if p[0] == k {
			return p[1]
		}
	}
	return ""
}

func (f fields) num(k string) int {
	n, _ := strconv.ParseInt(f.get(k), 0, 64)
	return int(n)
}

// propertyNames are the words of scripts for properties.
var propertyNames = []struct {
	id   wire.PropertyID
	name string
	text bool
}{
	{wire.PayloadFormat, "format", false}, {wire.MessageExpiry, "expiry", false}, {wire.ContentType, "type", true},
	{wire.ResponseTopic, "response", true}, {wire.CorrelationData, "correlation", true},
	{wire.SessionExpiry, "session-expiry", false}, {wire.AssignedClientID, "assigned", true},
	{wire.ServerKeepAlive, "server-keepalive", false}, {wire.AuthMethod, "auth", true},
	{wire.ReceiveMaximum, "receive-max", false}, {wire.TopicAliasMaximum, "alias-max", false}, {wire.TopicAlias, "alias", false},
	{wire.MaximumQoS, "max-qos", false}, {wire.RetainAvailable, "retain-available", false},
	{wire.MaximumPacketSize, "max-packet", false},
}

func (f fields) properties(p *wire.Properties) {
	for _, n := range propertyNames {
		v := f.get(n.name)
		switch {
		case v == "":
		case n.text:
			p.SetText(n.id, []byte(v))
		default:
			p.SetNum(n.id, uint32(f.num(n.name)))
		}
	}
	for _, kv := range f.pairs {
		if kv[0] == "user" {
			k, v, _ := strings.Cut(kv[1], ":")
			p.User = append(p.User, wire.Pair{Key: []byte(k), Value: []byte(v)})
		}
	}
	if id := f.num("subid"); id > 0 {
		p.SubscriptionIDs = []uint32{uint32(id)}
	}
}

func encode(line string, v wire.Version) ([]byte, error) {
	f := parseFields(line)
	id := uint16(f.num("id"))
	switch f.words[0] {
	case "CONNECT":
		p := wire.Connect{Version: v, CleanStart: f.has("clean"), KeepAlive: uint16(f.num("keepalive")), ClientID: []byte(f.get("id"))}
		f.properties(&p.Properties)
		if u := f.get("username"); u != "" {
			p.Username, p.Password = []byte(u), []byte(f.get("password"))
		}
		if w := f.get("will"); w != "" {
			p.Will = &wire.Will{Topic: []byte(w), QoS: byte(f.num("will-qos")), Retain: f.has("will-retain")}
		}
		return p.Append(nil), nil
	case "PUBLISH":
		p := wire.Publish{QoS: byte(f.num("qos")), ID: id, Retain: f.has("retain"), Dup: f.has("dup"), Payload: []byte(f.get("body"))}
		if len(f.words) > 1 && f.words[1] != "retain" {
			p.Topic = []byte(f.words[1])
		}
		f.properties(&p.Properties)
		return p.Append(nil, v), nil
	case "PUBACK", "PUBREC", "PUBREL", "PUBCOMP":
		t := map[string]wire.Type{"PUBACK": wire.PUBACK, "PUBREC": wire.PUBREC, "PUBREL": wire.PUBREL, "PUBCOMP": wire.PUBCOMP}[f.words[0]]
		return wire.AppendAck(nil, t, id, wire.Reason(f.num("code")), v), nil
	case "SUBSCRIBE":
		p := wire.Subscribe{ID: id}
		f.properties(&p.Properties)
		for _, kv := range f.pairs {
			if kv[0] == "f" {
				p.Filters = append(p.Filters, filterOf(kv[1]))
			}
		}
		return p.Append(nil, v), nil
	case "UNSUBSCRIBE":
		p := wire.Unsubscribe{ID: id}
		for _, kv := range f.pairs {
			if kv[0] == "f" {
				p.Filters = append(p.Filters, []byte(kv[1]))
			}
		}
		return p.Append(nil, v), nil
	case "PINGREQ":
		return wire.AppendPing(nil, wire.PINGREQ), nil
	case "DISCONNECT":
		p := wire.Disconnect{Reason: wire.Reason(f.num("code"))}
		f.properties(&p.Properties)
		return p.Append(nil, wire.DISCONNECT, v), nil
	case "HEX":
		return hex.DecodeString(strings.Join(f.words[1:], ""))
	}
	return nil, fmt.Errorf("unknown packet %q", line)
}

// filterOf reads filter,QoS with options: a/b,1,nl,rap.
func filterOf(s string) (f wire.Filter) {
	parts := strings.Split(s, ",")
	f.Topic = []byte(parts[0])
	for _, o := range parts[1:] {
		switch o {
		case "nl":
			f.NoLocal = true
		case "rap":
			f.RetainAsPublished = true
		default:
			q, _ := strconv.Atoi(o)
			f.QoS = byte(q)
		}
	}
	return f
}

// anything a server may send; limits are not its business.
var noLimits wire.Limits

func describe(h wire.Header, body []byte, v wire.Version) string {
	var b strings.Builder
	b.WriteString(h.Type.String())
	var props *wire.Properties
	var err error
	switch h.Type {
	case wire.CONNACK:
		var p wire.Connack
		err = p.Parse(body, v, &noLimits)
		fmt.Fprintf(&b, " %02x", byte(p.Reason))
		if p.SessionPresent {
			b.WriteString(" present")
		}
		props = &p.Properties
	case wire.PUBLISH:
		var p wire.Publish
		err = p.Parse(h.Flags, body, v, &noLimits)
		fmt.Fprintf(&b, " %s qos=%d", p.Topic, p.QoS)
		if p.QoS > 0 {
			fmt.Fprintf(&b, " id=%d", p.ID)
		}
		if p.Retain {
			b.WriteString(" retain")
		}
		if p.Dup {
			b.WriteString(" dup")
		}
		fmt.Fprintf(&b, " body=%s", p.Payload)
		props = &p.Properties
	case wire.PUBACK, wire.PUBREC, wire.PUBREL, wire.PUBCOMP:
		var p wire.Ack
		err = p.Parse(h.Type, body, v, &noLimits)
		fmt.Fprintf(&b, " %d", p.ID)
		if p.Reason != 0 {
			fmt.Fprintf(&b, " %02x", byte(p.Reason))
		}
	case wire.SUBACK, wire.UNSUBACK:
		var p wire.Suback
		err = p.Parse(h.Type, body, v, &noLimits)
		fmt.Fprintf(&b, " %d", p.ID)
		for _, c := range p.Codes {
			fmt.Fprintf(&b, " %02x", byte(c))
		}
	case wire.DISCONNECT:
		var p wire.Disconnect
		err = p.Parse(h.Type, body, v, &noLimits)
		fmt.Fprintf(&b, " %02x", byte(p.Reason))
	default:
	}
	if err != nil {
		return "BROKEN " + h.Type.String() + ": " + err.Error()
	}
	if props != nil {
		describeProperties(&b, props)
	}
	return b.String()
}

func describeProperties(b *strings.Builder, p *wire.Properties) {
	for _, n := range propertyNames {
		switch {
		case !p.Has(n.id):
		case n.id == wire.AssignedClientID:
			b.WriteString(" assigned")
		case n.text:
			fmt.Fprintf(b, " %s=%s", n.name, p.Text(n.id))
		default:
			fmt.Fprintf(b, " %s=%d", n.name, p.Num(n.id, 0))
		}
	}
	for _, id := range p.SubscriptionIDs {
		fmt.Fprintf(b, " subid=%d", id)
	}
	for _, u := range p.User {
		fmt.Fprintf(b, " user=%s:%s", u.Key, u.Value)
	}
}
