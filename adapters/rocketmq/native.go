package rocketmq

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// native is the content of an entry in core.FormatRocketMQ: one message as its producer sent it. The born time is the
// entry's publish time.
//
// Layout, big endian: version u8, sysFlag i32, flag i32, reconsumeTimes i32, born host (length u8, address, port u16),
// properties (length u16, text), body to the end.
type native struct {
	sysFlag, flag, reconsume int32
	born                     netip.AddrPort
	properties, body         []byte
}

const (
	nativeVersion = 1
	nativeFixed   = 1 + 4 + 4 + 4
)

func (n *native) append(dst []byte) []byte {
	dst = append(dst, nativeVersion)
	dst = binary.BigEndian.AppendUint32(dst, uint32(n.sysFlag))
	dst = binary.BigEndian.AppendUint32(dst, uint32(n.flag))
	dst = binary.BigEndian.AppendUint32(dst, uint32(n.reconsume))
	switch addr := n.born.Addr().Unmap(); {
	case addr.Is4():
		b := addr.As4()
		dst = append(append(dst, 4), b[:]...)
	case addr.Is6():
		b := addr.As16()
		dst = append(append(dst, 16), b[:]...)
	default:
		dst = append(dst, 0)
	}
	dst = binary.BigEndian.AppendUint16(dst, n.born.Port())
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(n.properties)))
	dst = append(dst, n.properties...)
	return append(dst, n.body...)
}

func (n *native) parse(b []byte) error {
	if len(b) < nativeFixed+1 || b[0] != nativeVersion {
		return fmt.Errorf("rocketmq entry of %d bytes: %w", len(b), core.ErrInvalid)
	}
	n.sysFlag = int32(binary.BigEndian.Uint32(b[1:]))
	n.flag = int32(binary.BigEndian.Uint32(b[5:]))
	n.reconsume = int32(binary.BigEndian.Uint32(b[9:]))
	host := int(b[nativeFixed])
	b = b[nativeFixed+1:]
	if len(b) < host+4 {
		return fmt.Errorf("rocketmq entry: host is cut short: %w", core.ErrInvalid)
	}
	addr, _ := netip.AddrFromSlice(b[:host])
	n.born = netip.AddrPortFrom(addr, binary.BigEndian.Uint16(b[host:]))
	props := int(binary.BigEndian.Uint16(b[host+2:]))
	b = b[host+4:]
	if len(b) < props {
		return fmt.Errorf("rocketmq entry: properties are cut short: %w", core.ErrInvalid)
	}
	n.properties, n.body = b[:props:props], b[props:]
	return nil
}

// keyOf returns the key of a message from its properties: the sharding key under either of its names, else KEYS when it
// is a single word.
func keyOf(properties []byte) (key []byte, has bool) {
	var keys []byte
	for {
		name, value, rest, ok := wire.NextProperty(properties)
		if !ok {
			break
		}
		switch string(name) {
		case wire.PropShardingKey, wire.PropShardingKeyGo:
			if len(value) > 0 {
				return value, true
			}
		case wire.PropKeys:
			keys = value
		}
		properties = rest
	}
	for _, c := range keys {
		if c == ' ' {
			return nil, false
		}
	}
	return keys, len(keys) > 0
}
