// Package dispatch decides who in a group gets what next. A State is the delivery state of one group on one partition: a
// plain struct without goroutine, clock, lock or context. Its owner, the group's runner, calls it from one goroutine:
// it tells what happened (Join, Add, Ack, ...), then asks Ready what there is to do.
//
// Four words to know:
//
//   - mark: everything below it is acknowledged (Cursor.Next); what is acknowledged beyond it are holes;
//   - rewind: reading starts again at the mark, and what is acknowledged by then is skipped;
//   - heir: who takes over a partition once the acks of its predecessor have come, or the grace is over;
//   - credit: what a consumer may still be sent (Account.Permits), one number over all States of its runner.
//
// Memory is bounded: Want asks for no more than members have credit for, and 16 384 messages at a time; what is
// unacknowledged in shared mode, and holes in the others, are remembered up to Limits. There reading stops until acks
// arrive; nothing is dropped.
//
// Non-obvious: exclusive and failover remember no deliveries, only how far they read; whoever is not active any more may
// still acknowledge. An ack counts for what was handed out since New or Reset, so a stranger's cannot skip the backlog.
//
// Time is an argument: a State knows it from Expire, and says in Ready.Wake when something will be due: the end of what a
// member may hold (Consumer.Timeout, Hold), a delayed nack, the grace of a failover hand-over.
//
// Not supported: keeping the chunks of one message at one consumer in shared modes; taking
// back by time what an exclusive or failover consumer holds.
package dispatch
