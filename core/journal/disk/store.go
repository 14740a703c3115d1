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
	dirs chan map[string]bool // one place: the directories that are there, durably; nil: not looked yet

	mu struct {
		sync.Mutex
		open    map[string]*Journal      // by name
		opening map[string]chan struct{} // closed when it is open, or could not be
	}
}

// New checks the options. It touches nothing yet.
func New(o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("disk journal: %w", err)
	}
	s := &Store{opt: o, dirs: make(chan map[string]bool, 1)}
	s.dirs <- nil
	s.mu.open, s.mu.opening = map[string]*Journal{}, map[string]chan struct{}{}
	return s, nil
}

// Open implements journal.Store. What it returns is a *Journal.
func (s *Store) Open(ctx context.Context, name string, epoch uint64, durable journal.Seq) (journal.Journal, error) {
	if name == "" {
		return nil, fmt.Errorf("open journal: empty name: %w", core.ErrInvalid)
	}
	if err := s.take(ctx, name); err != nil {
		return nil, err
	}
	defer s.leave(name)
	j, err := s.open(ctx, name, epoch, durable)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.open[name] = j
	return j, nil
}

// take waits until nobody else is opening a journal, and makes the caller the one who is.
func (s *Store) take(ctx context.Context, name string) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		busy := s.mu.opening[name]
		if busy == nil {
			s.mu.opening[name] = make(chan struct{})
		}
		s.mu.Unlock()
		if busy == nil {
			return nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (s *Store) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.mu.opening[name])
	delete(s.mu.opening, name)
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

// makeDir makes sure that a journal's directory is there, durably.
func (s *Store) makeDir(dir string) error {
	known := <-s.dirs
	defer func() { s.dirs <- known }()
	if known == nil {
		there, err := s.lookAround()
		if err != nil {
			return err
		}
		known = there
	}
	if known[dir] {
		return nil
	}
	if err := s.opt.FS.MkdirAll(dir); err != nil {
		return err
	}
	if err := s.opt.FS.SyncDir(s.opt.Dir); err != nil {
		return err
	}
	known[dir] = true
	return nil
}

// lookAround returns the directories that are there already. Whoever made them may have died before they were durable.
func (s *Store) lookAround() (map[string]bool, error) {
	if err := s.opt.FS.MkdirAll(s.opt.Dir); err != nil {
		return nil, err
	}
	err := s.opt.FS.SyncDir(filepath.Dir(s.opt.Dir))
	if err == nil {
		err = s.opt.FS.SyncDir(s.opt.Dir)
	}
	if err != nil {
		return nil, err
	}
	names, err := s.opt.FS.ReadDir(s.opt.Dir)
	known := map[string]bool{}
	for _, name := range names {
		known[filepath.Join(s.opt.Dir, name)] = true
	}
	return known, err
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
