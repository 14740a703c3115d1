package dispatch

import (
	"slices"
	"testing"

	"isthmus/core"

	"pgregory.net/rapid"
)

// The table against a plain map; the heap against a sorted slice.
func TestTableAndHeapAgainstModel(t *testing.T) {
	type fact struct {
		count, left int64
		waits       bool
	}
	rapid.Check(t, func(t *rapid.T) {
		var (
			tab   table
			h     replays
			model = map[core.Offset]fact{}
			queue []core.Offset
			end   core.Offset
			owner = &member{}
		)
		pick := func(t *rapid.T) (core.Offset, *held) {
			o := rapid.Int64Range(0, end).Draw(t, "offset")
			for base, f := range model {
				if base <= o && o < base+f.count {
					return base, tab.at(o)
				}
			}
			if got := tab.at(o); got != nil {
				t.Fatalf("found %v at %d", got, o)
			}
			return -1, nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				n := rapid.Int64Range(1, 3).Draw(t, "count")
				end += rapid.Int64Range(0, 2).Draw(t, "gap")
				tab.push(held{Entry: Entry{Base: end, Count: int32(n)}, owner: owner, left: n})
				owner.pending += n
				model[end] = fact{n, n, false}
				end += n
			},
			"settle": func(t *rapid.T) {
				if base, it := pick(t); it != nil {
					f := model[base]
					f.left = rapid.Int64Range(0, f.left-1).Draw(t, "left")
					tab.settle(it, f.left)
					tab.trim()
					if model[base] = f; f.left == 0 {
						delete(model, base)
					}
				}
			},
			"take or give": func(t *rapid.T) {
				base, it := pick(t)
				if it == nil {
					return
				}
				f := model[base]
				if f.waits {
					tab.give(it, owner)
				} else {
					tab.take(it, 0)
				}
				f.waits = !f.waits
				model[base] = f
			},
			"heap push": func(t *rapid.T) {
				o := rapid.Int64Range(0, 99).Draw(t, "o")
				h.push(place(o))
				queue = append(queue, o)
				slices.Sort(queue)
			},
			"heap pop": func(t *rapid.T) {
				if len(queue) > 0 {
					if got := h.pop(); got != place(queue[0]) {
						t.Fatalf("popped %d, want %d", got, queue[0])
					}
					queue = queue[1:]
				}
			},
			"": func(t *rapid.T) {
				messages, waiting := int64(0), int64(0)
				for base, f := range model {
					it := tab.at(base + f.count - 1)
					if it == nil || it.Base != base || it.left != f.left || (it.owner == nil) != f.waits {
						t.Fatalf("at %d: %v, want %v", base, it, f)
					}
					messages += f.left
					if f.waits {
						waiting += f.left
					}
				}
				if tab.messages != messages || tab.waiting != waiting || owner.pending != messages-waiting {
					t.Fatalf("%d messages, %d wait, %d pending; want %d, %d", tab.messages, tab.waiting, owner.pending, messages, waiting)
				}
				if len(tab.items) > 2*len(model)+8 {
					t.Fatalf("%d items for %d entries", len(tab.items), len(model))
				}
			},
		})
	})
}

// A group at work allocates nothing for each message.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for _, mode := range []core.Mode{core.Failover, core.Shared} {
		s, err := New(mode, Placement{}, core.Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		account := &Account{Permits: 64}
		if err := s.Join(Consumer{ID: 1, Account: account}); err != nil {
			t.Fatal(err)
		}
		var pending []Entry
		work := func() { // 100 messages, acknowledged singly and out of order
			for range 100 {
				for s.Want() > 0 {
					s.Add(Entry{Base: s.Next(), Count: 1})
				}
				for _, a := range s.Ready().Deliver {
					pending = append(pending, a.Entry)
				}
				i := len(pending) / 3
				s.Ack(1, pending[i].span())
				pending = slices.Delete(pending, i, i+1)
				if len(pending) > 40 {
					s.Ack(1, pending[0].span())
					pending = slices.Delete(pending, 0, 1)
					account.Permits++
				}
				account.Permits++
			}
		}
		work()
		work()
		if n := testing.AllocsPerRun(50, work); n > 1 {
			t.Errorf("%s: %v allocations for 100 messages", mode, n)
		}
	}
}
