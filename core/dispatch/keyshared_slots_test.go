package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"isthmus/core"

	"pgregory.net/rapid"
)

// The ring against a map that says the same slowly: the point at or after a slot, of those of who joined first.
func TestRingAgainstItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var members []*keyMember
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			if n := len(members); n > 0 && rapid.IntRange(0, 2).Draw(t, "leave") == 0 {
				i := rapid.IntRange(0, n-1).Draw(t, "who")
				r.remove(members[i])
				members = slices.Delete(members, i, i+1)
			} else {
				m := &keyMember{member: member{Consumer: Consumer{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}}}
				for slices.ContainsFunc(members, func(x *keyMember) bool { return x.Name == m.Name && x.namesake == m.namesake }) {
					m.namesake++
				}
				want := m.namesake
				if err := r.add(m); err != nil || m.namesake != want {
					t.Fatalf("%v, number %d of its name, want %d", err, m.namesake, want)
				}
				members = append(members, m)
			}
			at := map[uint32]*keyMember{}
			for _, m := range members {
				for i := range ringPoints {
					slot := core.KeySlot(fmt.Appendf(nil, "%s\x00%d\x00%d", m.Name, m.namesake, i))
					if at[slot] == nil {
						at[slot] = m
					}
				}
			}
			for range 50 {
				slot := rapid.Uint32Range(1, core.KeySlots-1).Draw(t, "slot")
				var want *keyMember
				for s, n := slot, 0; want == nil && n < core.KeySlots; s, n = (s+1)%core.KeySlots, n+1 {
					want = at[s]
				}
				if got := r.owner(slot); got != want {
					t.Fatalf("slot %d is %v's, want %v's", slot, got, want)
				}
			}
		}
	})
}

// Whoever comes and goes, the halves cover all slots, each member has one range, and a newcomer gets its part from one member.
func TestHalvesCoverAllSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h halves
		var members []*keyMember
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			before := slices.Clone(h.ends)
			if n := len(members); n > 1 && rapid.IntRange(0, 2).Draw(t, "leave") == 0 {
				i := rapid.IntRange(0, n-1).Draw(t, "who")
				h.remove(members[i])
				members = slices.Delete(members, i, i+1)
			} else {
				m := new(keyMember)
				if err := h.add(m); err != nil {
					t.Fatal(err)
				}
				members = append(members, m)
			}
			if len(h.ends) != len(members) || h.ends[len(h.ends)-1].slot != core.KeySlots {
				t.Fatalf("%v after %v", h.ends, before)
			}
			from := uint32(0)
			for _, p := range h.ends {
				if p.slot <= from || !slices.Contains(members, p.m) || h.owner(max(1, from+1)) != p.m || h.owner(min(p.slot, core.KeySlots-1)) != p.m {
					t.Fatalf("%v after %v", h.ends, before)
				}
				from = p.slot
			}
		}
	})
}

// Half of the slots, then a quarter: who takes from whom.
func TestHalvesTakeTheLowerHalfOfTheLargest(t *testing.T) {
	var h halves
	a, b, c := new(keyMember), new(keyMember), new(keyMember)
	for _, m := range []*keyMember{a, b, c} {
		if err := h.add(m); err != nil {
			t.Fatal(err)
		}
	}
	want := []point{{16384, c}, {32768, b}, {65536, a}}
	if !slices.Equal(h.ends, want) {
		t.Fatal(h.ends)
	}
	h.remove(a)
	if want = []point{{16384, c}, {65536, b}}; !slices.Equal(h.ends, want) {
		t.Fatal(h.ends)
	}
	full := halves{}
	for i := range uint32(core.KeySlots) {
		full.ends = append(full.ends, point{i + 1, a})
	}
	if err := full.add(new(keyMember)); !errors.Is(err, core.ErrBusy) {
		t.Fatalf("more members than slots: %v", err)
	}
}

// The ring is fair enough: of ten members none has less than half or more than twice its part.
func TestRingIsFair(t *testing.T) {
	var r ring
	for i := range 10 {
		_ = r.add(&keyMember{member: member{Consumer: Consumer{Name: fmt.Sprint("consumer-", i)}}})
	}
	got := map[*keyMember]int{}
	for slot := range uint32(core.KeySlots) {
		got[r.owner(slot)]++
	}
	for m, n := range got {
		if n < core.KeySlots/20 || n > core.KeySlots/5 {
			t.Errorf("%s has %d slots", m.Name, n)
		}
	}
}
