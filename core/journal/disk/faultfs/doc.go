// Package faultfs is a file system in memory for tests of what faults do to stored messages. It knows what readers see and,
// apart from that, what is on the disk: only what was synced is there for sure. Three words: the power fails at an operation
// (PowerOff, or ErrPower from the hook), after which nothing works; a Restart then keeps of everything that was not synced a
// random part, sector by sector, with torn ones among them; the hook is asked before each operation that changes something,
// and makes the disk full or broken.
//
// One seed, and one order of operations, give one outcome. A failed Sync leaves what was written readable and clean, as Linux
// does: the disk has some of it, and no later Sync brings the rest.
//
// Not supported: permissions, hard links, reads that fail.
package faultfs
