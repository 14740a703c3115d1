// Package journal is the durability seam: an ordered log of blocks that are durable when Append
// returns. Three words: a Block is what one commit writes, many entries of maybe several partitions;
// a Seq numbers the blocks of one journal; the epoch says whose turn it is to write, and fences all
// who had the turn before.
//
// Start with Store and Journal (journal.go), then the layout of a block (block.go). Tenants are
// memory (the reference, and everybody's test double) and disk (the default); journaltest is the
// suite that each of them passes.
//
// Whoever appends owns the journal's order and its clock: commit times never decrease, offsets of a
// partition neither. Entries inside an extent are opaque here.
//
// Not supported: compression, encryption, a block of more than MaxBlock bytes, removing a block from
// the middle.
package journal
