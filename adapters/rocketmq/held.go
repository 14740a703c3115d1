package rocketmq

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

const (
	pullWorkers = 2    // run woken pulls
	maxHeld     = 8192 // pulls held for one connection; one more is refused as busy
)

// holder keeps pulls that found nothing. Each waits for a message or its time, whatever comes first, without a goroutine
// of its own; then a worker runs it again. The mutex is a leaf: nothing is called while it is held.
type holder struct {
	mu struct {
		sync.Mutex
		held   tickets // by time
		ready  []*pull
		counts map[*session]int
		closed bool
	}
	workers sync.Cond     // something is ready, or closed
	kick    chan struct{} // capacity 1: the first time has changed
}

// ticket is one stay of a pull in the holder.
type ticket struct {
	pull   *pull
	at     time.Time
	index  int // in the heap; -1: no longer held
	cancel func()
}

func (h *holder) init() {
	h.mu.counts = make(map[*session]int)
	h.workers.L = &h.mu
	h.kick = make(chan struct{}, 1)
}

// hold keeps p until at, or until await's callback is called; await may be nil. It reports false when the connection
// holds too many.
func (h *holder) hold(p *pull, at time.Time, await func(wake func()) (cancel func())) bool {
	t := &ticket{pull: p, at: at}
	h.mu.Lock()
	if h.mu.closed || p.session.gone.Load() {
		h.mu.Unlock()
		return true // nobody is there to be answered
	}
	if h.mu.counts[p.session] >= maxHeld {
		h.mu.Unlock()
		return false
	}
	h.mu.counts[p.session]++
	heap.Push(&h.mu.held, t)
	first := t.index == 0
	h.mu.Unlock()
	if first {
		select {
		case h.kick <- struct{}{}:
		default:
		}
	}
	if await == nil {
		return true
	}
	cancel := await(func() { h.wake(t) })
	h.mu.Lock()
	over := t.index < 0
	t.cancel = cancel
	h.mu.Unlock()
	if over {
		cancel()
	}
	return true
}

// release takes t out; false when it is out already. The caller holds the mutex, reads t.cancel under it, and calls that afterwards.
func (h *holder) release(t *ticket) bool {
	if t.index < 0 {
		return false
	}
	heap.Remove(&h.mu.held, t.index)
	s := t.pull.session
	if h.mu.counts[s]--; h.mu.counts[s] == 0 {
		delete(h.mu.counts, s)
	}
	return true
}

// wake makes a held pull ready. Committers call it.
func (h *holder) wake(t *ticket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.release(t) {
		h.mu.ready = append(h.mu.ready, t.pull)
		h.workers.Signal()
	}
}

// drop forgets what is held for a connection that is gone.
func (h *holder) drop(s *session) {
	s.gone.Store(true)
	h.mu.Lock()
	var out []*ticket
	var cancels []func()
	if h.mu.counts[s] > 0 {
		for _, t := range h.mu.held {
			if t.pull.session == s {
				out = append(out, t)
			}
		}
		for _, t := range out {
			h.release(t)
			cancels = append(cancels, t.cancel)
		}
	}
	h.mu.Unlock()
	callAll(cancels)
}

// callAll calls what release left to call. A ticket without a cancel yet is cancelled by hold.
func callAll(cancels []func()) {
	for _, cancel := range cancels {
		if cancel != nil {
			cancel()
		}
	}
}

// sweep makes pulls ready whose time has come, until ctx ends.
func (h *holder) sweep(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := h.due(time.Now())
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-h.kick:
		}
	}
}

// due moves what is due and returns the time until the next.
func (h *holder) due(now time.Time) time.Duration {
	h.mu.Lock()
	var cancels []func()
	for len(h.mu.held) > 0 && !h.mu.held[0].at.After(now) {
		t := h.mu.held[0]
		h.release(t)
		h.mu.ready = append(h.mu.ready, t.pull)
		h.workers.Signal()
		cancels = append(cancels, t.cancel)
	}
	wait := time.Hour
	if len(h.mu.held) > 0 {
		wait = h.mu.held[0].at.Sub(now)
	}
	h.mu.Unlock()
	callAll(cancels)
	return wait
}

// work runs ready pulls until close.
func (h *holder) work(run func(*pull)) {
	for {
		h.mu.Lock()
		for len(h.mu.ready) == 0 && !h.mu.closed {
			h.workers.Wait()
		}
		if h.mu.closed {
			h.mu.Unlock()
			return
		}
		p := h.mu.ready[0]
		h.mu.ready[0] = nil
		h.mu.ready = h.mu.ready[1:]
		h.mu.Unlock()
		run(p)
	}
}

// close ends the workers and forgets everything.
func (h *holder) close() {
	h.mu.Lock()
	var cancels []func()
	for _, t := range h.mu.held {
		t.index = -1
		cancels = append(cancels, t.cancel)
	}
	h.mu.held, h.mu.ready, h.mu.closed = nil, nil, true
	h.workers.Broadcast()
	h.mu.Unlock()
	callAll(cancels)
}

// tickets is a heap by time.
type tickets []*ticket

func (t tickets) Len() int           { return len(t) }
func (t tickets) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t tickets) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

func (t *tickets) Push(x any) {
	x.(*ticket).index = len(*t)
	*t = append(*t, x.(*ticket))
}

func (t *tickets) Pop() any {
	old := *t
	x := old[len(old)-1]
	old[len(old)-1] = nil
	x.index = -1
	*t = old[:len(old)-1]
	return x
}
