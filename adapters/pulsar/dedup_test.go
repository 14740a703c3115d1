package pulsar

import (
	"testing"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/core"
	"isthmus/core/engine"
)

// A producer learns the highest sequence that is stored, and goes on from it; without de-duplication it begins anew.
func TestLastSequenceIsTold(t *testing.T) {
	b := newBed(t, setup{})
	for name, want := range map[string]int64{"counted": 5, "uncounted": 0} {
		n, _ := core.ParseTopicName(name, "public", "default")
		if _, err := b.Engine.DeclareTopic(n, engine.TopicSpec{Deduplicate: name == "counted"}); err != nil {
			t.Fatal(err)
		}
		for _, sends := range []int{5, 1} {
			p := producerOf(t, b.client(t), stock.ProducerOptions{Topic: name, Name: "p", DisableBatching: true})
			for range sends {
				send(t, p, "x")
			}
			if got := p.LastSequenceID(); sends == 1 && got != want {
				t.Errorf("%s: the second life ended at sequence %d, want %d", name, got, want)
			}
			p.Close()
		}
		if got := len(b.messages(t, name, 0)); got != 6 {
			t.Errorf("%s holds %d messages", name, got)
		}
	}
}
