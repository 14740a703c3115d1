package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rule says what the packages under from may import of ours, and which of the standard library they may not.
type rule struct {
	from    string   // a package, or a tree when it ends with /...
	may     []string // packages or trees of ours; what is not listed is forbidden
	not     []string // packages of the standard library
	because string
}

// The first rule that matches a package is its rule. Tests may import more: a fake worth having is a real tenant.
var rules = []rule{
	{"isthmus/core", nil, []string{"net", "os", "sync", "context"}, "the language stands alone"},
	{"isthmus/core/dispatch", []string{"isthmus/core"}, []string{"net", "os", "sync", "time", "context"}, "pure states: scripts can test them, time is an argument"},
	{"isthmus/core/parked", []string{"isthmus/core"}, []string{"net", "os", "sync", "time", "context"}, "a pure index: scripts can test it, time is an argument"},
	{"isthmus/core/auth", []string{"isthmus/core"}, []string{"net", "os"}, "a seam, asked by every adapter"},
	{"isthmus/core/journal", []string{"isthmus/core"}, []string{"net", "os"}, "a seam: it knows none of its tenants"},
	{"isthmus/core/journal/disk/faultfs", []string{"isthmus/core/journal/disk"}, []string{"os"}, "for tests: a file system in memory, as the disk tenant wants one"},
	{"isthmus/core/journal/...", []string{"isthmus/core", "isthmus/core/journal"}, nil, "a tenant knows the seam, not the engine or another tenant"},
	{"isthmus/core/meta", []string{"isthmus/core"}, []string{"net", "os"}, "a seam: it knows none of its tenants"},
	{"isthmus/core/meta/...", []string{"isthmus/core", "isthmus/core/meta"}, nil, "a tenant knows the seam, not the engine or another tenant"},
	{"isthmus/core/fsck", []string{"isthmus/core", "isthmus/core/journal", "isthmus/core/journal/disk", "isthmus/core/meta", "isthmus/core/meta/bolt"}, []string{"net"}, "a data folder as the default tenants lay it out"},
	{"isthmus/core/engine", []string{"isthmus/core", "isthmus/core/dispatch", "isthmus/core/journal", "isthmus/core/meta", "isthmus/core/parked"}, []string{"net", "os"}, "the engine meets seams; which tenant it gets is decided in cmd"},
	{"isthmus/core/engine/enginetest", []string{"isthmus/core/..."}, nil, "an engine in memory for other rooms' tests"},
	{"isthmus/routing", []string{"isthmus/core"}, []string{"net", "os", "sync", "time", "context"}, "a pure table: no I/O, no goroutine, no clock"},
	{"isthmus/adapters/http", nil, nil, "it serves what it is handed and knows no protocol"},
	{"isthmus/adapters/http/api", []string{"isthmus/core", "isthmus/core/engine", "isthmus/core/auth"}, []string{"os"}, "our own protocol: the engine in JSON"},
	{"isthmus/adapters/ledger", nil, nil, "for tests: it reads the source of whoever calls it"},
	{"isthmus/adapters/serve", nil, nil, "sockets without protocols"},
	{"isthmus/adapters/mqtt/wire", nil, []string{"net", "os", "sync", "time", "context"}, "a codec knows no connection"},
	{"isthmus/adapters/pulsar/wire", nil, []string{"net", "os", "sync", "time", "context"}, "a codec knows no connection"},
	{"isthmus/adapters/rocketmq/wire", nil, []string{"net", "os", "sync", "time", "context"}, "a codec knows no connection"},
	{"isthmus/adapters/mqtt/...", append([]string{"isthmus/adapters/mqtt/...", "isthmus/routing"}, adapter...), nil, "no door between adapters, and none to a journal"},
	{"isthmus/adapters/pulsar/...", append([]string{"isthmus/adapters/pulsar/..."}, adapter...), nil, "no door between adapters, and none to a journal"},
	{"isthmus/adapters/rocketmq/...", append([]string{"isthmus/adapters/rocketmq/..."}, adapter...), nil, "no door between adapters, and none to a journal"},
	{"isthmus/cmd/isthmus", []string{"isthmus/core/...", "isthmus/routing", "isthmus/adapters/...", "isthmus/bridge/..."}, nil, "the composition root knows everyone"},
	{"isthmus/e2e/...", []string{"isthmus/e2e/..."}, nil, "it speaks as a client would, to the binary"},
	{"isthmus/e2e", []string{"isthmus/e2e/..."}, nil, "it speaks as a client would, to the binary"},
}

var adapter = []string{"isthmus/core", "isthmus/core/engine", "isthmus/core/auth", "isthmus/adapters/serve", "isthmus/adapters/ledger"}

type pkg struct {
	ImportPath, Name, Doc string
	Imports, GoFiles      []string
}

func packages(t *testing.T) (ps []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports,GoFiles", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

func within(path, tree string) bool {
	root, isTree := strings.CutSuffix(tree, "/...")
	return path == root && !isTree || isTree && (strings.HasPrefix(path, root+"/") || path == root)
}

func TestImportsPointOneWay(t *testing.T) {
	ps := packages(t)
	if len(ps) < 15 {
		t.Fatalf("only %d packages", len(ps))
	}
	for _, p := range ps {
		i := slices.IndexFunc(rules, func(r rule) bool { return within(p.ImportPath, r.from) })
		if i < 0 {
			t.Errorf("%s has no rule: which room is it, and what may it know?", p.ImportPath)
			continue
		}
		r := rules[i]
		for _, imported := range p.Imports {
			ours := strings.HasPrefix(imported, "isthmus/")
			if ours && !slices.ContainsFunc(r.may, func(tree string) bool { return within(imported, tree) }) ||
				slices.Contains(r.not, imported) {
				t.Errorf("%s imports %s, but %s", p.ImportPath, imported, r.because)
			}
		}
	}
}

func TestEveryPackageIntroducesItself(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// Every direct dependency says why it is there.
func TestDependenciesHaveReasons(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	inRequire := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "require ("):
			inRequire = true
		case line == ")":
			inRequire = false
		case inRequire && line != "" && !strings.HasPrefix(line, "//") && !strings.Contains(line, "//"):
			t.Errorf("go.mod: no reason beside %s", line)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// What a document points at is there.
func TestDocumentsPointSomewhere(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
		}
	}
}
