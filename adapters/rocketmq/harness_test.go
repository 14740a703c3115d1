package rocketmq

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

// gateway is a server over an engine in memory.
type gateway struct {
	*enginetest.Bed
	server *Server
	addr   string
	access auth.Access // nil: everything is allowed
}

func newGateway(t testing.TB, change func(*engine.Config)) *gateway {
	t.Helper()
	return newGatewayWith(t, Config{Bind: "127.0.0.1:0"}, change)
}

func newGatewayWith(t testing.TB, cfg Config, change func(*engine.Config)) *gateway {
	t.Helper()
	bed := enginetest.New(t, func(c *engine.Config) {
		c.Decoders = map[core.Format]core.Decoder{core.FormatRocketMQ: Decode}
		if change != nil {
			change(c)
		}
	})
	g := &gateway{Bed: bed}
	g.serve(t, cfg)
	return g
}

func (g *gateway) serve(t testing.TB, cfg Config) {
	t.Helper()
	au := auth.Anonymous{Tenant: "public"}
	if g.access == nil {
		g.access = au
	}
	server := New(cfg, g.Engine, au, g.access, testLog())
	g.server = server
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	g.addr = server.Addr()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// testLog is silent, or shows each request with ROCKETMQ_TEST_LOG=debug.
func testLog() *slog.Logger {
	if os.Getenv("ROCKETMQ_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// client speaks raw frames: one line per exchange.
type client struct {
	t      testing.TB
	c      net.Conn
	id     string
	opaque int32
	notes  int // change notices seen
}

// reply is an answer, or a call of the broker's.
type reply struct {
	code   wire.Code
	opaque int32
	remark string
	ext    map[string]string
	body   []byte
	call   bool
}

func (g *gateway) dial(t testing.TB) *client {
	t.Helper()
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t: t, c: c, id: "192.0.2.1@" + t.Name() + c.LocalAddr().String()}
}

// start sends a request. ext is name, value, name, value …
func (c *client) start(code wire.Code, body []byte, ext ...string) int32 {
	c.t.Helper()
	if _, err := c.c.Write(c.frame(code, body, ext...)); err != nil {
		c.t.Fatalf("write: %v", err)
	}
	return c.opaque
}

func (c *client) frame(code wire.Code, body []byte, ext ...string) []byte {
	c.opaque++
	h := wire.Header{Code: code, Language: wire.Go, Version: 317, Opaque: c.opaque}
	for i := 0; i+1 < len(ext); i += 2 {
		h.Ext = append(h.Ext, wire.Field{Key: []byte(ext[i]), Value: []byte(ext[i+1])})
	}
	return wire.AppendFrame(nil, &h, body)
}

// next reads one frame.
func (c *client) next() (reply, error) {
	c.c.SetReadDeadline(time.Now().Add(10 * time.Second))
	var size [4]byte
	if _, err := io.ReadFull(c.c, size[:]); err != nil {
		return reply{}, err
	}
	b := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
	copy(b, size[:])
	if _, err := io.ReadFull(c.c, b[4:]); err != nil {
		return reply{}, err
	}
	f, _, err := wire.Next(b, wire.MaxFrame)
	if err != nil {
		return reply{}, err
	}
	var h wire.Header
	if err := f.Parse(&h); err != nil {
		return reply{}, err
	}
	r := reply{code: h.Code, opaque: h.Opaque, remark: string(h.Remark), ext: map[string]string{}, body: f.Body, call: !h.Response()}
	for _, e := range h.Ext {
		r.ext[string(e.Key)] = string(e.Value)
	}
	return r, nil
}

// answer reads until the answer to a request comes; change notices are counted.
func (c *client) answer(opaque int32) reply {
	c.t.Helper()
	for {
		r, err := c.next()
		if err != nil {
			c.t.Fatalf("waiting for the answer to %d: %v", opaque, err)
		}
		if r.call {
			c.notes++
			continue
		}
		if r.opaque == opaque {
			return r
		}
	}
}

// call sends a request and checks the code of its answer.
func (c *client) call(want wire.Code, code wire.Code, body []byte, ext ...string) reply {
	c.t.Helper()
	r := c.answer(c.start(code, body, ext...))
	if r.code != want {
		c.t.Fatalf("request %d %q: code %d %q, want %d", code, ext, r.code, r.remark, want)
	}
	return r
}

func (c *client) send(want wire.Code, topic string, queue int, properties, body string) reply {
	c.t.Helper()
	return c.call(want, wire.SendMessage, []byte(body), sendExt(topic, queue, properties)...)
}

func sendExt(topic string, queue int, properties string) []string {
	return []string{"producerGroup", "pg", "topic", topic, "defaultTopic", "TBW102", "defaultTopicQueueNums", "4", "queueId", strconv.Itoa(queue),
		"sysFlag", "0", "bornTimestamp", "1796075311183", "flag", "5", "properties", properties, "reconsumeTimes", "0"}
}

// heartbeat registers the client in a group.
func (c *client) heartbeat(group, topic, expression, more string) {
	c.t.Helper()
	c.call(wire.Success, wire.HeartBeat, []byte(`{"clientID":"`+c.id+`","consumerDataSet":[{"groupName":"`+group+`",`+more+`"subscriptionDataSet":[
		{"topic":"`+topic+`","subString":"`+expression+`"},{"topic":"%RETRY%`+group+`","subString":"*"}]}]}`))
}

func pullExt(group, topic string, queue int, offset int64, suspend time.Duration) []string {
	flag := "0"
	if suspend > 0 {
		flag = "2"
	}
	return []string{"consumerGroup", group, "topic", topic, "queueId", strconv.Itoa(queue), "queueOffset", strconv.FormatInt(offset, 10),
		"maxMsgNums", "32", "sysFlag", flag, "commitOffset", "-1", "suspendTimeoutMillis", strconv.FormatInt(suspend.Milliseconds(), 10),
		"subscription", "", "subVersion", "0", "expressionType", "TAG"}
}

func (c *client) pull(want wire.Code, group, topic string, queue int, offset int64) reply {
	c.t.Helper()
	return c.call(want, wire.PullMessage, nil, pullExt(group, topic, queue, offset, 0)...)
}

func (r reply) messages(t testing.TB) (out []wire.Stored) {
	t.Helper()
	for b := r.body; len(b) > 0; {
		m, rest, err := wire.NextStored(b)
		if err != nil {
			t.Fatal(err)
		}
		out, b = append(out, m), rest
	}
	return out
}

func (r reply) int(name string) int64 {
	n, err := strconv.ParseInt(r.ext[name], 10, 64)
	if err != nil {
		return -999
	}
	return n
}

// publish returns a producer of another protocol.
func (g *gateway) publish(t testing.TB, done chan<- struct{}) *engine.Producer {
	return g.Engine.NewProducer("mqtt", func(rs []engine.Receipt) {
		for _, r := range rs {
			if r.Err != nil {
				t.Error(r.Err)
			}
			done <- struct{}{}
		}
	})
}

// eventually waits for a condition that other programs bring about.
func eventually(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in %v: %s", limit, what)
		}
	}
}
