package mqtt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/mqtt.md from the ledger")

// duty and feature are the rows of testdata/spec.txt.
type duty struct{ id, state, where, test, what string }
type feature struct{ name, v3, v5, note string }

func readLedger(t *testing.T) (duties []duty, features []feature) {
	text, err := os.ReadFile("testdata/spec.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "|")
		for j := range f {
			f[j] = strings.TrimSpace(f[j])
		}
		switch {
		case f[0] == "duty" && len(f) == 6:
			duties = append(duties, duty{f[1], f[2], f[3], f[4], f[5]})
		case f[0] == "feature" && len(f) == 5:
			features = append(features, feature{f[1], f[2], f[3], f[4]})
		default:
			t.Fatalf("testdata/spec.txt:%d: %q", i+1, line)
		}
	}
	return duties, features
}

var statement = regexp.MustCompile(`\[MQTT-([0-9.]+-[0-9]+)\]`)

// cited collects the statements of all Spec: comments of Go files, and the names of tests.
func cited(t *testing.T) (ids map[string]string, tests map[string]bool) {
	ids, tests = map[string]string{}, map[string]bool{}
	files, _ := filepath.Glob("*.go")
	more, _ := filepath.Glob("wire/*.go")
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, f := range append(files, more...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "_test.go") {
			for _, m := range name.FindAllStringSubmatch(string(text), -1) {
				tests[m[1]] = true
			}
		}
		for line := range strings.Lines(string(text)) {
			_, spec, ok := strings.Cut(line, "// Spec: ")
			if !ok {
				continue
			}
			for part := range strings.SplitSeq(spec, ";") {
				version, _, _ := strings.Cut(strings.TrimSpace(part), " ")
				for _, m := range statement.FindAllStringSubmatch(part, -1) {
					ids[version+" "+m[1]] = f
				}
			}
		}
	}
	return ids, tests
}

// The ledger and the code say the same: what a comment cites stands in the ledger, what the ledger calls done is in
// a file that exists and has a test that exists.
func TestLedgerReadsBothWays(t *testing.T) {
	duties, _ := readLedger(t)
	ids, tests := cited(t)
	known := map[string]bool{}
	for _, d := range duties {
		if known[d.id] {
			t.Errorf("%s stands twice", d.id)
		}
		known[d.id] = true
		switch d.state {
		case "no", "n.a.":
			continue
		case "yes", "partial":
		default:
			t.Errorf("%s: state %q", d.id, d.state)
		}
		if _, err := os.Stat(d.where); err != nil {
			t.Errorf("%s: %v", d.id, err)
		}
		if script, ok := strings.CutPrefix(d.test, "script "); ok {
			if _, err := os.Stat("testdata/scripts/" + script + ".txt"); err != nil {
				t.Errorf("%s: %v", d.id, err)
			}
		} else if !tests[d.test] {
			t.Errorf("%s: there is no %s", d.id, d.test)
		}
	}
	for id, file := range ids {
		if !known[id] {
			t.Errorf("%s is cited in %s and not in the ledger", id, file)
		}
	}
}

// The support table is printed, never typed.
func TestSupportTableIsPrinted(t *testing.T) {
	const path = "../../docs/mqtt.md"
	want := supportTable(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Fatalf("docs/mqtt.md is not what the ledger says (%v): run go test ./adapters/mqtt -run SupportTable -update", err)
	}
}

func supportTable(t *testing.T) string {
	duties, features := readLedger(t)
	var b strings.Builder
	b.WriteString(supportHead)
	b.WriteString("| | 3.1 and 3.1.1 | 5 | |\n|---|---|---|---|\n")
	for _, f := range features {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.name, f.v3, f.v5, f.note)
	}
	count := map[string]int{}
	for _, d := range duties {
		count[d.state]++
	}
	fmt.Fprintf(&b, "\nOf the server's duties that the ledger follows so far, %d are kept and tested, %d in part, %d not, and %d do not apply. Open:\n\n",
		count["yes"], count["partial"], count["no"], count["n.a."])
	for _, d := range duties {
		if d.state == "no" || d.state == "partial" {
			fmt.Fprintf(&b, "- %s (%s): %s\n", d.id, d.state, d.what)
		}
	}
	b.WriteString(limitsTable())
	return b.String()
}

const supportHead = `# MQTT

Printed from adapters/mqtt/testdata/spec.txt by a test; do not edit.

A publish is stored through its mapping and acknowledged when it is durable. Subscriptions are fed from the log. What is
not there yet is declined in the way each version has for it, so that stock clients still work.

`

// limitsTable lists the bounds of a listener with their defaults, and what happens at each.
func limitsTable() string {
	c := DefaultConfig()
	var b strings.Builder
	b.WriteString("\n## Limits\n\n| limit | default | at the limit |\n|---|---|---|\n")
	row := func(name string, value any, then string) { fmt.Fprintf(&b, "| %s | %v | %s |\n", name, value, then) }
	row("connections of a listener", c.Connections, "one more is closed at accept")
	row("time until CONNECT", c.ConnectTimeout, "closed")
	row("largest payload", fmt.Sprintf("%d MiB", c.MaxPayload>>20), "v5: 0x95, v3: closed")
	row("topic or filter", fmt.Sprintf("%d bytes, %d levels", c.MaxTopic, c.MaxLevels), "publish: v5 0x90, v3 closed; SUBACK 0x8F, v3 0x80")
	row("subscriptions of a client", c.MaxFilters, "SUBACK 0x97, v3 0x80")
	row("user properties of a packet", c.MaxUserProps, "0x97")
	row("publishes that wait for their PUBACK", c.ReceiveMaximum, "v5: 0x93; v3: the socket is not read until there is room")
	row("deliveries that wait for the client's PUBACK", fmt.Sprintf("%d, or the client's receive maximum", c.MaxInflight), "further ones queue")
	row("queued deliveries of plain subscriptions", fmt.Sprintf("%d, %d MiB", c.MaxQueued, c.MaxQueuedBytes>>20), "v5: 0x97; closed")
	row("messages of a group that a member holds", memberCredit, "the group gives to others")
	row("bytes the client has not read", fmt.Sprintf("%d MiB", c.MaxOutput>>20), "from half on QoS 0 is dropped and the rest queues; a client that goes on asking without reading is closed")
	return b.String()
}
