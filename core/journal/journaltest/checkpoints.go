package journaltest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
)

// checkpointsOf is what the store offers; a tenant without them is not asked.
func checkpointsOf(t *testing.T, s journal.Store) journal.Checkpoints {
	t.Helper()
	c, ok := s.(journal.Checkpoints)
	if !ok {
		t.Skip("no checkpoints")
	}
	return c
}

// WriteCheckpoint makes a checkpoint file of some text.
func WriteCheckpoint(c journal.Checkpoints, name, file, text string) error {
	return c.CreateCheckpoint(context.Background(), name, file, func(w io.Writer) error {
		for len(text) > 0 { // in pieces, as a view would
			n := min(len(text), 100_000)
			if _, err := io.WriteString(w, text[:n]); err != nil {
				return err
			}
			text = text[n:]
		}
		return nil
	})
}

// ReadCheckpoint returns what is in a checkpoint file.
func ReadCheckpoint(c journal.Checkpoints, name, file string) (string, error) {
	r, err := c.OpenCheckpoint(name, file)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

func wantCheckpoints(t *testing.T, c journal.Checkpoints, name string, want ...string) {
	t.Helper()
	got, err := c.ListCheckpoints(name)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("checkpoints of %s: %q, %v; want %q", name, got, err, want)
	}
}

func testCheckpoints(t *testing.T, s journal.Store, reopen func() journal.Store) {
	c := checkpointsOf(t, s)
	wantCheckpoints(t, c, "j")
	j, other := Open(t, s, "j", 1, 0), Open(t, s, "J", 1, 0)
	Fill(t, j, 1, 3)
	big := strings.Repeat("a million items ", 100_000)
	for file, text := range map[string]string{"dedup-2": big, "dedup-1": "", "parked-1": "one"} {
		if err := WriteCheckpoint(c, "j", file, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteCheckpoint(c, "j", "parked-1", "another one"); err != nil {
		t.Fatal(err)
	}
	if err := WriteCheckpoint(c, "J", "dedup-2", "of the other journal"); err != nil {
		t.Fatal(err)
	}
	check := func(c journal.Checkpoints) {
		t.Helper()
		wantCheckpoints(t, c, "j", "dedup-1", "dedup-2", "parked-1")
		for file, want := range map[string]string{"dedup-2": big, "dedup-1": "", "parked-1": "another one"} {
			if got, err := ReadCheckpoint(c, "j", file); err != nil || got != want {
				t.Fatalf("%s: %d bytes, %v; want %d", file, len(got), err, len(want))
			}
		}
	}
	check(c)
	j.Close()
	other.Close()
	s = reopen()
	c = checkpointsOf(t, s)
	check(c)
	j = Open(t, s, "j", 1, 3)
	check(c)
	WantNumbered(t, j, 1, 3)
	for range 2 {
		if err := c.RemoveCheckpoint("j", "dedup-2"); err != nil {
			t.Fatal(err)
		}
	}
	wantCheckpoints(t, c, "j", "dedup-1", "parked-1")
	if got, err := ReadCheckpoint(c, "j", "dedup-2"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a removed one: %q, %v", got, err)
	}
	if got, err := ReadCheckpoint(c, "J", "dedup-2"); err != nil || got != "of the other journal" {
		t.Fatalf("of another journal: %q, %v", got, err)
	}
}

// What fails half way leaves nothing, or what was there before.
func testCheckpointFails(t *testing.T, s journal.Store, reopen func() journal.Store) {
	c := checkpointsOf(t, s)
	j := Open(t, s, "j", 1, 0)
	if err := WriteCheckpoint(c, "j", "old", "whole"); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("view is broken")
	for _, file := range []string{"new", "old"} {
		err := c.CreateCheckpoint(context.Background(), "j", file, func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Repeat("half ", 100_000))
			return errors.Join(err, broken)
		})
		if !errors.Is(err, broken) {
			t.Fatalf("%s: %v", file, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.CreateCheckpoint(ended, "j", "new", func(io.Writer) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	for _, file := range []string{"", "a/b", "..", "A", "x.tmp", "ü", strings.Repeat("x", 101)} {
		if err := WriteCheckpoint(c, "j", file, "x"); !errors.Is(err, core.ErrInvalid) {
			t.Fatalf("name %q: %v", file, err)
		}
	}
	j.Close()
	c = checkpointsOf(t, reopen())
	wantCheckpoints(t, c, "j", "old")
	if got, err := ReadCheckpoint(c, "j", "old"); err != nil || got != "whole" {
		t.Fatalf("%q, %v", got, err)
	}
}
