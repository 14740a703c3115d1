package engine

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"isthmus/core"

	"pgregory.net/rapid"
)

// What was kept comes back once, as it was, whatever became of the block it was read from; what was assigned is not there;
// what counts as held is all that is reachable, and none of it once nothing is kept.
func TestAheadKeepsWhatWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var node atomic.Int64
		a := ahead{node: &node}
		want := map[core.Offset]string{}
		next, mark := core.Offset(0), core.Offset(0)
		for range rapid.IntRange(1, 40).Draw(t, "turns") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // reading begins again at the mark
				next = mark
				clear(want)
			case 1: // the mark moves
				mark = rapid.Int64Range(mark, next).Draw(t, "mark")
			case 2:
				a.compact(mark)
			}
			a.tidy(core.Cursor{Next: mark}, next)
			for base := range want {
				if base < mark {
					delete(want, base)
				}
			}
			block := []byte{}
			var es []core.Entry
			for range rapid.IntRange(0, 8).Draw(t, "entries") {
				from := len(block)
				block = fmt.Append(block, "key", next, "data", next)
				cut := from + len(fmt.Sprint("key", next))
				e := core.Entry{Base: next, Count: 1, Key: block[from:cut:cut], Data: block[cut:len(block):len(block)]}
				if rapid.Bool().Draw(t, "assigned") {
					e.Count = 0
				} else {
					want[next] = fmt.Sprint("key", next, "data", next)
				}
				es = append(es, e)
				next++
			}
			a.keep(es, mark)
			for i := range block {
				block[i] = 'x'
			}
			for base := range want {
				if rapid.IntRange(0, 2).Draw(t, "take") > 0 {
					continue
				}
				e, ok := a.take(base, 1)
				if !ok || string(e.Key)+string(e.Data) != want[base] || e.Base != base {
					t.Fatalf("%d: got %v %q%q, want %q", base, ok, e.Key, e.Data, want[base])
				}
				delete(want, base)
				if _, ok := a.take(base, 1); ok {
					t.Fatalf("%d is there twice", base)
				}
			}
			checkAhead(t, &a)
		}
	})
}

func checkAhead(t *rapid.T, a *ahead) {
	live, last := 0, core.Offset(-1)
	for i := range a.entries {
		if e := &a.entries[i]; e.Count > 0 {
			live += weight(e)
		}
		if a.entries[i].Base <= last {
			t.Fatalf("%d after %d", a.entries[i].Base, last)
		}
		last = a.entries[i].Base
	}
	if live != a.live || a.live > a.held || a.node.Load() != int64(a.held) || live == 0 && a.held > 0 && len(a.entries) == 0 {
		t.Fatalf("%d bytes live, counted %d of %d held, node %d", live, a.live, a.held, a.node.Load())
	}
}

// I8: beyond the bound nothing more is kept; what was taken makes room only when its buffer goes, and what falls below the
// mark does, too.
func TestI8_AheadIsBounded(t *testing.T) {
	var node atomic.Int64
	a := ahead{node: &node}
	const size = 64 << 10
	turn := func(base core.Offset) { // two messages in one buffer
		data := bytes.Repeat([]byte{'d'}, size)
		a.keep([]core.Entry{{Base: base, Count: 1, Data: data}, {Base: base + 1, Count: 1, Data: data}}, 0)
		if a.held > aheadBytes {
			t.Fatalf("%d bytes held", a.held)
		}
	}
	for i := range core.Offset(100) {
		turn(2 * i)
	}
	kept := core.Offset(len(a.entries))
	if kept < aheadBytes/(size+1024) || node.Load() != int64(a.held) {
		t.Fatalf("%d kept, node %d", kept, node.Load())
	}
	for i := core.Offset(0); i < kept; i += 2 { // half of each buffer
		if _, ok := a.take(i, 1); !ok {
			t.Fatalf("%d is not there", i)
		}
	}
	turn(1000)
	if e, ok := a.take(1, 1); !ok || len(e.Data) != size || a.held > aheadBytes/2+4*size {
		t.Fatalf("%v: %d bytes held after making room", ok, a.held)
	}
	for i := core.Offset(1001); len(a.entries) < int(kept); i++ {
		turn(2 * i)
	}
	a.tidy(core.Cursor{Next: 10_000}, 10_000)
	if a.held != 0 || node.Load() != 0 {
		t.Fatalf("%d bytes held when all was passed, node %d", a.held, node.Load())
	}
}

// I8: the node's bound holds for all its groups together.
func TestI8_AheadIsBoundedOnTheNode(t *testing.T) {
	var node atomic.Int64
	groups := make([]ahead, 40)
	for i := range groups {
		groups[i].node = &node
		for k := range core.Offset(64) {
			groups[i].keep([]core.Entry{{Base: k, Count: 1, Data: make([]byte, 60<<10)}}, 0)
		}
	}
	if n := node.Load(); n > aheadNode || n < aheadNode-64<<10 {
		t.Fatalf("%d bytes on the node", n)
	}
	for i := range groups {
		groups[i].clear()
	}
	if node.Load() != 0 {
		t.Fatalf("%d bytes when nobody keeps anything", node.Load())
	}
}
