package memory

import (
	"context"
	"errors"
	"testing"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

func TestSuite(t *testing.T) {
	journaltest.Run(t, func(*testing.T) (journal.Store, func() journal.Store) {
		s := New()
		return s, func() journal.Store { return s }
	})
}

func TestModel(t *testing.T) {
	s := New()
	journaltest.Model(t, s, func() journal.Store { return s })
}

// A failed append is fatal to the handle, not to the data.
func TestFailures(t *testing.T) {
	full := errors.New("disk full")
	ctx := context.Background()
	for name, arrange := range map[string]func(*Store){
		"FailNext": func(s *Store) { s.FailNext("j", full) },
		"OnAppend": func(s *Store) {
			s.OnAppend(func(string, []byte) error {
				s.OnAppend(nil)
				return full
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			j := journaltest.Open(t, s, "j", 1, 0)
			journaltest.Fill(t, j, 1, 2)
			arrange(s)
			for range 2 {
				if _, err := j.Append(ctx, journaltest.Numbered(3)); !errors.Is(err, full) {
					t.Fatalf("got %v", err)
				}
			}
			journaltest.WantNumbered(t, j, 1, 2)
			j = journaltest.Open(t, s, "j", 1, 2)
			journaltest.Fill(t, j, 3, 4)
			journaltest.WantNumbered(t, j, 1, 4)
		})
	}
}

func TestThin(t *testing.T) {
	s := New()
	journaltest.Thin(t, s, func() journal.Store { return s }, func(journal.Journal) {})
}
