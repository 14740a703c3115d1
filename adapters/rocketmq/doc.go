// Package rocketmq speaks the remoting protocol of Apache RocketMQ to classic clients (Java 4 and 5, Go v2, C++): name
// server and broker in one. Both ports answer all requests, so one port is enough.
//
// Three words: a session is one connection and its reader goroutine; the registry knows which client ids are in which
// consumer group; a ticket is a pull that is held until a message or its deadline comes, at no goroutine.
//
// Start at session.run: drain the socket, act on each frame, flush once. A send is answered by the engine's committer,
// after the block is durable. Woken pulls are run by a few workers, never by the committer.
//
// Owners: a session's buffers and producer belong to its reader. The registry and the held pulls are guarded by leaf
// mutexes; nothing is called or sent while one is held.
//
// Non-obvious:
//   - the Go client never sets the one-way bit and sends no filter with a pull: filters come from the last heartbeat;
//   - %RETRY%group always has a route, and is an empty queue until something is sent to it;
//   - an offset query is answered with the group's mark once the group has begun, so nothing sent since is missed;
//   - a delayed or half message is stored as it will be seen, and named by its place among the parked until then;
//   - answers are always JSON with an extFields object.
//
// Not supported yet: see docs/rocketmq.md, printed from testdata/spec.txt. Above all POP, gRPC,
// TLS, signatures.
package rocketmq
