package disk

import (
	"encoding/binary"
	"fmt"

	"isthmus/core/journal"
)

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// records walks the records of a segment, and goes on behind what is broken. lossy: something is.
func (in *inspection) records(f File, x *inspected) (lossy bool, err error) {
	s := x.segment
	limit := s.capacity - footerSize
	if s.sealed {
		limit = s.end
	}
	// Any later Seq is a record here: what lies between is lost, or was thinned away.
	loose := &segment{path: s.path, generation: s.generation, thin: true, next: ^journal.Seq(0)}
	w := window{f: f, chunk: scanChunk, limit: max(limit, 0)}
	seq := s.base
	for pos := int64(headerSize); pos+frameHeader <= limit; {
		if err := in.ctx.Err(); err != nil {
			return lossy, err
		}
		raw, size, why, err := w.record(loose, pos, seq)
		if err != nil {
			return lossy, err
		}
		if why == "" {
			if w.seq > seq && !s.thin {
				why = fmt.Sprintf("block %d follows", w.seq)
				in.found(Finding{File: s.path, Position: pos, What: why, From: seq, To: w.seq})
				lossy = true
			}
			b, err := journal.Header(raw)
			if err != nil {
				in.found(Finding{File: s.path, Position: pos, What: err.Error(), From: w.seq, To: w.seq + 1})
				lossy, seq, pos = true, w.seq+1, pos+size
				continue
			}
			x.spots = append(x.spots, spot{w.seq, pos, size})
			if err := in.each(journal.Record{Seq: w.seq, Time: b.Time, Block: raw}, in.lost); err != nil {
				return lossy, err
			}
			in.lost = false
			seq, pos = w.seq+1, pos+size
			s.end = max(s.end, pos)
			continue
		}
		at, found, err := w.after(loose, pos+8, seq)
		if err != nil {
			return lossy, err
		}
		if found == 0 {
			return in.tail(x, pos, seq, why) || lossy, nil
		}
		in.found(Finding{File: s.path, Position: pos, What: why, From: seq, To: found})
		lossy, pos, seq = true, at, found
	}
	return lossy, nil
}

// after looks for a whole record from pos on.
func (w *window) after(s *segment, pos int64, least journal.Seq) (at int64, seq journal.Seq, err error) {
	for pos+frameHeader <= w.limit {
		b, err := w.get(pos, min(w.limit-pos, scanChunk))
		if err != nil {
			return 0, 0, err
		}
		i := nextGeneration(b, s.generation)
		if i < 0 {
			pos += max(8, (int64(len(b))-frameHeader)&^7)
			continue
		}
		pos += int64(i)
		if _, _, why, err := w.record(s, pos, least); err != nil || why == "" {
			return pos, w.seq, err
		}
		pos += 8
	}
	return 0, 0, nil
}

// tail judges the end of the whole records: what comes after is no damage in a segment that is not sealed.
func (in *inspection) tail(x *inspected, pos int64, seq journal.Seq, why string) (lossy bool) {
	switch {
	case x.sealed:
		in.found(Finding{File: x.path, Position: pos, What: why, From: seq, To: x.next})
		return true
	case why != whyNothing && seq > in.durable:
		in.found(Finding{File: x.path, Position: pos, What: "torn tail, the next start cuts it", Harmless: true})
	}
	x.end = pos
	return false
}
