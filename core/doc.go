// Package core is the language of Isthmus: Topic, Partition, Message, Entry, Offset, Group, Consumer and the
// error sentinels. Every other room speaks it; it imports nothing of ours, starts nothing and owns nothing.
//
// Three words to know:
//
//   - a Message is what an application sent, and has one dense Offset in its partition;
//   - an Entry is what one producer submitted as a unit: 1..n messages that share one base offset, kept in the
//     bytes of the protocol it came by (Format), so that a client of that protocol gets back what was sent;
//   - a Cursor is how far a group has come: a mark below which everything is acknowledged, and ranges beyond it.
//
// Non-obvious: the word "subscription" is not used here, because it is a filter in MQTT and a group in Pulsar.
// Byte slices of an Entry that was read are views into an immutable block: keep them, never write to them.
package core
