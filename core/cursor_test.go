package core

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCursorAck(t *testing.T) {
	for _, v := range []struct {
		name    string
		from    Cursor
		ack     Range
		want    Cursor
		changed bool
	}{
		{"at the mark", Cursor{Next: 5}, Range{5, 8}, Cursor{Next: 8}, true},
		{"across the mark", Cursor{Next: 5}, Range{0, 8}, Cursor{Next: 8}, true},
		{"below the mark", Cursor{Next: 5}, Range{2, 5}, Cursor{Next: 5}, false},
		{"empty", Cursor{Next: 5}, Range{9, 9}, Cursor{Next: 5}, false},
		{"turned round", Cursor{Next: 5}, Range{9, 6}, Cursor{Next: 5}, false},
		{"first hole", Cursor{}, Range{3, 4}, NewCursor(0, Range{3, 4}), true},
		{"at the end", NewCursor(0, Range{3, 4}), Range{6, 7}, NewCursor(0, Range{3, 4}, Range{6, 7}), true},
		{"grows the last", NewCursor(0, Range{3, 4}), Range{4, 7}, NewCursor(0, Range{3, 7}), true},
		{"grows downward", NewCursor(0, Range{3, 4}, Range{8, 9}), Range{7, 8}, NewCursor(0, Range{3, 4}, Range{7, 9}), true},
		{"between two", NewCursor(0, Range{3, 4}, Range{8, 9}), Range{5, 6}, NewCursor(0, Range{3, 4}, Range{5, 6}, Range{8, 9}), true},
		{"before all", NewCursor(0, Range{3, 4}, Range{8, 9}), Range{1, 2}, NewCursor(0, Range{1, 2}, Range{3, 4}, Range{8, 9}), true},
		{"joins two", NewCursor(0, Range{3, 4}, Range{5, 6}, Range{9, 10}), Range{4, 5}, NewCursor(0, Range{3, 6}, Range{9, 10}), true},
		{"swallows some", NewCursor(0, Range{3, 4}, Range{5, 6}, Range{9, 10}, Range{12, 20}), Range{2, 13}, NewCursor(0, Range{2, 20}), true},
		{"known already", NewCursor(0, Range{3, 8}, Range{10, 12}), Range{4, 8}, NewCursor(0, Range{3, 8}, Range{10, 12}), false},
		{"closes the first hole", NewCursor(0, Range{1, 4}, Range{5, 6}), Range{0, 1}, NewCursor(4, Range{5, 6}), true},
		{"closes all holes", NewCursor(0, Range{1, 4}, Range{5, 6}), Range{0, 9}, Cursor{Next: 9}, true},
	} {
		got := v.from.Clone()
		if changed := got.Ack(v.ack); changed != v.changed || !got.Equal(v.want) {
			t.Errorf("%s: %v ack %v: got %v, %v; want %v, %v", v.name, v.from, v.ack, got, changed, v.want, v.changed)
		}
	}
}

func TestCursorAckThrough(t *testing.T) {
	for _, v := range []struct {
		next    Offset
		want    Cursor
		changed bool
	}{
		{1, NewCursor(2, Range{4, 6}, Range{8, 9}), false},
		{2, NewCursor(2, Range{4, 6}, Range{8, 9}), false},
		{3, NewCursor(3, Range{4, 6}, Range{8, 9}), true},
		{4, NewCursor(6, Range{8, 9}), true},
		{5, NewCursor(6, Range{8, 9}), true},
		{7, NewCursor(7, Range{8, 9}), true},
		{8, Cursor{Next: 9}, true},
		{50, Cursor{Next: 50}, true},
	} {
		got := NewCursor(2, Range{4, 6}, Range{8, 9})
		if changed := got.AckThrough(v.next); changed != v.changed || !got.Equal(v.want) {
			t.Errorf("through %d: got %v, %v; want %v, %v", v.next, got, changed, v.want, v.changed)
		}
	}
}

func TestCursorQuestions(t *testing.T) {
	c := NewCursor(2, Range{4, 6}, Range{8, 9})
	for o, next := range []Offset{2, 2, 2, 3, 6, 6, 6, 7, 9, 9} {
		if got := c.NextUnacked(Offset(o)); got != next {
			t.Errorf("next unacked from %d: got %d, want %d", o, got, next)
		}
		if got, want := c.Covers(Offset(o)), next != Offset(o); got != want {
			t.Errorf("covers %d: got %v, want %v", o, got, want)
		}
	}
	if got, want := c.AppendAcked(nil, Range{0, 10}), []Range{{0, 2}, {4, 6}, {8, 9}}; !slices.Equal(got, want) {
		t.Errorf("acked: got %v, want %v", got, want)
	}
	if got := c.Unacked(Range{0, 10}); got != 5 {
		t.Errorf("unacked: got %d, want 5", got)
	}
}

// The model is a set of offsets: small enough to be obviously right.
func TestCursorModel(t *testing.T) {
	const size = 200
	rapid.Check(t, func(t *rapid.T) {
		var c Cursor
		var model [size]bool
		offset := rapid.Int64Range(0, size)
		acknowledge := func(t *rapid.T, r Range, ack func() bool) {
			want := false
			for o := r.From; o < r.To; o++ {
				want = want || !model[o]
				model[o] = true
			}
			if got := ack(); got != want {
				t.Fatalf("changed %v, want %v", got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"ack": func(t *rapid.T) {
				from := offset.Draw(t, "from")
				r := Range{from, min(size, from+rapid.Int64Range(0, 9).Draw(t, "n"))}
				acknowledge(t, r, func() bool { return c.Ack(r) })
			},
			"through": func(t *rapid.T) {
				next := min(c.Next+rapid.Int64Range(0, 9).Draw(t, "n"), size)
				acknowledge(t, Range{0, next}, func() bool { return c.AckThrough(next) })
			},
			"ask": func(t *rapid.T) {
				r := Range{offset.Draw(t, "from"), offset.Draw(t, "to")}
				var unacked int64
				for o := r.From; o < r.To; o++ {
					if !model[o] {
						unacked++
					}
				}
				acked := int64(0)
				for _, a := range c.AppendAcked(nil, r) {
					acked += a.Len()
				}
				if got := c.Unacked(r); got != unacked || acked != max(0, r.Len())-unacked {
					t.Fatalf("%v: %d unacked, %d acked, want %d unacked", r, got, acked, unacked)
				}
			},
			"": func(t *rapid.T) {
				checkForm(t, c)
				for o := range model {
					if c.Covers(Offset(o)) != model[o] {
						t.Fatalf("%v covers %d: %v, want %v", c, o, !model[o], model[o])
					}
				}
				back, err := ParseCursor(c.AppendBinary(nil))
				if err != nil || !back.Equal(c) {
					t.Fatalf("round trip of %v: %v, %v", c, back, err)
				}
			},
		})
	})
}

type fataler interface{ Fatalf(string, ...any) }

// checkForm holds the one form: sorted, nothing empty, nothing touching.
func checkForm(t fataler, c Cursor) {
	end, n := c.Next, 0
	for r := range c.Acked() {
		if r.From <= end || r.To <= r.From {
			t.Fatalf("malformed cursor %v", c)
		}
		end = r.To
		n++
	}
	if n != c.Holes() || end != c.End() {
		t.Fatalf("%d ranges to %d, the cursor says %d to %d", n, end, c.Holes(), c.End())
	}
}

func TestParseCursorRefuses(t *testing.T) {
	uvarints := func(vs ...uint64) []byte {
		b := []byte{cursorVersion}
		for _, v := range vs {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	good := NewCursor(300, Range{400, 500}, Range{70000, 70001})
	whole := good.AppendBinary(nil)
	for i := range whole {
		if _, err := ParseCursor(whole[:i]); !errors.Is(err, ErrInvalid) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	for name, b := range map[string][]byte{
		"another version":           append([]byte{cursorVersion + 1}, whole[1:]...),
		"something behind":          append(slices.Clone(whole), 0),
		"a range at the mark":       uvarints(3, 1, 0, 5),
		"an empty range":            uvarints(3, 1, 1, 0),
		"more ranges than bytes":    uvarints(3, math.MaxUint64),
		"a mark beyond all offsets": uvarints(math.MaxInt64+1, 0),
		"an end beyond all offsets": uvarints(3, 1, 1, math.MaxInt64-3),
	} {
		if _, err := ParseCursor(b); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, c := range []Cursor{{}, {Next: 7}, {Next: math.MaxInt64}, NewCursor(0, Range{1, 2}, Range{3, 300}), NewCursor(1<<40, Range{1<<40 + 1, 1 << 50})} {
		f.Add(c.AppendBinary(nil))
	}
	f.Add([]byte{cursorVersion, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCursor(b)
		if err != nil {
			return
		}
		checkForm(t, c)
		again, err := ParseCursor(c.AppendBinary(nil))
		if err != nil || !again.Equal(c) {
			t.Fatalf("%x: parsed to %v, then %v, %v", b, c, again, err)
		}
	})
}

// Holes made and filled in the orders that groups make and fill them; scattered over all of them is the worst case, where
// each ack moves a quarter of the list.
func BenchmarkCursorHoles(b *testing.B) {
	for _, v := range []struct {
		name  string
		holes int
		pick  func(i, holes int) int
	}{
		{"oldest-first", 200_000, func(i, holes int) int { return i }},
		{"newest-first", 200_000, func(i, holes int) int { return holes - 1 - i }},
		{"scattered", 200_000, func(i, holes int) int { return i * 7919 % holes }},
	} {
		b.Run(v.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var c Cursor
				for i := range v.holes {
					c.Ack(Range{Offset(2*i + 1), Offset(2*i + 2)})
				}
				for i := range v.holes {
					o := Offset(2 * v.pick(i, v.holes))
					c.Ack(Range{o, o + 1})
				}
				if c.Next != Offset(2*v.holes) || c.Holes() != 0 {
					b.Fatal(c.Next, c.Holes())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*v.holes), "ns/ack")
		})
	}
}

func TestCursorCloneSharesNothing(t *testing.T) {
	c := NewCursor(0, Range{2, 3}, Range{5, 6})
	d := c.Clone()
	c.Ack(Range{0, 2})
	if want := NewCursor(0, Range{2, 3}, Range{5, 6}); !d.Equal(want) {
		t.Fatalf("clone became %v", d)
	}
	if !bytes.Equal(d.AppendBinary(nil), []byte{cursorVersion, 0, 2, 2, 1, 2, 1}) {
		t.Fatalf("stored form changed: %x", d.AppendBinary(nil))
	}
}

// Thousands of ranges, so that leaves are cut, merged and emptied; clones taken on the way never change.
func TestCursorOfManyLeaves(t *testing.T) {
	const size = 6000
	rapid.Check(t, func(t *rapid.T) {
		var c Cursor
		var model [size]bool
		type kept struct {
			clone Cursor
			form  []byte
		}
		var clones []kept
		seed := rapid.Uint64().Draw(t, "seed")
		random := rand.New(rand.NewPCG(seed, 1))
		for step := range 4000 {
			from := random.Int64N(size)
			r := Range{from, min(size, from+1+random.Int64N(1+random.Int64N(4)))}
			switch k := random.IntN(1000); {
			case k == 0:
				r = Range{from, min(size, from+random.Int64N(size/4))}
				fallthrough
			default:
				c.Ack(r)
				for o := r.From; o < r.To; o++ {
					model[o] = true
				}
			case k == 1:
				next := c.Next + random.Int64N(30)
				c.AckThrough(next)
				for o := range min(next, size) {
					model[o] = true
				}
			case k < 5 && len(clones) < 20:
				d := c.Clone()
				clones = append(clones, kept{d, d.AppendBinary(nil)})
				if k == 4 {
					c, clones[len(clones)-1].clone = d, c // it is the copy that goes on
				}
			}
			if step%500 != 0 {
				continue
			}
			checkForm(t, c)
			for o := range model {
				if c.Covers(Offset(o)) != model[o] {
					t.Fatalf("step %d: covers %d: %v", step, o, !model[o])
				}
			}
			back, err := ParseCursor(c.AppendBinary(nil))
			if err != nil || !back.Equal(c) {
				t.Fatalf("round trip: %v", err)
			}
		}
		for _, k := range clones {
			if !bytes.Equal(k.clone.AppendBinary(nil), k.form) {
				t.Fatal("a clone has changed")
			}
		}
	})
}

// What the saver does for a group with 200 000 holes: the runner's clone and the stored form.
func BenchmarkCursorSave(b *testing.B) {
	var c Cursor
	for i := range 200_000 {
		c.Ack(Range{Offset(2*i + 1), Offset(2*i + 2)})
	}
	var form []byte
	for i := 0; b.Loop(); i++ {
		o := Offset(2 * (1 + i*7919%199_000))
		c.Ack(Range{o, o + 1})
		d := c.Clone()
		form = d.AppendBinary(form[:0])
	}
	b.ReportMetric(float64(len(form)), "bytes")
}

func TestNextAcked(t *testing.T) {
	c := NewCursor(5, Range{10, 12}, Range{20, 21})
	for o, want := range map[Offset]Offset{5: 10, 9: 10, 12: 20, 19: 20} {
		if got, ok := c.NextAcked(o); !ok || got != want {
			t.Errorf("behind %d: %d, %v; want %d", o, got, ok, want)
		}
	}
	if got, ok := c.NextAcked(21); ok {
		t.Errorf("behind the last: %d", got)
	}
}
