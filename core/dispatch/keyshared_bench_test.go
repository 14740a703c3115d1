package dispatch

import (
	"fmt"
	"testing"

	"isthmus/core"
)

// Key_shared with 10 000 keys, single acks as in BenchmarkSharedSingle: up to 1000 messages pending at each member.
func BenchmarkKeyShared(b *testing.B) {
	for _, members := range []int{1, 3, 100} {
		b.Run(fmt.Sprintf("members-%d", members), func(b *testing.B) {
			b.ReportAllocs()
			s, accounts := mustJoin(b, core.KeyShared, members)
			keys := keySlots(10_000)
			var held []Assignment
			n, next := 0, 0
			for b.Loop() {
				for _, a := range held {
					s.Ack(a.To, a.Entry.span())
					accounts[a.To].Permits++
				}
				for want := s.Want(); want > 0; want-- {
					s.Add(Entry{Base: s.Next(), Count: 1, Hash: keys[next*7919%len(keys)]})
					next++
				}
				held = append(held[:0], s.Ready().Deliver...)
				n += len(held)
			}
			report(b, n)
		})
	}
}

// The same at their limit of credit: most of what is read waits for its owner first.
func BenchmarkKeySharedSlowMembers(b *testing.B) {
	b.ReportAllocs()
	s, accounts := mustJoin(b, core.KeyShared, 3)
	keys := keySlots(10_000)
	queues := make([][]Assignment, len(accounts))
	n, next := 0, 0
	for b.Loop() {
		for i, q := range queues { // the slowest acknowledges a sixth of what the fastest does
			k := min(len(q), []int{30, 60, 180}[i])
			for _, a := range q[:k] {
				s.Ack(a.To, a.Entry.span())
				accounts[i].Permits++
			}
			queues[i] = q[:copy(q, q[k:])]
		}
		for want := s.Want(); want > 0; want = s.Want() {
			for range min(want, 256) {
				s.Add(Entry{Base: s.Next(), Count: 1, Hash: keys[next*7919%len(keys)]})
				next++
			}
		}
		for _, a := range s.Ready().Deliver {
			queues[a.To] = append(queues[a.To], a)
			n++
		}
	}
	report(b, n)
}

// A member joins and leaves beside a hundred others that hold 10 000 messages.
func BenchmarkKeySharedChurn(b *testing.B) {
	b.ReportAllocs()
	s, _ := mustJoin(b, core.KeyShared, 100)
	keys := keySlots(10_000)
	for i := range 10_000 {
		s.Add(Entry{Base: s.Next(), Count: 1, Hash: keys[i]})
	}
	s.Ready()
	for b.Loop() {
		if err := s.Join(Consumer{ID: 1000, Name: "newcomer", Account: &Account{Permits: 10}}); err != nil {
			b.Fatal(err)
		}
		s.Ready()
		s.Leave(1000)
		s.Ready()
	}
}

// Everything of one hot key is asked for again, in a scattered order.
func BenchmarkKeySharedHotKeyAgain(b *testing.B) {
	const held = 50_000
	b.ReportAllocs()
	s, err := New(core.KeyShared, Placement{}, core.Cursor{})
	if err != nil {
		b.Fatal(err)
	}
	account := &Account{Permits: held}
	if err := s.Join(Consumer{ID: 1, Account: account}); err != nil {
		b.Fatal(err)
	}
	for range held {
		s.Add(Entry{Base: s.Next(), Count: 1, Hash: 77})
	}
	n := len(s.Ready().Deliver)
	for b.Loop() {
		for i := range core.Offset(held) {
			s.Nack(1, i*7919%held, 0)
		}
		account.Permits += held
		n += len(s.Ready().Deliver)
	}
	report(b, n)
}

func keySlots(n int) []uint32 {
	slots := make([]uint32, n)
	for i := range slots {
		slots[i] = core.KeySlot(fmt.Appendf(nil, "device-%05d", i))
	}
	return slots
}
