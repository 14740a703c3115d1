// Package disk is the default tenant of the durability seam. Append is one pwritev and one fdatasync
// into a segment that is allocated and, where that pays, written before; three words: a segment is one file
// of the log, its generation tells its records from stale bytes of the file's earlier life, the fence holds
// the highest epoch. Whoever has the writer (writer.go) owns the end of the log; readers use pread and never
// wait for it.
//
//	DIR/<name, escaped>/   one directory per journal
//	  fence                magic, epoch, CRC; written before an Open succeeds
//	  <Seq, 20 digits>.seg the log: header | records | index | … | footer in the last 64 bytes
//	  <Seq>.free, *.tmp    waiting to be recycled (at most two); not in use yet (removed by Open and Close)
//	  *.view               checkpoints of what others derive from the journal (checkpoint.go)
//
//	record   CRC32C, length, Seq, generation, block, zeros to a multiple of 8
//	header   magic, generation, first Seq, capacity, epoch, thinned up to, CRC32C; durable before the file has its name
//	index    sections of kind, CRC32C, length. 1: per 64 KiB Seq, position, time and next offsets.
//	         2: per stretch a Bloom filter of its entries' hashes (keys, MQTT topics), if Options say how to hash
//	footer   magic, generation, next Seq, end of records, index length, time, CRC32C; makes it sealed
//
// Not obvious: nothing is cut that the caller knew to be durable, nor in mode Fsync before a whole
// record; everything wrong is a journal.Damage. Open writes unconfirmed records again, since after a
// failed fsync the page cache shows what the disk lacks. Such a failure is final; only Open helps.
//
// In the background, and only while somebody appends: the last segment but one gets its index and footer,
// and the next one gets ready in step with the one in use (ahead.go). Both are short tasks that Append
// starts and Close waits for; an idle journal has no goroutine, timer or open file but the segment's.
// So a journal takes, beyond its records, the rest of the open segment, at most one of the next size once
// the open one is a quarter full, and at most two to be recycled: 1 MiB while quiet, 256 MiB at most.
//
// Thin rewrites sealed segments with what is still held, in a file of just that size, and neighbours in one;
// renamed over the first of them, it makes the others leftovers, which Open removes after a crash. Every
// kept block costs its record, an empty one nothing.
//
// Inspect and Repair (fsck*.go) are for folders that nobody has open: a repaired segment is a thinned one, without the
// blocks that were broken.
//
// Not supported: a lock against other processes (the owner of the data folder has one), Windows.
package disk
