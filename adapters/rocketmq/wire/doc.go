// Package wire reads and writes the RocketMQ remoting protocol: frames, both header forms, the bodies and the layout of
// a stored message. It knows bytes only: no connection, no clock, no engine.
//
// Three words to know: a Frame is one length-prefixed command; a Header is its envelope with the ext fields; a Stored is
// one message as pull answers and queries carry it.
//
// The hot commands (send, pull, offsets) are scanned by hand without allocating. A JSON header is decoded in place: the
// scanner writes the unescaped text over the escaped one, so the frame's bytes must belong to the caller. Bodies that
// clients send seldom (heartbeat, locks) go through encoding/json, leniently, since several libraries write them.
//
// Limits are arguments. Nothing here allocates by a length it has not checked.
//
// Not supported: POP, inner batches (sysFlag 0x80), compressed batches.
package wire
