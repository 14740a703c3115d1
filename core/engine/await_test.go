package engine_test

import (
	"testing"

	"isthmus/core/engine/enginetest"
)

func TestAwaitWakesOnceAndForgetsTheCancelled(t *testing.T) {
	bed := enginetest.New(t, nil)
	part := bed.Topic(t, "event", 0).Partition(0)
	p := newPublisher(bed.Engine)
	woken := make(chan int, 64)
	var cancels []func()
	for i := range 10 {
		cancels = append(cancels, part.Await(int64(i%2), func() { woken <- i }))
	}
	for _, i := range []int{0, 9, 4, 3} { // first, last and between, in no order
		cancels[i]()
		cancels[i]() // twice does no harm
	}
	want := func(ids ...int) {
		t.Helper()
		got := map[int]bool{}
		for range ids {
			got[receive(t, woken, "wake")] = true
		}
		for _, id := range ids {
			if !got[id] {
				t.Errorf("%d was not woken, but %v", id, got)
			}
		}
	}
	p.publish(t, part, "k", "x")
	want(2, 6, 8)
	p.publish(t, part, "k", "y")
	want(1, 5, 7)
	p.publish(t, part, "k", "z")
	part.Await(0, func() { woken <- 99 }) // there is something already
	want(99)
	if len(woken) > 0 {
		t.Errorf("%d was woken twice", <-woken)
	}
	for _, c := range cancels {
		c()
	}
}
