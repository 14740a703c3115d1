// Package engine is the running middle of Isthmus: topics, partition logs, groups and retention, and the façade that
// adapters and bridges use. Start at Producer.Publish and Group.Join; nothing else moves messages.
//
// Words: a log is one running journal with its committer and tail cache, and may hold partitions of several topics; a
// runner owns the dispatch states of one group on one log; the saver writes what changed to the metadata store.
//
// Owners: the committer goroutine of a log owns appending to its journal. Appenders share the active buffer under a leaf
// mutex. A runner goroutine owns its states and credit accounts, others post to its mailbox. Registries (topics, groups,
// consumers) are maps under leaf mutexes that are never held across I/O or a callback.
//
// Non-obvious:
//   - an offset is given when the entry is encoded, under the log's mutex, and becomes visible when its block is durable;
//   - acknowledgements to producers leave before consumers are woken;
//   - a failed append fails the log for good: later publishes are refused until a restart, none is retried;
//   - metadata reserves offsets ahead of their use, so that one that was given to a lost message is never given again;
//   - a parked message (delayed, or half of a transaction) is a record in its log's internal partition until one block takes
//     it into its own partition and leaves a tombstone; it counts in no group's backlog until then, because no offset is
//     known before, and Partition.Parked tells how many wait;
//   - a catch-up scan waits while a live block is on its way to the disk, and reads at least one block between two of those;
//   - marks (Seq, time, next offsets, every few MiB) are how an offset or a time is found in any journal, and the only
//     places where a journal is trimmed.
//
// Not supported: consumers of several modes in one group (pullers may join any); attempts that outlive the last consumer of a group.
package engine
