package engine

import (
	"sync"

	"isthmus/core"
	"isthmus/core/dispatch"
)

type inputKind uint8

const (
	inputCall inputKind = iota
	inputAck
	inputAckThrough
	inputNack
	inputNackAll
	inputHold
	inputCommit
)

// input is something that a runner is told.
type input struct {
	kind      inputKind
	partition int32
	consumer  dispatch.ConsumerID
	a, b      core.Offset
	call      func()
}

// maxMail bounds a mailbox: whoever posts more waits until the runner has read, which stops the reader of that socket.
// While the runner is handing over it is the one that may be posting, from inside a Sink, so then nobody waits.
const maxMail = 1 << 16

// mailbox is how a runner is told things: many post, the runner takes all at once. The mutex is a leaf.
type mailbox struct {
	mu struct {
		sync.Mutex
		room   sync.Cond
		in     []input
		giving bool // the runner is calling Sinks
		closed bool
	}
	bell  chan struct{} // capacity 1
	taken []input       // owned by the runner
}

func (m *mailbox) init() {
	m.bell = make(chan struct{}, 1)
	m.mu.room.L = &m.mu
}

func (m *mailbox) wake() {
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

// post reports false when the runner has ended.
func (m *mailbox) post(in input) bool {
	m.mu.Lock()
	for len(m.mu.in) >= maxMail && !m.mu.closed && !m.mu.giving {
		m.mu.room.Wait()
	}
	if m.mu.closed {
		m.mu.Unlock()
		return false
	}
	m.mu.in = append(m.mu.in, in)
	first := len(m.mu.in) == 1
	m.mu.Unlock()
	if first {
		m.wake()
	}
	return true
}

func (m *mailbox) give(on bool) {
	m.mu.Lock()
	m.mu.giving = on
	m.mu.room.Broadcast()
	m.mu.Unlock()
}

// take returns what was posted since; valid until the next call.
func (m *mailbox) take() []input {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.taken)
	m.taken, m.mu.in = m.mu.in, m.taken[:0]
	m.mu.room.Broadcast()
	return m.taken
}

// close refuses further posts and returns what was posted before.
func (m *mailbox) close() []input {
	m.mu.Lock()
	m.mu.closed = true
	m.mu.room.Broadcast()
	m.mu.Unlock()
	return m.take()
}
