// Package parked knows which messages of one log are accepted and durable but not yet in their partition: delayed ones and
// half messages of transactions. Start at Index.Apply: the index is what the records say, applied in journal order, so the
// running engine, a replay and a fresh rebuild come to the same state.
//
// Words: a record is one entry of the log's internal partition (Delay, Half, Done, Checked); its offset there names the
// parked message for ever; the target is the number of the partition it goes to; Done is the tombstone.
//
// The index has no clock, goroutine or lock; the engine guards it. It holds 16 bytes a delayed message, at most 32 with the
// room in half-full chunks, and about 100 a half message; bodies stay in the journal.
package parked
