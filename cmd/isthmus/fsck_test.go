package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/core/fsck"
	"isthmus/core/meta"
	"isthmus/core/meta/bolt"
)

func run1(args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = execute(args, &o, &e)
	return status, o.String(), e.String()
}

func TestFsckSaysWhatIsDamagedByItsStatus(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if status, _, errs := run1("fsck", dir); status != 2 || !strings.Contains(errs, dir) {
		t.Fatalf("no folder: %d %s", status, errs)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("fsck makes the folder that it looks for")
	}
	db := filepath.Join(dir, "meta.db")
	s, err := bolt.Open(db)
	if err != nil {
		t.Fatal(err)
	}
	j := meta.JournalRecord{Epoch: 1, Durable: 7}
	if err := s.Apply([]meta.Write{{Bucket: meta.Journals, Key: "small-0", Value: j.Encode()}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	release, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if status, _, errs := run1("fsck", "--repair", dir); status != 2 || !strings.Contains(errs, "in use") {
		t.Fatalf("in use: %d %s", status, errs)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}

	status, out, _ := run1("fsck", dir)
	if status != 1 || !strings.Contains(out, "blocks 1 to 7") {
		t.Fatalf("a journal without files: %d %s", status, out)
	}
	status, out, _ = run1("fsck", "-o", "json", dir)
	var r fsck.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != 1 || len(r.Problems) != 1 || r.Problems[0].To != 8 {
		t.Fatalf("json: %d %v %s", status, err, out)
	}
	if status, out, errs := run1("fsck", "--repair", dir); status != 0 || !strings.Contains(out, "repaired") {
		t.Fatalf("repair: %d %s %s", status, out, errs)
	}
	if status, out, errs := run1("fsck", dir); status != 0 || !strings.Contains(out, "whole") {
		t.Fatalf("after the repair: %d %s %s", status, out, errs)
	}
}
