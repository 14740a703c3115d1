package rocketmq

import (
	"sync"

	"isthmus/core"
	"isthmus/core/engine"
)

// decodedEntries is how many batches are kept at once.
const decodedEntries = 8

// decoded keeps the newest large batches of other protocols in decoded form: a client reads one in answers of 32, and
// each would decode it all again. What it holds is never written to. The mutex is a leaf.
type decoded struct {
	mu struct {
		sync.Mutex
		next    int
		entries [decodedEntries]struct {
			partition uint32
			base      core.Offset
			messages  []core.Message
		}
	}
}

// messages returns the messages of an entry.
func (d *decoded) messages(eng *engine.Engine, partition uint32, e *core.Entry) ([]core.Message, error) {
	if e.Count <= maxMessages {
		return eng.Messages(e, nil)
	}
	if ms := d.find(partition, e.Base); ms != nil {
		return ms, nil
	}
	ms, err := eng.Messages(e, nil)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	slot := &d.mu.entries[d.mu.next%decodedEntries]
	d.mu.next++
	slot.partition, slot.base, slot.messages = partition, e.Base, ms
	return ms, nil
}

func (d *decoded) find(partition uint32, base core.Offset) []core.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.mu.entries {
		if s := &d.mu.entries[i]; s.messages != nil && s.partition == partition && s.base == base {
			return s.messages
		}
	}
	return nil
}
