package disk

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"isthmus/core"
	"isthmus/core/journal"
)

// Store opens journals below one directory, which is its own: the owner of the data directory sees to
// it that no second process works there.
type Store struct {
	opt  Options
	turn chan struct{} // held while a journal is being opened
	made bool          // Dir is there, durably; owned by whoever has the turn

	mu struct {
		sync.Mutex
		open map[string]*Journal // by name
	}
}

// New checks the options. It touches nothing yet.
func New(o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("disk journal: %w", err)
	}
	s := &Store{opt: o, turn: make(chan struct{}, 1)}
	s.mu.open = map[string]*Journal{}
	return s, nil
}

// Open implements journal.Store. What it returns is a *Journal.
func (s *Store) Open(ctx context.Context, name string, epoch uint64, durable journal.Seq) (journal.Journal, error) {
	if name == "" {
		return nil, fmt.Errorf("open journal: empty name: %w", core.ErrInvalid)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	j, err := s.open(ctx, name, epoch, durable)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.open[name] = j
	return j, nil
}

func (s *Store) open(ctx context.Context, name string, epoch uint64, durable journal.Seq) (*Journal, error) {
	dir := filepath.Join(s.opt.Dir, escape(name))
	if err := s.makeDir(dir); err != nil {
		return nil, err
	}
	if err := raiseFence(s.opt.FS, dir, epoch); err != nil {
		return nil, err
	}
	if old := s.opened(name); old != nil {
		old.fence()
	}
	r := &recovery{opt: s.opt, dir: dir, durable: durable}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return newJournal(s, name, dir, epoch, r), nil
}

func (s *Store) makeDir(dir string) error {
	if err := s.opt.FS.MkdirAll(dir); err != nil {
		return err
	}
	if !s.made {
		if err := s.opt.FS.SyncDir(filepath.Dir(s.opt.Dir)); err != nil {
			return err
		}
		s.made = true
	}
	return s.opt.FS.SyncDir(s.opt.Dir)
}

func (s *Store) opened(name string) *Journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.open[name]
}

func (s *Store) forget(j *Journal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.open[j.name] == j {
		delete(s.mu.open, j.name)
	}
}
