// Package ledger holds an adapter to its testdata/spec.txt, for tests: what the protocol asks, whether it is kept, where,
// and which test proves it. The support table of docs/ is printed from it, never typed.
//
// A row is a line of fields between bars, its kind first. Rows of kind "duty" have: id as "// Spec:" comments cite it, state
// (yes, partial, no, n.a.), file that keeps it, test, the duty in our words. Other kinds are the adapter's own.
package ledger

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the support table from the ledger")

// Ledger is the rows of testdata/spec.txt by their kind, without the kind.
type Ledger map[string][][]string

// Read reads the ledger of the package under test. widths tells how many fields a row of each kind has besides the kind.
func Read(t testing.TB, widths map[string]int) Ledger {
	t.Helper()
	text, err := os.ReadFile("testdata/spec.txt")
	if err != nil {
		t.Fatal(err)
	}
	l := Ledger{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "|")
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		if w, known := widths[f[0]]; !known || w != len(f)-1 {
			t.Fatalf("testdata/spec.txt:%d: %q", n, line)
		}
		l[f[0]] = append(l[f[0]], f[1:])
	}
	return l
}

// Duty is a row of kind "duty".
type Duty struct{ ID, State, Where, Test, What string }

// Duties returns the rows of kind "duty".
func (l Ledger) Duties() []Duty {
	ds := make([]Duty, len(l["duty"]))
	for i, f := range l["duty"] {
		ds[i] = Duty{f[0], f[1], f[2], f[3], f[4]}
	}
	return ds
}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// cited collects what the "// Spec:" comments of the package and its wire cite, and the names of tests.
func cited(t testing.TB, ids func(spec string) []string) (found map[string]string, tests map[string]bool) {
	found, tests = map[string]string{}, map[string]bool{}
	files, _ := filepath.Glob("*.go")
	more, _ := filepath.Glob("wire/*.go")
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		for line := range strings.Lines(string(text)) {
			if _, spec, ok := strings.Cut(line, "// Spec: "); ok {
				for _, id := range ids(strings.TrimSpace(spec)) {
					found[id] = file
				}
			}
		}
	}
	return found, tests
}

// Check holds ledger and code to the same: what a comment cites stands in the ledger; what the ledger calls kept is cited,
// in a file that exists, and has a test that exists. A test "script NAME" is testdata/scripts/NAME.txt. ids reads what one
// comment cites.
func (l Ledger) Check(t *testing.T, ids func(spec string) []string) {
	found, tests := cited(t, ids)
	known := map[string]bool{}
	for _, d := range l.Duties() {
		if known[d.ID] {
			t.Errorf("%s stands twice", d.ID)
		}
		known[d.ID] = true
		switch d.State {
		case "no", "n.a.":
			continue
		case "yes", "partial":
		default:
			t.Errorf("%s: state %q", d.ID, d.State)
		}
		if _, err := os.Stat(d.Where); err != nil {
			t.Errorf("%s: %v", d.ID, err)
		}
		if found[d.ID] == "" {
			t.Errorf("%s is cited nowhere", d.ID)
		}
		if script, ok := strings.CutPrefix(d.Test, "script "); ok {
			if _, err := os.Stat("testdata/scripts/" + script + ".txt"); err != nil {
				t.Errorf("%s: %v", d.ID, err)
			}
		} else if !tests[d.Test] {
			t.Errorf("%s: there is no test %q", d.ID, d.Test)
		}
	}
	for id, file := range found {
		if !known[id] {
			t.Errorf("%s is cited in %s and not in the ledger", id, file)
		}
	}
}

// Open says how many duties are kept, and lists those that are not.
func (l Ledger) Open() string {
	var b strings.Builder
	count := map[string]int{}
	for _, d := range l.Duties() {
		count[d.State]++
	}
	fmt.Fprintf(&b, "\nOf the duties that the ledger follows, %d are kept and tested, %d in part, %d not, and %d do not apply. Open:\n\n",
		count["yes"], count["partial"], count["no"], count["n.a."])
	for _, d := range l.Duties() {
		if d.State == "no" || d.State == "partial" {
			fmt.Fprintf(&b, "- %s (%s): %s\n", d.ID, d.State, d.What)
		}
	}
	return b.String()
}

// Printed fails unless docs/NAME is what the ledger says; with -update it writes it.
func Printed(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Fatalf("docs/%s is not what the ledger says (%v): run go test -run SupportTable -update", name, err)
	}
}
