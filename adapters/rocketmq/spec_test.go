package rocketmq

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"isthmus/adapters/ledger"
)

func readLedger(t *testing.T) ledger.Ledger {
	return ledger.Read(t, map[string]int{"feature": 3, "duty": 5})
}

var (
	statement = regexp.MustCompile(`^(S3\.\d+|I\d+)\b`)
	constant  = regexp.MustCompile(`^(\w+\.)?([A-Z0-9_]+=\d+)$`)
	class     = regexp.MustCompile(`^[A-Z]\w+`)
	beside    = regexp.MustCompile(`@5\.x|\([^)]*\)`)
)

// cites reads what a Spec: comment cites: RequestCode.NAME=1, NAME=2; Class.method; S3.1.
func cites(spec string) (out []string) {
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

func TestLedgerReadsBothWays(t *testing.T) { readLedger(t).Check(t, cites) }

// Every code of the dispatch table is in the ledger as kept, and no other is but the broker's own calls.
func TestDispatchIsTheLedger(t *testing.T) {
	kept := map[string]string{}
	for _, d := range readLedger(t).Duties() {
		if _, n, ok := strings.Cut(d.ID, "="); ok && strings.HasPrefix(d.ID, "RequestCode.") {
			kept[n] = d.ID + " " + d.Where
		}
	}
	for code := range int32(1000) {
		row, listed := kept[fmt.Sprint(code)]
		served := handlerOf(code) != nil
		if served != (listed && !strings.HasSuffix(row, " ") && !strings.Contains(row, "NOTIFY_CONSUMER_IDS_CHANGED") && !strings.Contains(row, "CHECK_TRANSACTION_STATE")) {
			t.Errorf("code %d: served %v, ledger %q", code, served, row)
		}
	}
}

func TestSupportTableIsPrinted(t *testing.T) { ledger.Printed(t, "rocketmq.md", supportTable(t)) }

func supportTable(t *testing.T) string {
	rows := readLedger(t)
	var b strings.Builder
	b.WriteString(supportHead)
	b.WriteString("| | | |\n|---|---|---|\n")
	for _, f := range rows["feature"] {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f[0], f[1], f[2])
	}
	b.WriteString("\n## Requests\n\nAny other request is answered with code 3.\n\n| code | name | | |\n|---|---|---|---|\n")
	for _, d := range rows.Duties() {
		if name, ok := strings.CutPrefix(d.ID, "RequestCode."); ok {
			name, n, _ := strings.Cut(name, "=")
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", n, name, d.State, d.What)
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
- A group begins with the first heartbeat that names the topic, or with the topic's first message where the topic came
  later, and its place is kept from then on. The original
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
