//go:build !race

// The stock client (0.19) races with itself when it reconnects, so this runs without the detector.

package pulsar

import (
	"context"
	"fmt"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/core"
	"isthmus/core/engine"
)

// A named producer whose connection is cut before its receipts sends everything again: it is stored once, wherever its keys
// belong, and every send succeeds.
// Acceptance A-4
func TestA4_ResendAfterACutIsStoredOnce(t *testing.T) {
	for _, byKey := range []bool{true, false} {
		for _, batching := range []bool{true, false} {
			t.Run(fmt.Sprintf("byKey=%v/batching=%v", byKey, batching), func(t *testing.T) { resendAfterACut(t, byKey, batching) })
		}
	}
}

func resendAfterACut(t *testing.T, byKey, batching bool) {
	b := newBed(t, setup{})
	n, _ := core.ParseTopicName("once", "public", "default")
	topic, err := b.Engine.DeclareTopic(n, engine.TopicSpec{Partitions: 3, ByKey: byKey, Deduplicate: true})
	if err != nil {
		t.Fatal(err)
	}
	p := producerOf(t, b.client(t), stock.ProducerOptions{
		Topic: "once", Name: "counts", DisableBatching: !batching, BatchingMaxPublishDelay: time.Millisecond, MaxReconnectToBroker: new(uint(50)),
	})
	syncing, release := make(chan bool, 1000), make(chan bool)
	b.Journals.OnAppend(func(string, []byte) error { syncing <- true; <-release; return nil })
	const messages = 100
	sent := make(chan error, messages)
	for i := range messages {
		p.SendAsync(context.Background(), &stock.ProducerMessage{Payload: fmt.Append(nil, i), Key: fmt.Sprint("device-", i%20)},
			func(_ stock.MessageID, _ *stock.ProducerMessage, err error) { sent <- err })
	}
	<-syncing
	cutProducers(b.srv)
	close(release)
	for range messages {
		select {
		case err := <-sent:
			if err != nil {
				t.Errorf("send: %v", err)
			}
		case <-time.After(patience):
			t.Fatal("a send has no receipt")
		}
	}
	seen := map[string]int{}
	for i := range topic.Logs() {
		for _, m := range b.messages(t, "once", i) {
			seen[string(m.Body)]++
		}
	}
	for i := range messages {
		if seen[fmt.Sprint(i)] != 1 {
			t.Errorf("message %d is stored %d times", i, seen[fmt.Sprint(i)])
		}
	}
}

// cutProducers ends the connections of all producers, as a broken network would.
func cutProducers(s *Server) {
	s.mu.Lock()
	var cut []*session
	for _, p := range s.mu.producers {
		cut = append(cut, p.sess)
	}
	s.mu.Unlock()
	for _, c := range cut {
		c.evict()
	}
}
