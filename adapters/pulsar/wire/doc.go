// Package wire reads and writes Pulsar's binary protocol: frames, commands, message metadata.
//
// Words: a frame is what the length prefix spans; a command is the protobuf message in it; a payload is what follows
// the command of SEND and MESSAGE.
//
// The protobuf messages are written by hand. Cold commands name each field once, in a fields method that both reads
// and writes; the hot ones (SEND, SEND_RECEIPT, MESSAGE, ACK, FLOW) and the message metadata have their own code and
// allocate nothing. Parsed byte slices are views into the frame.
//
// Non-obvious: protobuf 2 presence matters (a batch of one message differs from a plain message), so some fields have a
// Has twin. Unknown fields are skipped. A stored message is never parsed and written again: unknown fields would get lost.
//
// Not supported: transactions, topic watchers, scalable topics, proxying; their commands are recognised by number only.
package wire
