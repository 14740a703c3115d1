// Package memory is the reference tenant of the durability seam and everybody's test double: a slice
// of blocks under a lock, by name. A Store value outlives its handles, so that opening again sees the
// old data; with it a test can restart whatever runs above.
//
// It is a journal.Thinner, to the single entry.
//
// Failures are made to order: FailNext lets the next Append of a journal fail, OnAppend calls the
// test before each one (it may block, or return an error).
//
// Not supported: durability; Open with a durable Seq that this Store never held is damage, as it
// should be.
package memory
