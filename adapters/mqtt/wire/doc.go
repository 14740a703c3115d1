// Package wire is the codec of MQTT 3.1, 3.1.1 and 5: bytes to packets and back, one file per packet.
//
// Split cuts the first whole packet off a read buffer. Each packet then has a Parse method, which checks every
// duty of the standard that can be seen in the packet alone, and an Append method. Both directions of every
// packet are here; which packets a client may send is the session's business.
//
// Three words. A view is a slice into the buffer that was parsed: valid until the buffer is reused. An Error
// carries the MQTT 5 reason the peer would be told. Limits are arguments: nothing is allocated from a length
// that the bytes present do not back.
//
// Non-obvious: a packet value is made to be parsed into again and again; the lists in it keep their memory, so
// PUBLISH and its acks cost no allocation. One table (properties.go) decides which property may stand where.
//
// Not supported: flow of enhanced authentication (AUTH is parsed, its exchange belongs to the session).
package wire
