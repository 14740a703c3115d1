// Package pulsar serves unmodified Apache Pulsar clients (binary protocol, versions up to 20) from the log engine.
//
// Start with server.go, then session.go: one goroutine reads a connection, parses every frame it has got, acts, and
// flushes once. A command is a file: connect, lookup, producer, send, subscribe, consumer, ack, seek …
//
// Words: a session is one connection; a producer and a consumer belong to a session under the client's number; a batch
// is one entry of the log, stored and sent as it came. Ledger id = partition number + 1, entry id = base offset,
// batch index = offset - base.
//
// Owners: the reader goroutine owns a session; what engine goroutines touch (the ring of pending receipts, what a
// consumer holds) is behind a leaf mutex of its own, and Out orders the bytes.
//
// Non-obvious: receipts leave in the order of sending, or the client drops the connection; a SEND after CLOSE_PRODUCER is
// swallowed; LOOKUP errors are answered inside the response; only commands that every client knows are ever sent.
//
// Not supported: exclusive producers, schema compatibility,
// transactions, topic watchers, TLS. docs/pulsar.md has the whole table.
package pulsar
