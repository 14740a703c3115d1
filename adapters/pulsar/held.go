package pulsar

import "isthmus/core"

// held is what a consumer was given of one partition and has not acknowledged: base offset and count of entries. An ack
// names an entry and not how many messages it has, so somebody has to remember.
//
// Entries mostly come and go in order of offset: they lie in a queue, searched by halves. The few that come out of order
// (redelivered) are in a map. Both are bounded: of what is forgotten the log knows the count. Plain data, guarded by its
// consumer.
type held struct {
	queue []span // by base; count 0 = gone
	gone  int    // how many of the queue are gone
	rest  map[core.Offset]int32
}

type span struct {
	base  core.Offset
	count int32
}

// maxHeld bounds the entries that are remembered for a client that takes and never acknowledges.
const maxHeld = 1 << 17

// heldOf is what the consumer holds of a partition; a topic may have got more of them. The caller holds c.mu.
func (c *consumer) heldOf(partition int32) *held {
	for int(partition) >= len(c.held) {
		c.held = append(c.held, held{})
	}
	return &c.held[partition]
}

func (h *held) add(base core.Offset, count int32) {
	if len(h.queue) >= maxHeld {
		h.forgetOldest()
	}
	if n := len(h.queue); n == 0 || base > h.queue[n-1].base {
		h.queue = append(h.queue, span{base, count})
		return
	}
	if i, ok := h.find(base); ok {
		if h.queue[i].count == 0 {
			h.queue[i].count = count
			h.gone--
		}
		return
	}
	if h.rest == nil {
		h.rest = map[core.Offset]int32{}
	}
	if len(h.rest) < maxHeld {
		h.rest[base] = count
	}
}

// forgetOldest drops a quarter of the queue.
func (h *held) forgetOldest() {
	const n = maxHeld / 4
	for _, s := range h.queue[:n] {
		if s.count == 0 {
			h.gone--
		}
	}
	h.queue = h.queue[:copy(h.queue, h.queue[n:])]
}

// count tells how many messages the entry at base has; 0 when it is not held.
func (h *held) count(base core.Offset) int32 {
	if i, ok := h.find(base); ok {
		return h.queue[i].count
	}
	return h.rest[base]
}

// covering finds the held entry that an offset lies in, through the queue alone.
func (h *held) covering(at core.Offset) (span, bool) {
	i, ok := h.find(at)
	if !ok {
		i--
	}
	if i < 0 || at >= h.queue[i].base+int64(h.queue[i].count) {
		return span{}, false
	}
	return h.queue[i], true
}

// drop forgets the entry at base.
func (h *held) drop(base core.Offset) {
	i, ok := h.find(base)
	if !ok {
		delete(h.rest, base)
		return
	}
	if h.queue[i].count != 0 {
		h.queue[i].count = 0
		h.gone++
	}
	h.tidy()
}

// dropBelow forgets every entry that begins below next.
func (h *held) dropBelow(next core.Offset) {
	for i := range h.queue {
		if h.queue[i].base >= next {
			break
		}
		if h.queue[i].count != 0 {
			h.queue[i].count = 0
			h.gone++
		}
	}
	for base := range h.rest {
		if base < next {
			delete(h.rest, base)
		}
	}
	h.tidy()
}

func (h *held) clear() { *h = held{} }

// tidy takes away what is gone once that is most of the queue, so that an entry that is never acknowledged costs only
// itself.
func (h *held) tidy() {
	if h.gone < 64 && h.gone < len(h.queue) || 2*h.gone < len(h.queue) {
		return
	}
	live := h.queue[:0]
	for _, s := range h.queue {
		if s.count != 0 {
			live = append(live, s)
		}
	}
	h.queue, h.gone = live, 0
}

func (h *held) find(base core.Offset) (int, bool) {
	lo, hi := 0, len(h.queue)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if h.queue[mid].base < base {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(h.queue) && h.queue[lo].base == base
}
