package pulsar

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"
	clientlog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
)

func TestMain(m *testing.M) {
	ignore := []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/99designs/keyring.init.0.func1"), // linked with the client, never stopped
		goleak.IgnoreTopFunction("github.com/godbus/dbus.(*Conn).inWorker"),
	}
	for _, f := range []string{ // of the client (0.19), and outlive its Close
		"(*partitionProducer).failTimeoutMessages", "(*partitionConsumer).runEventsLoop", "(*partitionConsumer).dispatcher", "newAckGroupingTracker.func1", "(*partitionConsumer).grabConn.func1",
	} {
		ignore = append(ignore, goleak.IgnoreAnyFunction("github.com/apache/pulsar-client-go/pulsar."+f))
	}
	goleak.VerifyTestMain(m, ignore...)
}

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// bed is a server over an engine with memory journals.
type bed struct {
	*enginetest.Bed
	srv *Server
	url string
}

type setup struct {
	engine func(*engine.Config)
	server func(*Config)
	auth   auth.Provider
	access auth.Access
}

func newBed(t testing.TB, s setup) *bed {
	t.Helper()
	b := &bed{Bed: enginetest.New(t, func(c *engine.Config) {
		c.Decoders = map[core.Format]core.Decoder{core.FormatPulsar: Decode}
		c.Splitters = map[core.Format]engine.Splitter{core.FormatPulsar: Split}
		c.Log = testLog(t)
		if s.engine != nil {
			s.engine(c)
		}
	})}
	cfg := NewConfig()
	cfg.Bind, cfg.Grace = "127.0.0.1:0", time.Second
	if s.server != nil {
		s.server(&cfg)
	}
	if s.auth == nil {
		s.auth = auth.Anonymous{Tenant: "public"}
	}
	if s.access == nil {
		s.access = auth.Anonymous{}
	}
	b.srv = New(cfg, b.Engine, s.auth, s.access, testLog(t))
	if err := b.srv.Listen(); err != nil {
		t.Fatal(err)
	}
	b.url = "pulsar://" + b.srv.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.srv.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	return b
}

func testLog(testing.TB) *slog.Logger {
	if os.Getenv("PULSAR_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// quietLog is the log of clients, seen when PULSAR_TEST_LOG is set.
func quietLog() clientlog.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	if os.Getenv("PULSAR_TEST_LOG") != "" {
		log.SetOutput(os.Stderr)
		log.SetLevel(logrus.DebugLevel)
	}
	return clientlog.NewLoggerWithLogrus(log)
}

// client returns a stock client of this server.
func (b *bed) client(t testing.TB) stock.Client {
	t.Helper()
	c, err := stock.NewClient(stock.ClientOptions{
		URL: b.url, OperationTimeout: 5 * time.Second, ConnectionTimeout: 5 * time.Second, Logger: quietLog(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func producerOf(t testing.TB, c stock.Client, o stock.ProducerOptions) stock.Producer {
	t.Helper()
	p, err := c.CreateProducer(o)
	if err != nil {
		t.Fatalf("producer on %s: %v", o.Topic, err)
	}
	t.Cleanup(p.Close)
	return p
}

func consumerOf(t testing.TB, c stock.Client, o stock.ConsumerOptions) stock.Consumer {
	t.Helper()
	if o.SubscriptionName == "" {
		o.SubscriptionName = "sub"
	}
	k, err := c.Subscribe(o)
	if err != nil {
		t.Fatalf("subscribe %s: %v", o.Topic, err)
	}
	t.Cleanup(k.Close)
	return k
}

// send publishes bodies one by one and waits for each receipt.
func send(t testing.TB, p stock.Producer, bodies ...string) (ids []stock.MessageID) {
	t.Helper()
	for _, b := range bodies {
		ids = append(ids, sendMessage(t, p, &stock.ProducerMessage{Payload: []byte(b)}))
	}
	return ids
}

func sendMessage(t testing.TB, p stock.Producer, m *stock.ProducerMessage) stock.MessageID {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	id, err := p.Send(ctx, m)
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	return id
}

// receive takes the next message.
func receive(t testing.TB, c stock.Consumer) stock.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := c.Receive(ctx)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return m
}

// expect takes messages and compares their bodies.
func expect(t testing.TB, c stock.Consumer, bodies ...string) (ms []stock.Message) {
	t.Helper()
	for i, want := range bodies {
		m := receive(t, c)
		if string(m.Payload()) != want {
			t.Fatalf("message %d is %q, want %q", i, m.Payload(), want)
		}
		ms = append(ms, m)
	}
	return ms
}

// quiet is how long nothing must come.
const quiet = 200 * time.Millisecond

// expectNothing sees that no message comes.
func expectNothing(t testing.TB, c stock.Consumer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), quiet)
	defer cancel()
	if m, err := c.Receive(ctx); err == nil {
		t.Fatalf("unexpected message %q %v", m.Payload(), m.ID())
	}
}

// eventually polls a condition that another goroutine of the server brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func numbered(prefix string, from, to int) (s []string) {
	for i := from; i < to; i++ {
		s = append(s, fmt.Sprintf("%s%d", prefix, i))
	}
	return s
}

// sendBatch publishes bodies as one batch and waits for the receipts. The producer's batches must be large and slow.
func sendBatch(t testing.TB, p stock.Producer, bodies ...string) []stock.MessageID {
	t.Helper()
	ids := make([]stock.MessageID, len(bodies))
	var wg sync.WaitGroup
	for i, b := range bodies {
		wg.Add(1)
		p.SendAsync(context.Background(), &stock.ProducerMessage{Payload: []byte(b)}, func(id stock.MessageID, _ *stock.ProducerMessage, err error) {
			defer wg.Done()
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	if err := p.FlushWithCtx(context.Background()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	return ids
}

// batching makes a producer that sends what is flushed as one batch.
func batching(topic string) stock.ProducerOptions {
	return stock.ProducerOptions{Topic: topic, BatchingMaxPublishDelay: time.Hour, BatchingMaxMessages: 1000}
}
