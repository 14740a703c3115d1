// Package journal is the durability seam: an ordered log of blocks that are durable when Append
// returns. Three words: a Block is what one commit writes, many entries of maybe several partitions;
// a Seq numbers the blocks of one journal; the epoch says whose turn it is to write, and fences all
// who had the turn before.
//
// Start with Store and Journal (journal.go), then the layout of a block (block.go); checkpoint.go is the
// place of files beside a journal. Tenants are
// memory (the reference, and everybody's test double) and disk (the default); journaltest is the
// suite that each of them passes.
//
// Whoever appends owns the journal's order and its clock: commit times never decrease, offsets of a
// partition neither. Entries inside an extent are opaque here.
//
// What is held by nobody is trimmed at the front; a tenant that is a Thinner also takes single entries out
// of the middle. Seqs stay, so a reader sees gaps; whole blocks may be missing, and a block may hold several
// extents of one partition (Block.Of) or fewer than it was appended with.
//
// Not supported: compression, encryption, a block of more than MaxBlock bytes.
package journal
