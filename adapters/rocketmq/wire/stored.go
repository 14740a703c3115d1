package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/netip"
)

// The magics of a stored message; the second has a topic length of two bytes and is used for names beyond 127 bytes.
const (
	MagicV1 = 0xDAA320A7
	MagicV2 = 0xDAA320AB
)

// Stored is one message in the layout of pull answers.
type Stored struct {
	QueueID        int32
	Flag           int32
	QueueOffset    int64
	PhysOffset     int64
	SysFlag        int32 // the host bits are set by Append from the addresses
	Born           int64
	BornHost       netip.AddrPort
	StoreTime      int64
	StoreHost      netip.AddrPort
	Reconsume      int32
	PreparedOffset int64
	Body           []byte
	Topic          string
	Properties     []byte
}

// Append writes the message.
//
// Spec: RocketMQ MessageDecoder.encode, MessageDecoder.decode@5.x
func (m *Stored) Append(dst []byte) []byte {
	start := len(dst)
	sys := m.SysFlag &^ (SysBornHostV6 | SysStoreHostV6)
	born, store := m.BornHost.Addr().Unmap(), m.StoreHost.Addr().Unmap()
	if born.Is6() {
		sys |= SysBornHostV6
	}
	if store.Is6() {
		sys |= SysStoreHostV6
	}
	magic := uint32(MagicV1)
	if len(m.Topic) > 127 {
		magic = MagicV2
	}
	be := binary.BigEndian
	dst = append(dst, 0, 0, 0, 0)
	dst = be.AppendUint32(dst, magic)
	dst = be.AppendUint32(dst, crc32.ChecksumIEEE(m.Body)&0x7FFFFFFF)
	dst = be.AppendUint32(dst, uint32(m.QueueID))
	dst = be.AppendUint32(dst, uint32(m.Flag))
	dst = be.AppendUint64(dst, uint64(m.QueueOffset))
	dst = be.AppendUint64(dst, uint64(m.PhysOffset))
	dst = be.AppendUint32(dst, uint32(sys))
	dst = be.AppendUint64(dst, uint64(m.Born))
	dst = appendHost(dst, born, m.BornHost.Port())
	dst = be.AppendUint64(dst, uint64(m.StoreTime))
	dst = appendHost(dst, store, m.StoreHost.Port())
	dst = be.AppendUint32(dst, uint32(m.Reconsume))
	dst = be.AppendUint64(dst, uint64(m.PreparedOffset))
	dst = be.AppendUint32(dst, uint32(len(m.Body)))
	dst = append(dst, m.Body...)
	if magic == MagicV2 {
		dst = be.AppendUint16(dst, uint16(len(m.Topic)))
	} else {
		dst = append(dst, byte(len(m.Topic)))
	}
	dst = append(dst, m.Topic...)
	dst = be.AppendUint16(dst, uint16(len(m.Properties)))
	dst = append(dst, m.Properties...)
	be.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

func appendHost(dst []byte, a netip.Addr, port uint16) []byte {
	switch {
	case a.Is6():
		b := a.As16()
		dst = append(dst, b[:]...)
	case a.Is4():
		b := a.As4()
		dst = append(dst, b[:]...)
	default:
		dst = append(dst, 0, 0, 0, 0)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(port))
}

// NextStored cuts the first message off b. Body and Properties point into b.
func NextStored(b []byte) (m Stored, rest []byte, err error) {
	out := reader{b: b}
	total := int64(int32(out.u32()))
	r := reader{b: out.take(total - 4)}
	magic := r.u32()
	crc := r.u32()
	m.QueueID = int32(r.u32())
	m.Flag = int32(r.u32())
	m.QueueOffset = int64(r.u64())
	m.PhysOffset = int64(r.u64())
	sys := int32(r.u32())
	m.SysFlag = sys &^ (SysBornHostV6 | SysStoreHostV6)
	m.Born = int64(r.u64())
	m.BornHost = r.host(sys&SysBornHostV6 != 0)
	m.StoreTime = int64(r.u64())
	m.StoreHost = r.host(sys&SysStoreHostV6 != 0)
	m.Reconsume = int32(r.u32())
	m.PreparedOffset = int64(r.u64())
	m.Body = r.take(int64(int32(r.u32())))
	n := int64(0)
	if magic == MagicV2 {
		n = int64(int16(r.u16()))
	} else {
		n = int64(int8(r.u8()))
	}
	m.Topic = string(r.take(n))
	m.Properties = r.take(int64(int16(r.u16())))
	switch {
	case out.bad || r.bad || len(r.b) != 0:
		return Stored{}, nil, fmt.Errorf("%w: stored message is cut short", ErrMalformed)
	case magic != MagicV1 && magic != MagicV2:
		return Stored{}, nil, fmt.Errorf("%w: stored message magic %#x", ErrMalformed, magic)
	case crc != crc32.ChecksumIEEE(m.Body)&0x7FFFFFFF:
		return Stored{}, nil, fmt.Errorf("%w: stored message body crc", ErrMalformed)
	}
	return m, out.b, nil
}

func (r *reader) host(v6 bool) netip.AddrPort {
	n := int64(4)
	if v6 {
		n = 16
	}
	a, _ := netip.AddrFromSlice(r.take(n))
	return netip.AddrPortFrom(a, uint16(r.u32()))
}
