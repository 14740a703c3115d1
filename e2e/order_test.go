package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"isthmus/e2e/clients"
)

// firstSeen judges order where duplicates are allowed: of every key the numbers must appear for the first time in order
// and without a gap. A replay of what was seen is fine, an inversion is not.
type firstSeen struct {
	mu       sync.Mutex
	next     map[string]int // key → number expected next
	n        int            // first occurrences
	copies   int            // replays
	problems []string
}

func newFirstSeen() *firstSeen { return &firstSeen{next: map[string]int{}} }

// number reads the leading decimal of a body, as the fleet's payloads carry it after a prefix of samples.
func number(body []byte) int {
	s, _, _ := strings.Cut(string(body[:min(len(body), 20)]), " ")
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

func (f *firstSeen) add(key string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch want := f.next[key]; {
	case n == want:
		f.next[key]++
		f.n++
	case n < want && n >= 0:
		f.copies++
	default:
		if len(f.problems) < 20 {
			f.problems = append(f.problems, fmt.Sprintf("%s: number %d came when %d was due", key, n, want))
		}
		if n >= want {
			f.next[key] = n + 1
		}
	}
}

func (f *firstSeen) total() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// read feeds a consumer's messages until the test ends.
func (f *firstSeen) read(b *bed, k clients.Consumer) {
	for {
		select {
		case m := <-k.C():
			f.add(m.Key, number(m.Body))
		case <-b.ctx.Done():
			return
		}
	}
}

// judge wants each key's numbers complete up to what was sent.
func (f *firstSeen) judge(t *testing.T, world string, want map[string]int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.problems {
		t.Errorf("%s: %s", world, p)
	}
	if len(f.next) != len(want) {
		t.Errorf("%s: %d keys, want %d", world, len(f.next), len(want))
	}
	for k, n := range want {
		if f.next[k] != n {
			t.Errorf("%s: %s: %d of %d", world, k, f.next[k], n)
		}
	}
	t.Logf("%s: %d messages, %d copies", world, f.n, f.copies)
}

func sum(want map[string]int) (n int) {
	for _, v := range want {
		n += v
	}
	return n
}
