package parked

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func fill(due func(i int64) int64) *Index {
	x := New()
	for i := range int64(million) {
		x.Apply(i, &Record{Kind: Delay, Target: uint32(i % 8), Due: due(i)})
	}
	return x
}

// I8: a million delayed messages take at most 32 bytes each, whatever the order of their due times, and none is left
// behind when they are gone.
func TestI8_AMillionDelaysInMemory(t *testing.T) {
	for name, due := range map[string]func(int64) int64{
		"one time": func(int64) int64 { return 5 },
		"rising":   func(i int64) int64 { return i },
		"falling":  func(i int64) int64 { return million - i },
		"random":   func(int64) int64 { return rand.Int64N(1 << 40) },
	} {
		before := heap()
		x := fill(due)
		each := float64(heap()-before) / million
		t.Logf("%s: %.1f bytes a message", name, each)
		if each > 32 {
			t.Errorf("%s: %.1f bytes a message", name, each)
		}
		if name == "rising" || name == "falling" {
			continue
		}
		for all, _ := x.Len(); all > 0; all, _ = x.Len() {
			for _, it := range x.Due(1<<62, nil, 1024) {
				x.Apply(0, &Record{Kind: Done, Of: it.Offset(), Due: it.Due})
			}
		}
		if len(x.delays.chunks) > 0 || len(x.counts) > 0 {
			t.Errorf("%s: %d chunks are left", name, len(x.delays.chunks))
		}
	}
}

// One operation parks and releases one message, with a million others parked.
func BenchmarkParkAndRelease(b *testing.B) {
	x := fill(func(int64) int64 { return rand.Int64N(1 << 40) })
	off := int64(million)
	b.ReportAllocs()
	var due []Item
	for b.Loop() {
		x.Apply(off, &Record{Kind: Delay, Due: rand.Int64N(1 << 40)})
		off++
		due = x.Due(1<<62, due[:0], 1)
		x.Apply(off, &Record{Kind: Done, Of: due[0].Offset(), Due: due[0].Due})
		off++
	}
}

func BenchmarkFloorOfAMillion(b *testing.B) {
	x := fill(func(int64) int64 { return rand.Int64N(1 << 40) })
	for b.Loop() {
		x.Floor()
	}
}
