package mqtt

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"isthmus/adapters/ledger"
)

func readLedger(t *testing.T) ledger.Ledger {
	return ledger.Read(t, map[string]int{"feature": 4, "duty": 5})
}

var statement = regexp.MustCompile(`\[MQTT-([0-9.]+-[0-9]+)\]`)

// cites reads a comment: the version, then the numbers of its statements; a semicolon before the next version.
func cites(spec string) (ids []string) {
	for part := range strings.SplitSeq(spec, ";") {
		version, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		for _, m := range statement.FindAllStringSubmatch(part, -1) {
			ids = append(ids, version+" "+m[1])
		}
	}
	return ids
}

func TestLedgerReadsBothWays(t *testing.T) { readLedger(t).Check(t, cites) }

func TestSupportTableIsPrinted(t *testing.T) { ledger.Printed(t, "mqtt.md", supportTable(t)) }

func supportTable(t *testing.T) string {
	rows := readLedger(t)
	var b strings.Builder
	b.WriteString(supportHead)
	b.WriteString("| | 3.1 and 3.1.1 | 5 | |\n|---|---|---|---|\n")
	for _, f := range rows["feature"] {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f[0], f[1], f[2], f[3])
	}
	b.WriteString(rows.Open())
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
