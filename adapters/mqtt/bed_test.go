package mqtt

import (
	"context"
	"log/slog"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"

	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/routing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a listener on a whole engine in memory.
type bed struct {
	*enginetest.Bed
	t      testing.TB
	server *Server
	cfg    Config
	access auth.Access
	stop   func()
}

// testTable is the routing of all tests here.
func testTable(t testing.TB) *routing.Table {
	qos := byte(1)
	tab, err := routing.Compile([]routing.Mapping{
		{ID: "telemetry-up", From: routing.End{MQTT: "devices/{deviceId}/telemetry"}, To: routing.End{Topic: "persistent://acme/out/event"},
			Key: "{deviceId}", Tag: "telemetry", Properties: []core.Property{{Key: "deviceId", Value: "{deviceId}"}}},
		{ID: "commands-down", From: routing.End{Topic: "persistent://acme/in/device-cmd"}, To: routing.End{MQTT: "devices/{key}/commands", QoS: &qos}},
	}, routing.Options{Tenant: "public", Namespace: "default", DefaultQoS: 1})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func newBed(t testing.TB, change func(*Config)) *bed {
	return newBedAccess(t, change, auth.Anonymous{})
}

func newBedAccess(t testing.TB, change func(*Config), access auth.Access) *bed {
	b := &bed{Bed: enginetest.New(t, nil), t: t, cfg: DefaultConfig(), access: access}
	b.cfg.Bind = "127.0.0.1:0"
	if change != nil {
		change(&b.cfg)
	}
	if err := b.cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	event := core.TopicName{Tenant: "acme", Namespace: "out", Name: "event"} // declared: it has a journal of its own
	if _, err := b.Engine.DeclareTopic(event, engine.TopicSpec{Partitions: 3, ByKey: true}); err != nil {
		t.Fatal(err)
	}
	b.Topic(t, "persistent://acme/in/device-cmd", 0)
	b.serve()
	t.Cleanup(func() { b.stop() })
	return b
}

func (b *bed) serve() {
	tab := testTable(b.t)
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("MQTT_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	b.server = New(b.cfg, b.Engine, func() *routing.Table { return tab }, auth.Anonymous{}, b.access, log)
	if err := b.server.Listen(); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.server.Run(ctx) }()
	b.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("serve: %v", err)
		}
		b.stop = func() {}
	}
}

// dial connects without saying anything.
func (b *bed) dial() net.Conn {
	c, err := net.Dial("tcp", b.server.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	return c
}

// foreign publishes a message as a client of another protocol would, and waits until it is durable.
func (b *bed) foreign(topic, key, body string, props ...core.Property) {
	b.t.Helper()
	done := make(chan error, 1)
	p := b.Engine.NewProducer("test", func(rs []engine.Receipt) { done <- rs[0].Err })
	defer p.Close()
	t := b.Topic(b.t, topic, 0)
	m := core.Message{Body: []byte(body), Properties: props}
	e := core.Entry{Count: 1, Data: m.AppendNeutral(nil)}
	if key != "" {
		e.Key, e.Flags = []byte(key), core.FlagHasKey
	}
	if err := p.Publish(t.Partition(t.Place(e.Key, key != "", -1)), &e, 0); err != nil {
		b.t.Fatal(err)
	}
	if err := <-done; err != nil {
		b.t.Fatal(err)
	}
}
