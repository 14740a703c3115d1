package pulsar

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/pulsar.md from the ledger")

// readLedger returns the rows of testdata/spec.txt by their kind.
func readLedger(t *testing.T) map[string][][]string {
	text, err := os.ReadFile("testdata/spec.txt")
	if err != nil {
		t.Fatal(err)
	}
	width := map[string]int{"feature": 4, "command": 3, "duty": 6}
	rows := map[string][][]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "|")
		for j := range f {
			f[j] = strings.TrimSpace(f[j])
		}
		if width[f[0]] != len(f) {
			t.Fatalf("testdata/spec.txt:%d: %q", i+1, line)
		}
		rows[f[0]] = append(rows[f[0]], f[1:])
	}
	return rows
}

// cited collects the ids of all Spec: comments, and the names of tests.
func cited(t *testing.T) (ids map[string]string, tests map[string]bool) {
	ids, tests = map[string]string{}, map[string]bool{}
	files, _ := filepath.Glob("*.go")
	more, _ := filepath.Glob("wire/*.go")
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		for line := range strings.Lines(string(text)) {
			_, id, ok := strings.Cut(line, "// Spec: "+"Pulsar ") // in two, or this line would cite itself
			if !ok {
				continue
			}
			if i := strings.IndexAny(id, ":;"); i >= 0 {
				id = id[:i]
			}
			ids[strings.TrimSpace(id)] = file
		}
	}
	return ids, tests
}

// The ledger and the code say the same: what a comment cites stands in the ledger; what the ledger calls done is cited, in
// a file that exists, with a test that exists.
func TestLedgerReadsBothWays(t *testing.T) {
	ids, tests := cited(t)
	known := map[string]bool{}
	for _, d := range readLedger(t)["duty"] {
		id, state, where, test := d[0], d[1], d[2], d[3]
		if known[id] {
			t.Errorf("%s stands twice", id)
		}
		known[id] = true
		if _, err := os.Stat(where); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		switch state {
		case "no":
		case "yes", "partial":
			if ids[id] == "" {
				t.Errorf("%s is not cited where it is kept", id)
			}
			if !tests[test] {
				t.Errorf("%s: there is no test %q", id, test)
			}
		default:
			t.Errorf("%s: state %q", id, state)
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
	const path = "../../docs/pulsar.md"
	want := supportTable(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Fatalf("docs/pulsar.md is not what the ledger says (%v): run go test ./adapters/pulsar -run SupportTable -update", err)
	}
}

const supportHead = `# Pulsar

Printed from adapters/pulsar/testdata/spec.txt by a test; do not edit.

Unmodified clients speak to the gateway as to a broker. A batch is one entry of the log, stored and delivered as it came;
messages of MQTT and RocketMQ producers reach Pulsar consumers one by one. Message ids: ledger = number of the partition + 1,
entry = offset, batch index = place in the batch; they stay valid across restarts and are never given twice.

`

func supportTable(t *testing.T) string {
	rows := readLedger(t)
	var b strings.Builder
	b.WriteString(supportHead)
	b.WriteString("| | | |\n|---|---|---|\n")
	for _, f := range rows["feature"] {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f[0], f[1], f[2])
	}
	b.WriteString("\n## Commands\n\n| a client sends | it gets |\n|---|---|\n")
	for _, c := range rows["command"] {
		fmt.Fprintf(&b, "| %s | %s |\n", c[0], c[1])
	}
	count := map[string]int{}
	for _, d := range rows["duty"] {
		count[d[1]]++
	}
	fmt.Fprintf(&b, "\nOf the broker's duties that the ledger follows, %d are kept and tested, %d in part, %d not. Open:\n\n", count["yes"], count["partial"], count["no"])
	for _, d := range rows["duty"] {
		if d[1] != "yes" {
			fmt.Fprintf(&b, "- %s (%s): %s\n", d[0], d[1], d[4])
		}
	}
	b.WriteString(limitsTable())
	b.WriteString("\n## Errors\n\n| failure | ServerError |\n|---|---|\n")
	for _, r := range table {
		fmt.Fprintf(&b, "| %s | %d |\n", r.err, r.code)
	}
	return b.String()
}

func limitsTable() string {
	c := NewConfig()
	var b strings.Builder
	b.WriteString("\n## Limits\n\n| limit | default | at the limit |\n|---|---|---|\n")
	row := func(name string, value any, then string) { fmt.Fprintf(&b, "| %s | %v | %s |\n", name, value, then) }
	row("connections of a listener", c.Connections, "one more is closed at accept")
	row("time until CONNECT, silence before a PING", c.KeepAlive, "closed after the first; after twice that without an answer")
	row("bytes of a frame before CONNECT is answered", fmt.Sprintf("%d KiB", handshakeLimit>>10), "closed")
	row("largest message", fmt.Sprintf("%d MiB", c.MaxMessageSize>>20), "clients are told; a frame more than 10 KiB larger closes the connection")
	row("publishes of a producer without a receipt", c.Pending, "the connection is not read until there is room")
	row("bytes that a client has not read", fmt.Sprintf("%d MiB, %d MiB", highWater>>20, c.OutBytes>>20), "its permits wait; at the second it is closed")
	row("probe of a connection that holds what another wants", c.Probe, "it is closed")
	row("closed producers whose late messages are swallowed", maxRemembered, "a message for an older one closes the connection")
	row("producers, and consumers, of a connection", maxRoles, "TooManyRequests")
	row("requests of a connection that wait for a probe", maxWaiting, "TooManyRequests")
	row("messages of a batch", maxBatch, "MetadataError")
	row("schemas", fmt.Sprintf("%d MiB", maxSchemaBytes>>20), "TooManyRequests")
	row("pattern of GET_TOPICS_OF_NAMESPACE", fmt.Sprintf("%d bytes", maxPattern), "the client filters")
	return b.String()
}
