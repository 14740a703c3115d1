//go:build !race

package rocketmq

import (
	"context"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"isthmus/core/engine"
)

// accounts is a transaction listener: a message's body says what its transaction does.
type accounts struct {
	mu      sync.Mutex
	checked []string
}

func (*accounts) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	switch string(m.Body) {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnkonwnState
}

func (a *accounts) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checked = append(a.checked, string(m.Body))
	if string(m.Body) == "checked" {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

// The real client's transactions and delays.
func TestS3_30_GoTransactionsAndDelays(t *testing.T) {
	cfg := Config{Bind: "127.0.0.1:0", TransactionTimeout: 300 * time.Millisecond}
	g := newGatewayWith(t, cfg, func(c *engine.Config) { c.Parked.CheckEvery = time.Second })
	g.Topic(t, "T", 4)
	listener := new(accounts)
	p, err := rocketmq.NewTransactionProducer(listener, producer.WithNameServer([]string{g.addr}), producer.WithGroupName("tpg"), producer.WithInstanceName(t.Name()+g.addr))
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Shutdown() })
	in := make(inbox, 100)
	goPush(t, g, in, "c", "g", "T", "*")
	for _, body := range []string{"rollback", "lost", "commit", "checked"} {
		if r, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage("T", []byte(body))); err != nil || r.Status != primitive.SendOK {
			t.Fatalf("%s: %v %v", body, r, err)
		}
	}
	plain := goProducer(t, g)
	start := time.Now()
	sendSync(t, plain, primitive.NewMessage("T", []byte("level")).WithDelayTimeLevel(1))
	sendSync(t, plain, primitive.NewMessage("T", []byte("timer")).WithDelayTimestamp(start.Add(1500*time.Millisecond)))
	got := map[string]time.Duration{}
	for _, m := range in.take(t, 4) {
		got[string(m.Body)] = time.Since(start)
		if s := time.UnixMilli(m.StoreTimestamp).Sub(start); string(m.Body) == "timer" && s < 1499*time.Millisecond || // the client counts in milliseconds
			string(m.Body) == "level" && s < time.Second-time.Millisecond {
			t.Errorf("%s is stored after %v", m.Body, s)
		}
	}
	in.quiet(t, 500*time.Millisecond)
	for _, body := range []string{"commit", "checked", "level", "timer"} {
		if _, ok := got[body]; !ok {
			t.Errorf("no %s among %v", body, got)
		}
	}
	listener.mu.Lock()
	defer listener.mu.Unlock()
	asked := map[string]int{}
	for _, body := range listener.checked {
		asked[body]++
	}
	if asked["checked"] != 1 || asked["lost"] != 1 || len(asked) != 2 {
		t.Errorf("asked about %v", asked)
	}
}
