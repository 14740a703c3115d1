package engine

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/parked"
)

// bareView is the view of a log that is nothing else.
func bareView() (*parkedView, *parking) {
	l := new(log)
	k := bareParking(&Partition{log: l, internal: true})
	l.parking.Store(k)
	return &parkedView{log: l}, k
}

// bareParking is one that nobody runs.
func bareParking(p *Partition) *parking {
	k := &parking{log: p.log, part: p, kick: make(chan struct{}, 1)}
	k.mu.index, k.mu.settled = parked.New(), map[core.Offset]struct{}{}
	return k
}

// contents are the messages of an index: times by offset.
func contents(k *parking) map[core.Offset]int64 {
	out := map[core.Offset]int64{}
	for _, items := range [2][]parked.Item{k.mu.index.Due(1<<62, nil, 1<<30), k.mu.index.Checks(1<<62, nil, 1<<30)} {
		for _, it := range items {
			out[it.Offset()] = it.Due
		}
	}
	return out
}

// A view that is restored from its files is the view that was captured, whatever captures came to nothing in between.
func TestI7_CheckpointsOfParkedMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, k := bareView()
		k.mu.news.limit = 500
		var at, seq journal.Seq
		var files [][]byte
		off := core.Offset(0)
		apply := func(r parked.Record) {
			e := core.Entry{Base: off, Count: 1, Data: r.Append(nil)}
			if err := v.apply(k.part, seq, &e); err != nil {
				t.Fatal(err)
			}
			off++
		}
		for range rapid.IntRange(1, 30).Draw(t, "blocks") {
			seq++
			n := rapid.IntRange(0, 20).Draw(t, "records")
			if rapid.IntRange(0, 9).Draw(t, "crowd") == 0 {
				n = 100 // more changes than are remembered
			}
			for i := range n {
				switch old := core.Offset(rapid.Int64Range(0, max(off, 1)).Draw(t, "old")); {
				case n > 20 || i%3 == 0:
					apply(parked.Record{Kind: parked.Delay, Due: int64(off) * 3, Entry: []byte("x")})
				case i%3 == 1:
					apply(parked.Record{Kind: parked.Half, Check: int64(off) * 5, Entry: []byte("x")})
				default:
					apply(parked.Record{Kind: parked.Done, Of: old, Due: int64(old) * 3})
				}
			}
			if !rapid.Bool().Draw(t, "capture") {
				continue
			}
			since := at
			if rapid.IntRange(0, 3).Draw(t, "whole") == 0 {
				since = 0
			}
			write := v.capture(since)
			want := contents(k)
			if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
				continue
			}
			if since == 0 {
				files = nil
			}
			if write != nil {
				seq++
				apply(parked.Record{Kind: parked.Delay, Due: 1, Entry: []byte("x")}) // the copy is written later
				seq--
				var b bytes.Buffer
				if err := write(&b); err != nil {
					t.Fatal(err)
				}
				files = append(files, b.Bytes())
			}
			at = seq
			if write != nil {
				seq++
			}
			again, restored := bareView()
			for _, f := range files {
				if err := again.restore(bytes.NewReader(f)); err != nil {
					t.Fatal(err)
				}
			}
			if got := contents(restored); !maps.Equal(got, want) {
				t.Fatalf("%d messages are restored, there were %d", len(got), len(want))
			}
		}
	})
}

// Where no checkpoint needs it, a journal holds the bodies of what is parked and nothing else of an internal partition.
func TestParkedBodiesAreHeld(t *testing.T) {
	v, k := bareView()
	records := []parked.Record{
		{Kind: parked.Delay, Due: 5, Entry: []byte("x")}, {Kind: parked.Delay, Due: 5, Entry: []byte("x")}, {Kind: parked.Half, Entry: []byte("x")},
		{Kind: parked.Half, Entry: []byte("x")}, {Kind: parked.Checked, Of: 2}, {Kind: parked.Done, Of: 1, Due: 5}, {Kind: parked.Done, Of: 3},
	}
	var es []core.Entry
	for i := range records {
		es = append(es, core.Entry{Base: core.Offset(i), Count: 1, Data: records[i].Append(nil)})
		if err := v.apply(k.part, 1, &es[i]); err != nil {
			t.Fatal(err)
		}
	}
	var held []bool
	for i := range es {
		held = append(held, k.holds(&es[i]))
	}
	if !slices.Equal(held, []bool{true, false, true, false, false, false, false}) {
		t.Errorf("%v", held)
	}
}
