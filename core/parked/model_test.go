package parked

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"isthmus/core"
)

// modelItem is a parked message as the simplest thing that can be right.
type modelItem struct {
	at     int64
	target uint32
	half   bool
	checks uint32
}

// The index against a plain map, with so many messages that chunks split and join; and an index that is rebuilt from the
// records is the same.
func TestI7_ModelOfTheIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, model := New(), map[core.Offset]modelItem{}
		var records []Record
		apply := func(r Record) {
			x.Apply(core.Offset(len(records)), &r)
			records = append(records, r)
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			spread := rapid.SampledFrom([]int64{1, 50, 1 << 40}).Draw(t, "spread")
			for range rapid.IntRange(0, 400).Draw(t, "parked") {
				off := core.Offset(len(records))
				target := uint32(rapid.IntRange(0, 3).Draw(t, "target"))
				at := rapid.Int64Range(0, spread).Draw(t, "at")
				half := rapid.IntRange(0, 9).Draw(t, "half") == 0
				model[off] = modelItem{at, target, half, 0}
				if half {
					apply(Record{Kind: Half, Target: target, Check: at})
				} else {
					apply(Record{Kind: Delay, Target: target, Due: at})
				}
			}
			frozen, before := x.Snapshot(), maps.Clone(model)
			keep := rapid.IntRange(0, 9).Draw(t, "keep")
			for _, off := range slices.Sorted(maps.Keys(model)) {
				m := model[off]
				switch {
				case rapid.IntRange(0, 9).Draw(t, "goes") >= keep:
					due := m.at
					if m.half {
						due = 0
					}
					apply(Record{Kind: Done, Of: off, Due: due})
					delete(model, off)
				case m.half:
					m.at, m.checks = m.at+7, m.checks+1
					apply(Record{Kind: Checked, Of: off, Check: m.at, Checks: m.checks})
					model[off] = m
				}
			}
			compare(t, x, model)
			was := New()
			if err := frozen.Each(func(off core.Offset, r *Record) error { was.Apply(off, r); return nil }); err != nil {
				t.Fatal(err)
			}
			compare(t, was, before)
		}
		again := New()
		for i := range records {
			again.Apply(core.Offset(i), &records[i])
		}
		compare(t, again, model)
		var stream []byte
		if err := x.Snapshot().Each(func(off core.Offset, r *Record) error {
			stream = AppendStream(stream, off, r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		restored := New()
		if err := ReadStream(bytes.NewReader(stream), restored.Apply); err != nil {
			t.Fatal(err)
		}
		compare(t, restored, model)
		gone := uint32(rapid.IntRange(0, 3).Draw(t, "gone"))
		maps.DeleteFunc(model, func(_ core.Offset, m modelItem) bool { return m.target == gone })
		again.Drop(func(target uint32) bool { return target == gone })
		compare(t, again, model)
	})
}

func compare(t *rapid.T, x *Index, model map[core.Offset]modelItem) {
	var want [2][]Item
	counts := map[uint32]int{}
	floor, any := core.Offset(0), false
	for off, m := range model {
		kind := 0
		if m.half {
			kind = 1
			if h, ok := x.Half(off); !ok || h != (HalfState{m.target, m.at, m.checks, m.at}) {
				t.Fatalf("half %d: %+v, want %+v", off, h, m)
			}
		} else if !x.Delayed(m.at, off) || x.Delayed(m.at+1, off) {
			t.Fatalf("delay %d is not found", off)
		}
		want[kind] = append(want[kind], item(m.at, off, m.target))
		counts[m.target]++
		if !any || off < floor {
			floor, any = off, true
		}
	}
	for i, got := range [2][]Item{x.Due(1<<62, nil, 1<<30), x.Checks(1<<62, nil, 1<<30)} {
		slices.SortFunc(want[i], func(a, b Item) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ref, b.ref)) })
		if !slices.Equal(got, want[i]) {
			t.Fatalf("list %d: %v\nwant %v", i, got, want[i])
		}
	}
	for target := range uint32(4) {
		if x.Count(target) != counts[target] {
			t.Fatalf("target %d: %d, want %d", target, x.Count(target), counts[target])
		}
	}
	if f, ok := x.Floor(); ok != any || ok && f != floor {
		t.Fatalf("floor %d %v, want %d %v", f, ok, floor, any)
	}
	for _, l := range []*list{&x.delays, &x.checks} {
		for i := range len(l.chunks) - 1 {
			if len(l.chunks[i].items)+len(l.chunks[i+1].items) < chunkItems {
				t.Fatalf("chunks %d and %d are less than half full", i, i+1)
			}
		}
	}
}

func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, 1<<50)
		r := Record{Kind: Kind(rapid.IntRange(1, 4).Draw(t, "kind"))}
		if r.Kind == Delay || r.Kind == Half {
			r.Target, r.Due = uint32(rapid.IntRange(0, maxTarget).Draw(t, "target")), ms.Draw(t, "due")
			r.Entry = rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "entry")
		}
		switch r.Kind {
		case Delay:
		case Half:
			r.Wait, r.Check = ms.Draw(t, "wait"), ms.Draw(t, "check")
		case Done:
			r.Due, r.Of = ms.Draw(t, "due"), rapid.Int64Range(0, maxOffset).Draw(t, "of")
		case Checked:
			r.Check, r.Of, r.Checks = ms.Draw(t, "check"), rapid.Int64Range(0, maxOffset).Draw(t, "of"), rapid.Uint32Range(0, 99).Draw(t, "checks")
		}
		b := r.Append(nil)
		var got Record
		if err := got.Parse(b); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if !slices.Equal(got.Append(nil), b) || got.Kind != r.Kind || got.Of != r.Of || got.Due != r.Due || got.Target != r.Target {
			t.Fatalf("%+v, want %+v", got, r)
		}
		for n := range len(b) - len(r.Entry) {
			if got.Parse(b[:n]) == nil {
				t.Fatalf("%d of %d bytes are a record", n, len(b))
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, r := range []Record{{Kind: Delay, Due: 5, Entry: []byte("x")}, {Kind: Half, Check: 6, Entry: []byte("x")}, {Kind: Done, Of: 7}, {Kind: Checked, Checks: 2}} {
		f.Add(r.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again Record
		if r.Parse(b) != nil {
			return
		}
		if err := again.Parse(r.Append(nil)); err != nil || again.Of != r.Of || again.Due != r.Due {
			t.Fatalf("%+v %+v %v", r, again, err)
		}
	})
}
