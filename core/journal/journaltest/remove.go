package journaltest

import (
	"context"
	"errors"
	"io"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
)

// A removed journal is as if it had never been, its neighbour and what lies beside that stay.
func testRemove(t *testing.T, s journal.Store, reopen func() journal.Store) {
	r, ok := s.(journal.Remover)
	if !ok {
		t.Skip("the store removes no journals")
	}
	ctx := context.Background()
	j, other := Open(t, s, "j", 7, 0), Open(t, s, "other", 1, 0)
	Fill(t, j, 1, 100)
	Fill(t, other, 1, 3)
	if files, ok := s.(journal.Checkpoints); ok {
		err := files.CreateCheckpoint(ctx, "j", "c", func(w io.Writer) error { _, err := w.Write([]byte("x")); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Remove(ctx, "j"); !errors.Is(err, core.ErrBusy) {
		t.Fatalf("an open journal: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Remove(ctx, "j"); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen()
	if files, ok := s.(journal.Checkpoints); ok {
		if names, err := files.ListCheckpoints("j"); err != nil || len(names) > 0 {
			t.Errorf("checkpoints %v, %v", names, err)
		}
	}
	WantBounds(t, Open(t, s, "j", 1, 0), 1, 1)
	WantBounds(t, Open(t, s, "other", 1, 3), 1, 4)
}
