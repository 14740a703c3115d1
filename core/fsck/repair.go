package fsck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
	"isthmus/core/meta/bolt"
)

// margin is how far offsets jump where metadata was broken, so that what it said of them may be old.
const margin = 1 << 20

// Repair makes a data folder whole again, without what is broken. The report says what was found, and lost by it. A crash
// in the middle is no harm: do it again.
func Repair(ctx context.Context, dir string) (*Report, error) {
	x, err := examine(ctx, dir)
	if err == nil && x.out.Damaged() {
		err = x.repair()
	}
	if err != nil {
		return nil, fmt.Errorf("fsck %s: %w", dir, err)
	}
	return x.out, nil
}

func (x *examination) repair() error {
	// Files first: metadata must not say that something is repaired that is not.
	for _, l := range x.logs {
		if l.in.Whole() {
			continue
		}
		if err := x.store.Repair(x.ctx, l.in); err != nil {
			return err
		}
	}
	for _, path := range x.strange {
		if err := os.Rename(path, path+damagedExt); err != nil {
			return err
		}
	}
	file := filepath.Join(x.dir, metaName)
	if x.cat.damaged {
		if _, err := bolt.Repair(file); err != nil {
			return err
		}
	}
	store, err := bolt.Open(file)
	if err != nil {
		return err
	}
	var ws []meta.Write
	for _, l := range x.logs {
		ws = append(ws, x.records(l)...)
	}
	ws = append(ws, x.views()...)
	if err := errors.Join(store.Apply(ws), store.Close()); err != nil {
		return err
	}
	x.out.Repaired = true
	return nil
}

// records are those of a journal whose end, or whose record, was lost: it goes on behind every offset that can have been
// given.
func (x *examination) records(l *logState) []meta.Write {
	if !l.lossy && l.known && !x.cat.damaged {
		return nil
	}
	rec, limits := x.cat.journals[l.name], x.cat.limits[l.name]
	given := map[uint32]core.Offset{}
	for _, list := range [][]meta.PartitionOffset{limits.Limits, limits.Floors, rec.Next} {
		for _, o := range list {
			given[o.Partition] = max(given[o.Partition], o.Offset)
		}
	}
	for n, o := range l.next {
		given[n] = max(given[n], o)
	}
	if x.cat.damaged {
		for n := range given {
			given[n] += margin
		}
	}
	limits.Lossy, limits.Limits = true, offsets(given)
	ws := []meta.Write{{Bucket: meta.Limits, Key: l.name, Value: limits.Encode()}}

	rec.Epoch, rec.Time = max(rec.Epoch, l.in.Epoch), max(rec.Time, l.time)
	rec.Durable, rec.Next = uint64(l.in.Next-1), offsets(l.next)
	ws = append(ws, meta.Write{Bucket: meta.Journals, Key: l.name, Value: rec.Encode()})
	if _, marked := x.cat.marks[l.name]; !marked && l.in.First > 1 {
		m := meta.MarkRecord{Next: offsets(l.first)}
		ws = append(ws, meta.Write{Bucket: meta.Marks, Key: fmt.Sprintf("%s%s%016x", l.name, separator, uint64(l.in.First)), Value: m.Encode()})
	}
	return ws
}

// views lets those whose checkpoints are broken be made again from what the journal holds.
func (x *examination) views() (ws []meta.Write) {
	for _, key := range x.broken {
		name, _, _ := strings.Cut(key, separator)
		rec, first := x.cat.checkpoints[key], journal.Seq(1)
		for _, l := range x.logs {
			if l.name == name {
				first = l.in.First
			}
		}
		rec.Seq, rec.Files = uint64(first-1), nil
		ws = append(ws, meta.Write{Bucket: meta.Checkpoints, Key: key, Value: meta.EncodeJSON(rec)})
	}
	return ws
}

func offsets(m map[uint32]core.Offset) (ps []meta.PartitionOffset) {
	for n, o := range m {
		ps = append(ps, meta.PartitionOffset{Partition: n, Offset: o})
	}
	slices.SortFunc(ps, func(a, b meta.PartitionOffset) int { return cmp.Compare(a.Partition, b.Partition) })
	return ps
}
