package pulsar

import (
	"fmt"
	"strings"
	"testing"

	"isthmus/adapters/ledger"
)

func readLedger(t *testing.T) ledger.Ledger {
	return ledger.Read(t, map[string]int{"feature": 3, "command": 2, "duty": 5})
}

// cites reads a comment: the name of what the rule is about, up to the first colon.
func cites(spec string) []string {
	id, ok := strings.CutPrefix(spec, "Pulsar ")
	if !ok {
		return nil
	}
	if i := strings.IndexAny(id, ":;"); i >= 0 {
		id = id[:i]
	}
	return []string{strings.TrimSpace(id)}
}

func TestLedgerReadsBothWays(t *testing.T) { readLedger(t).Check(t, cites) }

func TestSupportTableIsPrinted(t *testing.T) { ledger.Printed(t, "pulsar.md", supportTable(t)) }

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
	b.WriteString(rows.Open())
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
