package wire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
)

const upperHex = "0123456789ABCDEF"

// AppendMessageID writes the offset message id: upper-case hex of store host, port and physical offset, 32 digits for
// IPv4 and 56 for IPv6. rocketmq-client-go v2 crashes on any other length.
//
// Spec: RocketMQ MessageDecoder.createMessageId@5.x
func AppendMessageID(dst []byte, host netip.AddrPort, phys int64) []byte {
	var buf [28]byte
	b := appendHost(buf[:0], host.Addr().Unmap(), host.Port())
	b = binary.BigEndian.AppendUint64(b, uint64(phys))
	for _, c := range b {
		dst = append(dst, upperHex[c>>4], upperHex[c&15])
	}
	return dst
}

// ParseMessageID reads an offset message id.
//
// Spec: RocketMQ MessageDecoder.decodeMessageId@5.x
func ParseMessageID(id string) (netip.AddrPort, int64, error) {
	b, err := hex.DecodeString(id)
	if err != nil || len(b) != 16 && len(b) != 28 {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: message id of %d digits", ErrMalformed, len(id))
	}
	r := reader{b: b}
	host := r.host(len(b) == 28)
	return host, int64(r.u64()), nil
}
