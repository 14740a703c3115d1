// Package serve is what the three protocol adapters share about sockets, and nothing about protocols.
//
// Start with Run: it accepts, counts, gives every connection one goroutine with a recover around it, and
// stops in two steps. ctx ends: no more connections, and handlers (who were given that ctx) say goodbye in
// their own protocol. After the grace the deadlines of what is left pass, so reads and writes return.
//
// Three words. A listener accepts. A handler owns one connection until it returns; Run closes it then. An Out
// holds the bytes on their way to one client: anybody appends, a flush writes as much as the socket takes
// without waiting, and only a full socket costs a goroutine, which ends when the socket took it all.
//
// Non-obvious: a socket closed with unread input makes the kernel send RST, and the peer may never read the
// last packet. Out.Close therefore half-closes, discards a little input for a little while, then closes.
//
// Not supported yet: TLS, PROXY protocol, limits per address, accept rates.
package serve
