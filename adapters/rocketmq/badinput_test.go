package rocketmq

import (
	"bytes"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"isthmus/adapters/rocketmq/wire"
)

// throw sends bytes and waits until the server has closed the connection or answered all it will.
func throw(t *testing.T, g *gateway, b []byte) {
	t.Helper()
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write(b) // the server may hang up meanwhile
	c.(*net.TCPConn).CloseWrite()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("%x…: %v", b[:min(len(b), 20)], err)
	}
}

// Spec: I9: a stranger's bytes never crash, hang or grow us.
func TestBadInput(t *testing.T) {
	g := newGateway(t, nil)
	good := g.dial(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		b := make([]byte, r.IntN(2000))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		throw(t, g, b)
		if len(b) > 8 { // the same behind plausible lengths
			copy(b, []byte{0, 0, byte(len(b) - 4>>8), byte(len(b) - 4), 0, 0, byte((len(b) - 8) >> 8), byte(len(b) - 8)})
			throw(t, g, b)
		}
	}
	for _, size := range [][]byte{{0x7F, 0xFF, 0xFF, 0xFF}, {0x80, 0, 0, 0}, {0xFF, 0xFF, 0xFF, 0xFF}, {0, 0, 0, 0}} {
		throw(t, g, append(size, 0, 0, 0, 0))
	}
	good.send(wire.Success, "T", 0, "", "others are undisturbed")
}

func conversation(t *testing.T) []byte {
	t.Helper()
	names, err := filepath.Glob("wire/testdata/frames/*.hex")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	var all []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// A good conversation cut at every byte.
func TestCutConversation(t *testing.T) {
	g := newGateway(t, nil)
	all := conversation(t)
	for n := 0; n < len(all); n += 1 + n%3 {
		throw(t, g, all[:n])
	}
	// And with a byte turned at many places.
	for n := 0; n < len(all); n += 7 {
		b := bytes.Clone(all)
		b[n] ^= 0x55
		throw(t, g, b)
	}
	if n := g.held(); n != 0 {
		t.Errorf("%d pulls of dead clients are held", n)
	}
	g.dial(t).send(wire.Success, "T", 0, "", "x")
}

// Connections that say nothing cost little, disturb nobody, and are closed in time.
func TestSilentConnections(t *testing.T) {
	g := newGatewayWith(t, Config{Bind: "127.0.0.1:0", Idle: time.Second}, nil)
	var conns []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	g.dial(t).send(wire.Success, "T", 0, "", "x")
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("not closed: %v", err)
		}
		c.Close()
	}
}

// A client that asks and never reads is closed, not fed for ever.
func TestClientThatDoesNotRead(t *testing.T) {
	g := newGatewayWith(t, Config{Bind: "127.0.0.1:0", Idle: 2 * time.Second}, nil)
	c := g.dial(t)
	c.send(wire.Success, "T", 0, "", strings.Repeat("x", 1<<20))
	c.heartbeat("g", "T", "*", "")
	h := wire.Header{Code: wire.PullMessage, Opaque: 9}
	ext := pullExt("g", "T", 0, 0, 0)
	for i := 0; i < len(ext); i += 2 {
		h.Ext = append(h.Ext, wire.Field{Key: []byte(ext[i]), Value: []byte(ext[i+1])})
	}
	frame := wire.AppendFrame(nil, &h, nil)
	c.c.SetWriteDeadline(time.Now().Add(20 * time.Second))
	for {
		if _, err := c.c.Write(frame); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Fatal("the connection is still there")
			}
			return
		}
	}
}

// Run ends with nothing of it alive, whatever was going on.
func TestStop(t *testing.T) {
	before := goleak.IgnoreCurrent() // real clients of other tests leave goroutines behind
	t.Run("traffic", func(t *testing.T) {
		g := newGateway(t, nil)
		c := g.dial(t)
		c.heartbeat("g", "T", "*", "")
		c.send(wire.Success, "T", 0, "", "x")
		c.start(wire.PullMessage, nil, pullExt("g", "T", 1, 0, 20*time.Second)...)
		c.start(wire.SendMessage, []byte("y"), sendExt("T", 0, "")...)
	})
	goleak.VerifyNone(t, before)
}

func TestConfig(t *testing.T) {
	for what, c := range map[string]Config{
		"bind": {Bind: "x"}, "broker": {Bind: ":1", Broker: "y"}, "advertise": {Bind: ":1", Advertise: "z"},
		"negative": {Bind: ":1", Idle: -1}, "max body": {Bind: ":1", MaxBody: 1 << 30},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := (Config{Bind: ":9876", Broker: ":10911", Advertise: "mq.example.com:10911"}).Validate(); err != nil {
		t.Error(err)
	}
}

// The advertised address goes to clients as it is, and into ids as numbers.
func TestAdvertise(t *testing.T) {
	g := newGatewayWith(t, Config{Bind: "127.0.0.1:0", Broker: "127.0.0.1:0", Advertise: "localhost:12345"}, nil)
	c := g.dial(t)
	if r := c.call(wire.Success, wire.GetRoute, nil, "topic", "TBW102"); !strings.Contains(string(r.body), `"localhost:12345"`) {
		t.Errorf("%s", r.body)
	}
	r := c.send(wire.Success, "T", 0, "", "x")
	if host, _, err := wire.ParseMessageID(r.ext["msgId"]); err != nil || host.Port() != 12345 || !host.Addr().IsLoopback() {
		t.Errorf("%v %v", host, err)
	}
	g.addr = g.server.BrokerAddr() // both ports serve everything
	g.dial(t).send(wire.Success, "T", 0, "", "x")
	open := newGatewayWith(t, Config{Bind: "0.0.0.0:0"}, nil)
	_, port, _ := net.SplitHostPort(open.addr)
	open.addr = "127.0.0.1:" + port
	if r := open.dial(t).call(wire.Success, wire.GetRoute, nil, "topic", "TBW102"); !strings.Contains(string(r.body), `"127.0.0.1:`+port+`"`) {
		t.Errorf("bound to every address: %s", r.body)
	}
}
