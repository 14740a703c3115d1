package main

import (
	"errors"
	"path/filepath"
	"testing"

	"isthmus/core"
)

func TestADataFolderHasOneOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	release, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockDataDir(dir); !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("a second owner: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, err = lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}
