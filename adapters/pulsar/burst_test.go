package pulsar

import (
	"strings"
	"testing"

	"isthmus/core"
	"isthmus/core/engine"
)

// A round that is larger than a burst arrives whole and in order, whatever the sizes.
func TestRoundOfManyBursts(t *testing.T) {
	b := newBed(t, setup{})
	s, r := b.session(t)
	c := joined(t, s, subscription("bursts", "sub"))
	s.admit(s.ctx, 9, c, nil)
	part := b.Topic(t, "bursts", 0).Partition(0)
	var ds []engine.Delivery
	for i := range int64(300) {
		size := []int{0, 10, 700, 5_000, burst, 200_000}[i%17%6]
		e := core.Entry{Base: i, Count: 1, Format: core.FormatNeutral}
		e.Data = (&core.Message{Body: []byte(strings.Repeat("x", size+1))}).AppendNeutral(nil)
		if i%29 == 3 {
			e.Format = core.FormatRocketMQ // no decoder
		}
		ds = append(ds, engine.Delivery{Partition: part, Entry: e})
	}
	go func() { c.Deliver(ds) }()
	for i := range int64(300) {
		if i%29 == 3 {
			continue
		}
		m := r.message()
		if size := []int{0, 10, 700, 5_000, burst, 200_000}[i%17%6]; m.ID.Entry != uint64(i) || len(m.payload.Body) != size+1 {
			t.Fatalf("message %d of %d bytes, want %d of %d", m.ID.Entry, len(m.payload.Body), i, size+1)
		}
	}
}
