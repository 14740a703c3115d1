package engine

import (
	"bytes"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
)

// thinnable is an extent of n entries of partition 7: entry i has i%3+1 messages.
func thinnable(n int) journal.Extent {
	x := journal.Extent{Partition: 7, First: 100}
	for i := range n {
		e := core.Entry{Count: int32(i%3 + 1), Data: bytes.Repeat([]byte{byte(i)}, i)}
		x.Data = core.AppendEntry(x.Data, &e)
		x.Count += uint32(e.Count)
	}
	return x
}

func TestKeepEntries(t *testing.T) {
	x := thinnable(12)
	for name, held := range map[string]func(i int) bool{
		"all":    func(int) bool { return true },
		"none":   func(int) bool { return false },
		"ends":   func(i int) bool { return i == 0 || i == 11 },
		"middle": func(i int) bool { return i >= 4 && i < 9 },
		"every":  func(i int) bool { return i%2 == 0 },
	} {
		i, want := 0, map[core.Offset][]byte{}
		runs := keepEntries(func(p uint32, e *core.Entry) bool {
			keep := p == 7 && held(i)
			if keep {
				want[e.Base] = e.Data
			}
			i++
			return keep
		})(nil, x)
		for r, run := range runs {
			if r > 0 && runs[r-1].Next() >= run.First {
				t.Fatalf("%s: runs that touch: %v", name, runs)
			}
			at := run.First
			for rest := run.Data; len(rest) > 0; {
				var e core.Entry
				var err error
				if rest, err = core.ParseEntry(rest, at, &e); err != nil {
					t.Fatal(err)
				}
				if data, ok := want[e.Base]; !ok || !bytes.Equal(data, e.Data) {
					t.Fatalf("%s: entry at %d is not the one that was held", name, e.Base)
				}
				delete(want, e.Base)
				at = e.End()
			}
			if at != run.Next() {
				t.Fatalf("%s: run [%d, %d) ends at %d", name, run.First, run.Next(), at)
			}
		}
		if len(want) > 0 {
			t.Fatalf("%s: lost %v", name, want)
		}
	}
	broken := x
	broken.Data = x.Data[:len(x.Data)-1]
	if runs := keepEntries(func(uint32, *core.Entry) bool { return false })(nil, broken); len(runs) != 1 || len(runs[0].Data) != len(broken.Data) {
		t.Fatal("what cannot be read was thinned away")
	}
}
