package dispatch

import (
	"fmt"
	"testing"

	"isthmus/core"
)

// The engine's part without its log: entries of count messages are there whenever they are wanted.
func feedWanted(s State, count int32) {
	for n := s.Want(); n > 0; n -= int(count) {
		s.Add(Entry{Base: s.Next(), Count: count})
	}
}

func mustJoin(b *testing.B, mode core.Mode, members int) (State, []*Account) {
	s, err := New(mode, Placement{Topic: "persistent://public/default/x"}, core.Cursor{})
	if err != nil {
		b.Fatal(err)
	}
	accounts := make([]*Account, members)
	for i := range accounts {
		accounts[i] = &Account{Permits: 1000}
		if err := s.Join(Consumer{ID: ConsumerID(i), Name: fmt.Sprint("c", i), Account: accounts[i]}); err != nil {
			b.Fatal(err)
		}
	}
	return s, accounts
}

func report(b *testing.B, messages int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/msg")
}

// Failover, cumulative acks: one ack for each 100 messages, credit given back with it.
func BenchmarkFailoverCumulative(b *testing.B) {
	for _, count := range []int32{1, 50} {
		b.Run(fmt.Sprintf("entries-of-%d", count), func(b *testing.B) {
			b.ReportAllocs()
			s, accounts := mustJoin(b, core.Failover, 3)
			n := 0
			for b.Loop() {
				feedWanted(s, count)
				for _, a := range s.Ready().Deliver {
					n += int(a.Entry.Count)
					if end := a.Entry.end(); end%100 == 0 {
						s.AckThrough(a.To, end)
						for _, c := range accounts {
							c.Permits = min(c.Permits+100, 1000)
						}
					}
				}
			}
			report(b, n)
		})
	}
}

// Shared, single acks. Members acknowledge what they got in one go last time, so up to 1000 messages each are pending.
func BenchmarkSharedSingle(b *testing.B) {
	for _, members := range []int{1, 3, 100} {
		b.Run(fmt.Sprintf("members-%d", members), func(b *testing.B) {
			b.ReportAllocs()
			s, accounts := mustJoin(b, core.Shared, members)
			var held []Assignment
			n := 0
			for b.Loop() {
				for _, a := range held {
					s.Ack(a.To, a.Entry.span())
					accounts[a.To].Permits++
				}
				feedWanted(s, 1)
				held = append(held[:0], s.Ready().Deliver...)
				n += len(held)
			}
			report(b, n)
		})
	}
}

// Shared, one message at a time, as on a quiet topic: the cost of a whole round through the State.
func BenchmarkSharedTrickle(b *testing.B) {
	for _, members := range []int{3, 100, 1000} {
		b.Run(fmt.Sprintf("members-%d", members), func(b *testing.B) {
			b.ReportAllocs()
			s, accounts := mustJoin(b, core.Shared, members)
			for b.Loop() {
				if s.Want() > 0 {
					s.Add(Entry{Base: s.Next(), Count: 1})
				}
				for _, a := range s.Ready().Deliver {
					s.Ack(a.To, a.Entry.span())
					accounts[a.To].Permits++
				}
			}
			report(b, b.N)
		})
	}
}

// Shared, 5000 pending, acknowledged in scattered order, every 50th asked for again: holes, search, heap.
func BenchmarkSharedScattered(b *testing.B) {
	b.ReportAllocs()
	s, accounts := mustJoin(b, core.Shared, 5)
	var held []Assignment
	n := 0
	for b.Loop() {
		for i := range held {
			a := held[i*7919%len(held)]
			if i%50 == 0 {
				s.Nack(a.To, a.Entry.Base, 0)
			} else {
				s.Ack(a.To, a.Entry.span())
			}
			accounts[a.To].Permits++
		}
		feedWanted(s, 1)
		held = append(held[:0], s.Ready().Deliver...)
		n += len(held)
	}
	report(b, n)
}

// Shared, where a filter refuses every other entry, read in portions of a thousand.
func BenchmarkSharedFiltered(b *testing.B) {
	b.ReportAllocs()
	s, accounts := mustJoin(b, core.Shared, 3)
	n := 0
	for b.Loop() {
		for k := 0; k < 1000 && s.Want() > 0; k++ {
			next := s.Next()
			s.Add(Entry{Base: next, Count: 1})
			s.Skip(core.Range{From: next + 1, To: next + 2})
		}
		for _, a := range s.Ready().Deliver {
			s.Ack(a.To, a.Entry.span())
			accounts[a.To].Permits++
			n++
		}
	}
	report(b, n)
}
