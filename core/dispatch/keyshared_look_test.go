package dispatch

import (
	"strings"
	"testing"

	"isthmus/core"
)

// Each reason why a key_shared group stalls is told, with the message that waits.
func TestKeySharedTellsWhyItStalls(t *testing.T) {
	s, err := New(core.KeyShared, Placement{Keys: Keys{Split: Declared}, Limits: Limits{Ahead: 2, Consumer: 3}}, core.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	next := func(slot uint32) { s.Add(Entry{Base: s.Next(), Count: 1, Hash: slot}) }
	says := func(want string) Look {
		t.Helper()
		s.Ready()
		l := s.(Looker).Look()
		if want == "" && l.Stall != "" || !strings.Contains(l.Stall, want) {
			t.Errorf("it says %q, want %q", l.Stall, want)
		}
		return l
	}
	says("no consumer")
	a, b := &Account{}, &Account{Permits: 9}
	for _, c := range []Consumer{{ID: 1, Name: "a", Account: a, Slots: []SlotRange{{1, 9}}}, {ID: 2, Name: "b", Account: b, Slots: []SlotRange{{10, 19}}}} {
		if err := s.Join(c); err != nil {
			t.Fatal(err)
		}
	}
	next(10)
	says("")
	next(1)
	says(`offset 1 waits for "a", which takes no more: no permits`)
	a.Permits = 1
	says("")
	for range 3 {
		next(11)
	}
	if l := says(`offset 4 waits for "b", which holds 3 messages`); l.Holds[1] != 1 || l.Holds[2] != 3 || l.InFlight != 4 || l.Waiting != 0 {
		t.Errorf("%+v", l)
	}
	s.Ack(2, core.Range{From: 0, To: 4})
	a.Permits, b.Permits = 0, 1
	says("no consumer takes more")
	for range 4 {
		next(30)
	}
	says("offset 5 waits for a consumer that declares slot 30; nothing more is read, since 4 messages wait")
	s.Leave(1)
	s.Leave(2)
	says("no consumer")
}

// A slot that moved says whose acknowledgements it waits for, and what was asked for again counts as waiting.
func TestKeySharedTellsWhatDrains(t *testing.T) {
	s, err := New(core.KeyShared, Placement{Keys: Keys{Split: Halves}}, core.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Join(Consumer{ID: 1, Name: "a", Account: &Account{Permits: 9}}); err != nil {
		t.Fatal(err)
	}
	s.Add(Entry{Base: 0, Count: 1, Hash: 5})
	s.Add(Entry{Base: 1, Count: 1, Hash: 5})
	s.Ready()
	b := &Account{}
	if err := s.Join(Consumer{ID: 2, Name: "b", Account: b}); err != nil {
		t.Fatal(err)
	}
	s.Nack(1, 0, 0)
	s.Ready()
	l := s.(Looker).Look()
	if l.Stall != `offset 0 waits until "a" has acknowledged what it got of its key` || l.Waiting != 1 || l.Attempts != 1 {
		t.Errorf("%+v", l)
	}
}
