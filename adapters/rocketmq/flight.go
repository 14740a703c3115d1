package rocketmq

import (
	"sync"
	"time"
)

// flight counts the sends that are on their way to the disk, so that the last answers leave before the socket closes.
type flight struct {
	mu struct {
		sync.Mutex
		n int
	}
	idle chan struct{}
}

func (f *flight) add(n int) {
	f.mu.Lock()
	f.mu.n += n
	none := f.mu.n == 0
	f.mu.Unlock()
	if none {
		select {
		case f.idle <- struct{}{}:
		default:
		}
	}
}

func (f *flight) wait(limit time.Duration) {
	deadline := time.After(limit)
	for {
		f.mu.Lock()
		n := f.mu.n
		f.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-f.idle:
		case <-deadline:
			return
		}
	}
}
