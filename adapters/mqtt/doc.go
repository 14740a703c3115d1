// Package mqtt lets devices and MQTT clients speak to the engine: versions 3.1, 3.1.1 and 5.
//
// Start at Server.Run, then session.run: read what the socket has, handle every whole packet, flush once. Each
// packet has its file. A publish goes through routing to a partition; its PUBACK leaves from a ring, in order,
// when the committer says that it is durable. Plain subscriptions are fed from the log by one fan-out goroutine;
// a $share member is a consumer of a core group: any member with room gets the next message, or (Config.ByKey) the one
// that has the message's key, which moves to another when the PUBACKs of what was sent of it have come.
//
// Three words. A session is one connected client. Its outbox is the window of messages it has not acknowledged,
// and the queue behind it. A member is a session's seat in a core group.
//
// Owners: the reader goroutine of a connection owns its session. Ring and outbox are guarded by the lock of the
// connection's output, because their order is the order on the wire. The tree of filters has a leaf lock.
//
// Not supported yet, and declined so that stock clients still work: sessions that outlive a connection, QoS 2,
// retained messages, sending of wills, enhanced authentication, topic aliases towards clients.
// docs/mqtt.md is the table, printed from testdata/spec.txt.
package mqtt
