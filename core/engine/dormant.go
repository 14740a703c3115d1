package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// dormant is what the metadata holds of journals that do not run: at start-up all of them, later those of topics that were
// deleted. It is read once, or many journals would make start-up quadratic. Guarded by Engine.meta; start-up is alone.
type dormant struct {
	records map[string]meta.JournalRecord
	marks   map[string][]mark
	opened  map[string]opening // by start-up, for who asks next
}

type opening struct {
	journal journal.Journal
	err     error
}

func (d *dormant) load(m meta.Store) error {
	d.records, d.marks, d.opened = map[string]meta.JournalRecord{}, map[string][]mark{}, map[string]opening{}
	err := m.Load(meta.Journals, func(name string, v []byte) error {
		rec, err := meta.DecodeJournal(v)
		if err != nil {
			return fmt.Errorf("journal %s: %w", name, err)
		}
		d.records[name] = rec
		return nil
	})
	if err != nil {
		return fmt.Errorf("load journals: %w", err)
	}
	if err := m.Load(meta.Marks, d.loadMark); err != nil {
		return fmt.Errorf("load marks: %w", err)
	}
	for _, ms := range d.marks {
		slices.SortFunc(ms, func(a, b mark) int { return int(int64(a.seq) - int64(b.seq)) })
	}
	return nil
}

func (d *dormant) loadMark(key string, v []byte) error {
	name, at, ok := strings.Cut(key, separator)
	seq, err := strconv.ParseUint(at, 16, 64)
	if !ok || err != nil {
		return fmt.Errorf("mark %q: %w", key, errors.Join(core.ErrInvalid, err))
	}
	rec, err := meta.DecodeMark(v)
	if err != nil {
		return fmt.Errorf("mark %q: %w", key, err)
	}
	d.marks[name] = append(d.marks[name], mark{journal.Seq(seq), rec.Time, offsetMap(rec.Next), offsetMap(rec.Bytes)})
	return nil
}

// openAll opens journals for logOf to find: one transaction for all new epochs, then several at a time.
func (e *Engine) openAll(ctx context.Context, names []string) error {
	d := &e.dormant
	writes := make([]meta.Write, 0, len(names))
	for _, name := range names {
		writes = append(writes, d.raise(name))
	}
	if len(writes) == 0 {
		return nil
	}
	if err := e.cfg.Meta.Apply(writes); err != nil {
		return fmt.Errorf("epochs of journals: %w", err)
	}
	opened := make([]opening, len(names))
	var wg sync.WaitGroup
	room := make(chan struct{}, e.cfg.Openers)
	for i, name := range names {
		rec := d.records[name]
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			opened[i].journal, opened[i].err = e.cfg.Journals.Open(ctx, name, rec.Epoch, journal.Seq(rec.Durable))
		})
	}
	wg.Wait()
	for i, name := range names {
		d.opened[name] = opened[i]
	}
	return nil
}

// raise gives a journal its next epoch. Metadata holds it before the journal is fenced with it.
func (d *dormant) raise(name string) meta.Write {
	rec := d.records[name]
	rec.Epoch++
	d.records[name] = rec
	return meta.Write{Bucket: meta.Journals, Key: name, Value: rec.Encode()}
}

// open opens a journal that does not run, if start-up has not done so already.
func (e *Engine) open(ctx context.Context, name string) (journal.Journal, error) {
	d := &e.dormant
	if o, ok := d.opened[name]; ok {
		delete(d.opened, name)
		return o.journal, o.err
	}
	if err := e.cfg.Meta.Apply([]meta.Write{d.raise(name)}); err != nil {
		return nil, fmt.Errorf("epoch of journal %s: %w", name, err)
	}
	rec := d.records[name]
	return e.cfg.Journals.Open(ctx, name, rec.Epoch, journal.Seq(rec.Durable))
}

// close closes what start-up opened and nobody asked for.
func (d *dormant) close() error {
	var errs []error
	for _, o := range d.opened {
		if o.journal != nil {
			errs = append(errs, o.journal.Close())
		}
	}
	clear(d.opened)
	return errors.Join(errs...)
}
