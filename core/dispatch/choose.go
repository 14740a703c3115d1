package dispatch

import (
	"cmp"
	"strconv"
	"unicode/utf8"

	"isthmus/core"
)

// choose returns the active member of members, which are sorted: only those of the smallest priority are candidates. On a
// partitioned topic partition i goes to candidate i mod n, else the ring decides. Nil for nobody.
// Spec: Pulsar AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer
func choose(members []*member, p Placement) *member {
	n := 0
	for n < len(members) && members[n].Priority == members[0].Priority {
		n++
	}
	switch {
	case n == 0:
		return nil
	case p.Partitioned:
		return members[int(p.Partition)%n]
	}
	return members[onRing(members[:n], p.Topic)]
}

// onRing is consistent hashing with 100 points a candidate, at the hash of its name followed by 0 … 99; the topic goes to the
// first point at or after its own hash, around the end if need be. The ring needs no building: that point is the one at the
// smallest distance, and of colliding points the last one put there wins.
// Spec: Pulsar AbstractDispatcherSingleActiveConsumer.makeHashRing, peekConsumerIndexFromHashRing
func onRing(candidates []*member, topic string) int {
	const points, mask = 100, 0x7fffffff
	at := core.Murmur3_32([]byte(topic)) & mask
	chosen, nearest := 0, uint32(mask)
	var key []byte
	for i, c := range candidates {
		key = append(key[:0], c.Name...)
		for j := range int64(points) {
			h := core.Murmur3_32(strconv.AppendInt(key, j, 10)) & mask
			if d := (h - at) & mask; d <= nearest {
				chosen, nearest = i, d
			}
		}
	}
	return chosen
}

// before orders by priority, then by name; equal ones stay in the order in which they joined.
func before(a, b *member) bool {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), compareUTF16(a.Name, b.Name)) < 0
}

// compareUTF16 orders as Java does, by UTF-16 code units: characters beyond 0xFFFF sort before those from 0xE000 on, since
// they begin with a surrogate.
func compareUTF16(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) || i == len(b) {
		return cmp.Compare(len(a), len(b))
	}
	for i > 0 && !utf8.RuneStart(a[i]) {
		i-- // the difference lies inside a character
	}
	ra, _ := utf8.DecodeRuneInString(a[i:])
	rb, _ := utf8.DecodeRuneInString(b[i:])
	if (ra > 0xFFFF) != (rb > 0xFFFF) && ra >= 0xE000 && rb >= 0xE000 {
		return cmp.Compare(rb, ra)
	}
	return cmp.Compare(ra, rb)
}
