package engine

import (
	"cmp"
	"io"
	"slices"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/parked"
)

// parkedView lets checkpoints and replay have the index of what is parked in a log. The committer shows it each durable
// block, before producers are told.
type parkedView struct {
	log *log
}

func (v *parkedView) kind() string              { return "parked" }
func (v *parkedView) wants(p *Partition) bool   { return p.internal }
func (v *parkedView) live() bool                { return true }
func (v *parkedView) restore(r io.Reader) error { return v.log.parking.Load().restore(r) }

func (v *parkedView) apply(p *Partition, seq journal.Seq, e *core.Entry) error {
	var r parked.Record
	if err := r.Parse(e.Data); err != nil {
		return err
	}
	k := p.log.parking.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch r.Kind {
	case parked.Delay:
		k.mu.reserved[0] = max(0, k.mu.reserved[0]-1) // in a replay nothing is reserved
	case parked.Half:
		k.mu.reserved[1] = max(0, k.mu.reserved[1]-1)
	case parked.Done:
		delete(k.mu.settled, r.Of)
	case parked.Checked:
	}
	k.mu.index.Apply(e.Base, &r)
	k.mu.news.add(seq, e.Base, &r)
	k.wake()
	return nil
}

// A checkpoint begins with one of these. A whole may come at any time: when changes became too many to remember.
const (
	parkedWhole   = 1
	parkedChanges = 2
)

func (v *parkedView) capture(since journal.Seq) func(io.Writer) error {
	k := v.log.parking.Load()
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	changes, ok := k.mu.news.after(since)
	if since == 0 || !ok {
		k.mu.news.forget()
		snapshot := k.mu.index.Snapshot()
		return func(w io.Writer) error { return writeParked(w, snapshot) }
	}
	if len(changes) == 0 {
		return nil
	}
	changes = slices.Concat([]byte{parkedChanges}, changes)
	return func(w io.Writer) error {
		_, err := w.Write(changes)
		return err
	}
}

func writeParked(w io.Writer, s *parked.Snapshot) error {
	const room = 64 << 10
	b := append(make([]byte, 0, room+256), parkedWhole)
	err := s.Each(func(off core.Offset, r *parked.Record) (err error) {
		if b = parked.AppendStream(b, off, r); len(b) >= room {
			_, err = w.Write(b)
			b = b[:0]
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func (k *parking) restore(r io.Reader) error {
	var what [1]byte
	if _, err := io.ReadFull(r, what[:]); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if what[0] == parkedWhole {
		k.mu.index = parked.New()
	}
	return parked.ReadStream(r, k.mu.index.Apply)
}

func (v *parkedView) reset() {
	if k := v.log.parking.Load(); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.mu.index = parked.New()
		k.mu.news.forget()
	}
}

// floor is a place in the journal at or before the first parked body: it may not be trimmed away, however old it is.
func (v *parkedView) floor() journal.Seq {
	l := v.log
	k := l.parking.Load()
	if k == nil {
		return 0
	}
	k.mu.Lock()
	off, ok := k.mu.index.Floor()
	k.mu.Unlock()
	if !ok {
		return 0
	}
	l.tail.RLock()
	defer l.tail.RUnlock()
	return l.marked(k.part.number, off)
}

// holds tells whether an entry of the internal partition is needed when a journal is thinned, which happens where no
// checkpoint needs it: then notes are of no use, and neither is the body of what is no longer parked.
func (k *parking) holds(e *core.Entry) bool {
	var r parked.Record
	if err := r.Parse(e.Data); err != nil {
		return true // whoever reads it will say so
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.Kind == parked.Half {
		_, ok := k.mu.index.Half(e.Base)
		return ok
	}
	return r.Kind == parked.Delay && k.mu.index.Delayed(r.Due, e.Base)
}

// maxNews bounds the memory for changes; what is beyond costs a whole.
const maxNews = 1 << 20

// parkedNews are the records of the blocks after the last checkpoint, as a stream.
type parkedNews struct {
	stream []byte
	blocks []newsBlock // in order
	lost   journal.Seq // up to this block there were too many to keep
	limit  int         // bytes; 0: maxNews
}

type newsBlock struct {
	seq journal.Seq
	end int // of its part of the stream
}

func (n *parkedNews) add(seq journal.Seq, off core.Offset, r *parked.Record) {
	n.stream = parked.AppendStream(n.stream, off, r)
	if last := len(n.blocks) - 1; last >= 0 && n.blocks[last].seq == seq {
		n.blocks[last].end = len(n.stream)
	} else {
		n.blocks = append(n.blocks, newsBlock{seq, len(n.stream)})
	}
	if len(n.stream) > cmp.Or(n.limit, maxNews) {
		n.forget()
	}
}

// after returns what came after a block, and forgets what came before; not ok: it does not know all of it.
func (n *parkedNews) after(since journal.Seq) (stream []byte, ok bool) {
	if n.lost > since {
		return nil, false
	}
	i := 0
	for i < len(n.blocks) && n.blocks[i].seq <= since {
		i++
	}
	if i > 0 {
		cut := n.blocks[i-1].end
		n.stream = slices.Delete(n.stream, 0, cut)
		n.blocks = slices.Delete(n.blocks, 0, i)
		for j := range n.blocks {
			n.blocks[j].end -= cut
		}
	}
	return n.stream, true
}

// forget is for a whole being captured, which may yet come to nothing: then only another whole will do.
func (n *parkedNews) forget() {
	if last := len(n.blocks) - 1; last >= 0 {
		n.lost = n.blocks[last].seq
	}
	n.stream, n.blocks = nil, nil
}
