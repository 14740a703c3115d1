package rocketmq

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/rocketmq.md from the ledger")

// duty and feature are the rows of testdata/spec.txt.
type duty struct{ id, state, where, test, what string }
type feature struct{ name, state, note string }

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
		case f[0] == "feature" && len(f) == 4:
			features = append(features, feature{f[1], f[2], f[3]})
		default:
			t.Fatalf("testdata/spec.txt:%d: %q", i+1, line)
		}
	}
	return duties, features
}

var (
	statement = regexp.MustCompile(`^(S3\.\d+|I\d+)\b`)
	constant  = regexp.MustCompile(`^(\w+\.)?([A-Z0-9_]+=\d+)$`)
	class     = regexp.MustCompile(`^[A-Z]\w+`)
	beside    = regexp.MustCompile(`@5\.x|\([^)]*\)`)
	testName  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// ids reads what a Spec: comment cites: RequestCode.NAME=1, NAME=2; Class.method; S3.1.
func ids(spec string) (out []string) {
	for part := range strings.SplitSeq(beside.ReplaceAllString(spec, ""), ";") {
		part, protocol := strings.CutPrefix(strings.TrimSpace(part), "RocketMQ ")
		prefix := ""
		for token := range strings.SplitSeq(part, ",") {
			token = strings.TrimSpace(token)
			if m := statement.FindString(token); m != "" {
				out = append(out, m)
			} else if m := constant.FindStringSubmatch(token); m != nil {
				if m[1] != "" {
					prefix = m[1]
				}
				out = append(out, prefix+m[2])
			} else if m := class.FindString(token); m != "" && (protocol || len(out) > 0) && !strings.Contains(token, " ") {
				out = append(out, m)
			}
		}
	}
	return out
}

func cited(t *testing.T) (found map[string]string, tests map[string]bool) {
	found, tests = map[string]string{}, map[string]bool{}
	files, _ := filepath.Glob("*.go")
	more, _ := filepath.Glob("wire/*.go")
	for _, f := range append(files, more...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		for line := range strings.Lines(string(text)) {
			if _, spec, ok := strings.Cut(line, "// Spec: "); ok {
				for _, id := range ids(strings.TrimSpace(spec)) {
					found[id] = f
				}
			}
		}
	}
	return found, tests
}

// The ledger and the code say the same: what a comment cites stands in the ledger; what the ledger calls kept is cited
// somewhere, in a file that exists, and has a test that exists.
func TestLedgerReadsBothWays(t *testing.T) {
	duties, _ := readLedger(t)
	found, tests := cited(t)
	known := map[string]bool{}
	for _, d := range duties {
		if known[d.id] {
			t.Errorf("%s stands twice", d.id)
		}
		known[d.id] = true
		switch d.state {
		case "no":
			continue
		case "yes", "partial":
		default:
			t.Errorf("%s: state %q", d.id, d.state)
		}
		if _, err := os.Stat(d.where); err != nil {
			t.Errorf("%s: %v", d.id, err)
		}
		if !tests[d.test] {
			t.Errorf("%s: there is no %s", d.id, d.test)
		}
		if found[d.id] == "" {
			t.Errorf("%s is cited nowhere", d.id)
		}
	}
	for id, file := range found {
		if !known[id] {
			t.Errorf("%s is cited in %s and not in the ledger", id, file)
		}
	}
}

// Every code of the dispatch table is in the ledger as kept, and no other is.
func TestDispatchIsTheLedger(t *testing.T) {
	duties, _ := readLedger(t)
	kept := map[string]string{}
	for _, d := range duties {
		if _, n, ok := strings.Cut(d.id, "="); ok && strings.HasPrefix(d.id, "RequestCode.") {
			kept[n] = d.id + " " + d.where
		}
	}
	for code := range int32(1000) {
		row, listed := kept[fmt.Sprint(code)]
		served := handlerOf(code) != nil
		if served != (listed && !strings.HasSuffix(row, " ") && !strings.Contains(row, "NOTIFY_CONSUMER_IDS_CHANGED")) {
			t.Errorf("code %d: served %v, ledger %q", code, served, row)
		}
	}
}

// The support table is printed, never typed.
func TestSupportTableIsPrinted(t *testing.T) {
	const path = "../../docs/rocketmq.md"
	want := supportTable(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Fatalf("docs/rocketmq.md is not what the ledger says (%v): run go test ./adapters/rocketmq -run SupportTable -update", err)
	}
}

func supportTable(t *testing.T) string {
	duties, features := readLedger(t)
	var b strings.Builder
	b.WriteString(supportHead)
	b.WriteString("| | | |\n|---|---|---|\n")
	for _, f := range features {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.name, f.state, f.note)
	}
	b.WriteString("\n## Requests\n\nAny other request is answered with code 3.\n\n| code | name | | |\n|---|---|---|---|\n")
	for _, d := range duties {
		if name, ok := strings.CutPrefix(d.id, "RequestCode."); ok {
			name, n, _ := strings.Cut(name, "=")
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", n, name, d.state, d.what)
		}
	}
	fmt.Fprintf(&b, supportTail, maxMessages, maxBytes>>10, maxHeld, maxInflated>>20, outLimit>>20)
	return b.String()
}

const supportHead = `# RocketMQ

Printed from adapters/rocketmq/testdata/spec.txt by a test; do not edit.

Classic clients (remoting protocol: Java 4 and 5, Go v2, C++) find a name server and one broker, ` + "`isthmus-0`" + `. A topic's
partitions are its queues; an unpartitioned topic has one. A topic is named as it is in the default tenant and namespace,
` + "`namespace%topic`" + ` in another namespace, and by ` + "`names: { rocketmq: … }`" + ` wherever else it is.

`

const supportTail = `
## Worth knowing

- A send result means that the message is on the disk. A client that gets none sends again, and the message is there
  twice: as with the original broker, that is not noticed here.
- A topic that a producer is first to send to gets ` + "`rocketmq_queues`" + ` queues. Until its next look at the route, at most 30 s
  later, that producer uses the first four.
- A consumer whose topic does not exist waits for it (Java), or does not start (Go): consumers create nothing.
- A group begins with the first heartbeat that names the topic, and its place is kept from then on. The original
  broker lets the client look the end up later, and what comes in between is missed.
- A member that disconnects leaves its groups at once. One that hangs leaves after 120 s without a heartbeat.
- The Go client does not unlock a queue that it gives up. The gateway sees from its next list of locks, within 20 s, that
  it has done so; a new orderly member starts then, instead of after the minute that a lock lasts.
- After a restart of the gateway, members known before count for a minute, so the first to come back does not take all
  queues. If some never come back, their queues wait that long.
- An answer to a pull has at most %d messages and about %d KiB, but always one message. A connection may have %d pulls
  waiting. A compressed body may inflate to %d MiB for consumers of other protocols. A client that leaves %d MiB of
  answers unread is closed.
- Messages of other protocols carry a UNIQ_KEY made of their place, their key as KEYS, ` + "`__SHARDINGKEY`" + ` and ` + "`SHARDING_KEY`" + `,
  and their properties, without reserved names and with blanks for the bytes 1 and 2. See [crossings](crossings.md).
`
