// Package memory is the reference tenant of the metadata seam and everybody's test double.
package memory

import (
	"slices"
	"sync"

	"isthmus/core/meta"
)

// Store keeps records in maps. A closed Store can be used again, so that a test can restart an engine on it.
type Store struct {
	mu struct {
		sync.Mutex
		records map[meta.Bucket]map[string][]byte
		hook    func([]meta.Write) error
	}
}

// OnApply has f asked before each Apply, outside of all locks; its error fails the Apply. nil ends it.
func (s *Store) OnApply(f func([]meta.Write) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.hook = f
}

// New returns an empty Store.
func New() *Store {
	s := &Store{}
	s.mu.records = map[meta.Bucket]map[string][]byte{}
	for _, b := range meta.Buckets() {
		s.mu.records[b] = map[string][]byte{}
	}
	return s
}

// Load calls each for every record in key order.
func (s *Store) Load(b meta.Bucket, each func(string, []byte) error) error {
	type record struct {
		key   string
		value []byte
	}
	s.mu.Lock()
	all := make([]record, 0, len(s.mu.records[b]))
	for k, v := range s.mu.records[b] {
		all = append(all, record{k, v})
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b record) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	for _, r := range all {
		if err := each(r.key, r.value); err != nil {
			return err
		}
	}
	return nil
}

// Apply sets and deletes records.
func (s *Store) Apply(ws []meta.Write) error {
	s.mu.Lock()
	hook := s.mu.hook
	s.mu.Unlock()
	if hook != nil {
		if err := hook(ws); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range ws {
		if w.Value == nil {
			delete(s.mu.records[w.Bucket], w.Key)
			continue
		}
		s.mu.records[w.Bucket][w.Key] = slices.Clone(w.Value)
	}
	return nil
}

// Close does nothing.
func (s *Store) Close() error { return nil }
