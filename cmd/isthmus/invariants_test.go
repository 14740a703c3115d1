package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each of the ten invariants of docs/architecture.md has a test that names it: TestI1_…, TestI2_….
func TestEveryInvariantHasATest(t *testing.T) {
	root := filepath.Join("..", "..")
	name := regexp.MustCompile(`(?m)^func Test(I\d+)_`)
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		id := fmt.Sprint("I", i+1)
		if !found[id] {
			t.Errorf("no test names %s", id)
		}
		if !strings.Contains(string(page), "**"+id+"** ") {
			t.Errorf("docs/architecture.md does not state %s", id)
		}
	}
}
