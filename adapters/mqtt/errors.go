package mqtt

import (
	"errors"

	"isthmus/adapters/mqtt/wire"
	"isthmus/core"
)

// codes is how MQTT puts one core error. Every packet has a column, because the standard allows different codes
// in each. v3 is the return code of a version 3 CONNACK; closed means that no code says it and the connection
// is closed. The acks of version 3 have no codes: a SUBACK says 0x80, a failed publish closes.
type codes struct {
	connack, puback, suback, disconnect wire.Reason
	v3                                  wire.Reason
}

// closed in the v3 column: no CONNACK.
const closed wire.Reason = 0xFF

// table is the one place where a code stands next to a core error.
var table = []struct {
	err error
	codes
}{
	{core.ErrInvalid, codes{0x82, 0x83, 0x8F, 0x82, closed}},
	{core.ErrUnsupported, codes{0x84, 0x83, 0x83, 0x83, wire.V3UnsupportedVersion}},
	{core.ErrUnauthenticated, codes{0x86, 0x87, 0x87, 0x87, wire.V3BadCredentials}},
	{core.ErrForbidden, codes{0x87, 0x87, 0x87, 0x87, wire.V3NotAuthorized}},
	{core.ErrTopicNotFound, codes{0x90, 0x90, 0x8F, 0x90, closed}},
	{core.ErrTopicExists, codes{0x83, 0x83, 0x83, 0x83, closed}},
	{core.ErrGroupNotFound, codes{0x83, 0x83, 0x83, 0x83, closed}},
	{core.ErrOffsetOutOfRange, codes{0x83, 0x83, 0x83, 0x83, closed}},
	{core.ErrTooLarge, codes{0x95, 0x97, 0x97, 0x95, closed}},
	{core.ErrBusy, codes{0x89, 0x97, 0x97, 0x89, wire.V3Unavailable}},
	{core.ErrFenced, codes{0x89, 0x80, 0x80, 0x8E, wire.V3Unavailable}},
	{core.ErrOverloaded, codes{0x97, 0x97, 0x97, 0x97, wire.V3Unavailable}},
	{core.ErrUnavailable, codes{0x88, 0x80, 0x80, 0x89, wire.V3Unavailable}},
	{core.ErrClosed, codes{0x88, 0x80, 0x80, 0x8B, wire.V3Unavailable}},
	{core.ErrBacklogFull, codes{0x97, 0x97, 0x97, 0x97, wire.V3Unavailable}},
	{core.ErrStorageFull, codes{0x97, 0x97, 0x97, 0x97, wire.V3Unavailable}},
}

// unspecified is what everything else becomes.
var unspecified = codes{0x80, 0x80, 0x80, 0x80, wire.V3Unavailable}

func codesOf(err error) codes {
	for i := range table {
		if errors.Is(err, table[i].err) {
			return table[i].codes
		}
	}
	return unspecified
}

// reasonOf is what a version 5 client is told when err ends its connection.
func reasonOf(err error) wire.Reason {
	var w *wire.Error
	if errors.As(err, &w) {
		return w.Reason
	}
	return codesOf(err).disconnect
}

// refuse makes an error that ends the connection with a reason of the protocol.
func refuse(r wire.Reason, what string) error { return &wire.Error{Reason: r, What: what} }
