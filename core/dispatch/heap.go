package dispatch

import "isthmus/core"

// alarm says when an entry is due.
type alarm struct {
	at   int64 // unix ms
	base core.Offset
}

func (a alarm) less(b alarm) bool { return a.at < b.at || a.at == b.at && a.base < b.base }

// place is an offset as a heap orders it.
type place core.Offset

func (p place) less(q place) bool { return p < q }

type (
	replays = heap[place] // yields the lowest offset first
	alarms  = heap[alarm] // yields the earliest first
)

// stale tells whether most of these alarms ring for nobody, where so many entries may have one: it is time to make the heap
// anew.
func stale(a alarms, entries int) bool {
	const few = 64
	return len(a) >= few+2*entries
}

// soonest is when the first alarm rings, maybe for nobody; 0: there is none.
func soonest(a alarms) int64 {
	if len(a) == 0 {
		return 0
	}
	return a[0].at
}

type heap[T interface{ less(T) bool }] []T

func (h *heap[T]) push(v T) {
	a := append(*h, v)
	i := len(a) - 1
	for i > 0 && v.less(a[(i-1)/2]) {
		a[i] = a[(i-1)/2]
		i = (i - 1) / 2
	}
	a[i] = v
	*h = a
}

func (h *heap[T]) pop() T {
	a := *h
	top, n := a[0], len(a)-1
	v := a[n]
	a = a[:n]
	i := 0
	for c := 1; c < n; c = 2*i + 1 {
		if c+1 < n && a[c+1].less(a[c]) {
			c++
		}
		if !a[c].less(v) {
			break
		}
		a[i] = a[c]
		i = c
	}
	if n > 0 {
		a[i] = v
	}
	*h = a
	return top
}
