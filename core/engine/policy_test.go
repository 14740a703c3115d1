package engine

import (
	"slices"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
)

// A log of two partitions: marks a minute apart, ten messages of 10 B of each partition between two.
func someMarks(n int) (ms []mark) {
	for i := range n {
		o := int64(10 * i)
		ms = append(ms, mark{
			seq: journal.Seq(1 + 100*i), time: int64(i) * time.Minute.Milliseconds(),
			next: map[uint32]core.Offset{1: o, 2: o}, bytes: map[uint32]int64{1: 10 * o, 2: 10 * o},
		})
	}
	return ms
}

func TestTrimFloor(t *testing.T) {
	const all = 100 // marks 0 to 10: 10 lies before offset 100
	now := time.UnixMilli(0).Add(10 * time.Minute)
	type part struct {
		retention Retention
		needed    core.Offset
		grouped   bool
		first     core.Offset
	}
	consumed := part{needed: all, grouped: true}
	for _, c := range []struct {
		name   string
		parts  [2]part
		floor  time.Duration
		saved  journal.Seq
		before int
	}{
		{"consumed, no floor", [2]part{consumed, consumed}, 0, 9999, 10},
		{"floor of three minutes", [2]part{consumed, consumed}, 3 * time.Minute, 9999, 7},
		{"position saved up to block 450", [2]part{consumed, consumed}, 0, 450, 4},
		{"one group stands at 55", [2]part{consumed, {needed: 55, grouped: true}}, 0, 9999, 5},
		{"age of four minutes", [2]part{consumed, {retention: Retention{Age: 4 * time.Minute}, needed: all, grouped: true}}, 0, 9999, 6},
		{"age, but nothing there", [2]part{consumed, {retention: Retention{Age: time.Hour}, needed: all, grouped: true, first: all}}, 0, 9999, 10},
		{"size of 300 B and no age", [2]part{consumed, {retention: Retention{Size: 300}, needed: all, grouped: true}}, 0, 9999, 7},
		{"size before age", [2]part{consumed, {retention: Retention{Size: 300, Age: 9 * time.Minute}, needed: all, grouped: true}}, 0, 9999, 7},
		{"age before size", [2]part{consumed, {retention: Retention{Size: 900, Age: 2 * time.Minute}, needed: all, grouped: true}}, 0, 9999, 8},
		{"size counts what is consumed alone", [2]part{consumed, {retention: Retention{Size: 300}, needed: 50, grouped: true}}, 0, 9999, 2},
		{"size cuts below the floor", [2]part{{retention: Retention{Size: 1}, needed: all, grouped: true}, {needed: all, grouped: true, first: all}}, time.Hour, 9999, 9},
		{"without groups the floor holds against size", [2]part{{retention: Retention{Size: 1}, needed: all}, {needed: all, first: all}}, 5 * time.Minute, 9999, 5},
		{"without groups", [2]part{{needed: all}, consumed}, 10 * time.Minute, 9999, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			hold := map[uint32]*holding{}
			for i, p := range c.parts {
				h := p.retention.hold(now, c.floor, p.grouped, p.retention.Size)
				h.first, h.needed, h.weight = p.first, p.needed, 10*p.needed
				hold[uint32(i+1)] = &h
			}
			if got := trimmable(someMarks(11), c.saved, hold); got != c.before {
				t.Errorf("trimmed before mark %d, want %d", got, c.before)
			}
		})
	}
}

func TestCutIsProportional(t *testing.T) {
	for _, c := range []struct {
		parts []int64
		size  int64
		want  []int64
	}{
		{[]int64{10, 20}, 30, []int64{10, 20}},
		{[]int64{10, 30}, 20, []int64{5, 15}},
		{[]int64{0, 100}, 1, []int64{0, 1}},
		{nil, 1, []int64{}},
	} {
		if got := cut(c.parts, c.size); !slices.Equal(got, c.want) {
			t.Errorf("cut(%v, %d) = %v, want %v", c.parts, c.size, got, c.want)
		}
	}
}

func TestWeightIsExactAtMarksAndFairBetween(t *testing.T) {
	l := &log{}
	l.tail.marks = someMarks(3) // up to offset 20, byte 200
	p := &Partition{number: 1, log: l, bytes: 1200}
	p.committed.Store(30)
	for _, c := range []struct {
		offset core.Offset
		bytes  int64
	}{{0, 0}, {5, 50}, {10, 100}, {20, 200}, {25, 700}, {30, 1200}} {
		if got := p.written(c.offset); got != c.bytes {
			t.Errorf("written(%d) = %d, want %d", c.offset, got, c.bytes)
		}
		if got := p.last(1200 - c.bytes); got != c.offset {
			t.Errorf("last(%d) = %d, want %d", 1200-c.bytes, got, c.offset)
		}
	}
	if got := p.last(5000); got != 0 {
		t.Errorf("more than there is: %d", got)
	}
}

func TestWhenFullWords(t *testing.T) {
	for w := range WhenFull(len(whenFull)) {
		if got, err := ParseWhenFull(w.String()); got != w || err != nil {
			t.Errorf("%v: %v, %v", w, got, err)
		}
	}
	if _, err := ParseWhenFull("drop"); err == nil {
		t.Error("drop was accepted")
	}
}
