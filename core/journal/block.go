package journal

import (
	"encoding/binary"
	"hash/crc32"
	"iter"
	"math"

	"isthmus/core"
)

// A block, little-endian:
//
//	 0  u16  magic "IB"
//	 2  u8   format version, 1
//	 3  u8   0
//	 4  u32  CRC32C of everything from byte 8 on
//	 8  u32  total length
//	12  u32  number of extents
//	16  u64  epoch of the owner that wrote it
//	24  i64  commit time, unix ms
//	32  per extent 24 bytes: u32 partition, u32 count, i64 first offset, u32 position, u32 length
//	    then the extents without a gap, in the order of the table
const (
	version    = 1
	headerSize = 32
	extentSize = 24
	crcStart   = 8
	blockPlace = "block"
)

// MaxBlock bounds a block, in bytes; every tenant refuses a larger one.
const MaxBlock = 1 << 29

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Extent is what a block holds of one partition: Count messages from offset First on, their entries
// concatenated in Data. The entries are opaque here.
type Extent struct {
	Partition uint32
	First     core.Offset
	Count     uint32
	Data      []byte
}

// Next is the offset after the last message of the extent.
func (e Extent) Next() core.Offset { return e.First + core.Offset(e.Count) }

// Block is a parsed block: a view into its bytes.
type Block struct {
	Epoch uint64
	Time  int64 // commit time, unix ms
	raw   []byte
	n     int
}

// BlockSize is the number of bytes that AppendBlock adds for these extents.
func BlockSize(extents ...Extent) int {
	n := headerSize + extentSize*len(extents)
	for i := range extents {
		n += len(extents[i].Data)
	}
	return n
}

// AppendBlock appends the block of these extents to dst. The caller keeps it within MaxBlock.
func AppendBlock(dst []byte, epoch uint64, time int64, extents ...Extent) []byte {
	start, size := len(dst), BlockSize(extents...)
	dst = append(dst, 'I', 'B', version, 0, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(extents)))
	dst = binary.LittleEndian.AppendUint64(dst, epoch)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(time))
	pos := headerSize + extentSize*len(extents)
	for i := range extents {
		e := &extents[i]
		dst = binary.LittleEndian.AppendUint32(dst, e.Partition)
		dst = binary.LittleEndian.AppendUint32(dst, e.Count)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.First))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(pos))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(e.Data)))
		pos += len(e.Data)
	}
	for i := range extents {
		dst = append(dst, extents[i].Data...)
	}
	b := dst[start:]
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[crcStart:], castagnoli))
	return dst
}

// ParseBlock checks the CRC and every length of b, which must be one whole block.
func ParseBlock(b []byte) (Block, error) {
	blk, err := Header(b)
	if err != nil {
		return Block{}, err
	}
	if crc32.Checksum(b[crcStart:], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return Block{}, &Damage{Where: blockPlace, Position: 4, Why: "wrong checksum"}
	}
	return blk, nil
}

// Header parses b as ParseBlock does, with every length checked, but trusts the CRC to somebody else.
func Header(b []byte) (Block, error) {
	if len(b) < headerSize {
		return Block{}, &Damage{Where: blockPlace, Position: int64(len(b)), Why: "short header"}
	}
	if b[0] != 'I' || b[1] != 'B' || b[2] != version || b[3] != 0 {
		return Block{}, &Damage{Where: blockPlace, Why: "no block, or of an unknown version"}
	}
	if len(b) > MaxBlock || uint64(binary.LittleEndian.Uint32(b[8:])) != uint64(len(b)) {
		return Block{}, &Damage{Where: blockPlace, Position: 8, Why: "wrong length"}
	}
	n := uint64(binary.LittleEndian.Uint32(b[12:]))
	if n > uint64(len(b)-headerSize)/extentSize {
		return Block{}, &Damage{Where: blockPlace, Position: 12, Why: "more extents than bytes"}
	}
	blk := Block{
		Epoch: binary.LittleEndian.Uint64(b[16:]),
		Time:  int64(binary.LittleEndian.Uint64(b[24:])),
		raw:   b, n: int(n),
	}
	if err := blk.checkTable(); err != nil {
		return Block{}, err
	}
	return blk, nil
}

// checkTable holds the extents to one shape: in order, without a gap, up to the end of the block.
func (b Block) checkTable() error {
	pos := uint64(headerSize + extentSize*b.n)
	for i := range b.n {
		row := b.row(i)
		count := binary.LittleEndian.Uint32(row[4:])
		first := int64(binary.LittleEndian.Uint64(row[8:]))
		if count > math.MaxInt32 || first < 0 || first > math.MaxInt64-int64(count) {
			return &Damage{Where: blockPlace, Position: int64(headerSize + extentSize*i), Why: "impossible offsets"}
		}
		if uint64(binary.LittleEndian.Uint32(row[16:])) != pos {
			return &Damage{Where: blockPlace, Position: int64(headerSize + extentSize*i), Why: "extent out of place"}
		}
		pos += uint64(binary.LittleEndian.Uint32(row[20:]))
	}
	if pos != uint64(len(b.raw)) {
		return &Damage{Where: blockPlace, Position: 8, Why: "extents do not fill the block"}
	}
	return nil
}

// Len is the number of extents.
func (b Block) Len() int { return b.n }

// Bytes is the whole block.
func (b Block) Bytes() []byte { return b.raw }

// Extent returns extent i of Len.
func (b Block) Extent(i int) Extent {
	e, row := b.meta(i), b.row(i)
	pos, size := binary.LittleEndian.Uint32(row[16:]), binary.LittleEndian.Uint32(row[20:])
	e.Data = b.raw[pos : pos+size : pos+size]
	return e
}

// Extents yields the extents in their order.
func (b Block) Extents() iter.Seq[Extent] {
	return func(yield func(Extent) bool) {
		for i := range b.n {
			if !yield(b.Extent(i)) {
				return
			}
		}
	}
}

// Of yields what the block holds of a partition, in the order of offsets: one extent as it was appended, several with
// gaps between them, or none, in a block that was thinned.
func (b Block) Of(partition uint32) iter.Seq[Extent] {
	return func(yield func(Extent) bool) {
		for i := range b.n {
			if binary.LittleEndian.Uint32(b.row(i)) == partition && !yield(b.Extent(i)) {
				return
			}
		}
	}
}

func (b Block) row(i int) []byte {
	return b.raw[headerSize+extentSize*i:][:extentSize]
}

// meta is the extent without its data.
func (b Block) meta(i int) Extent {
	row := b.row(i)
	return Extent{
		Partition: binary.LittleEndian.Uint32(row),
		Count:     binary.LittleEndian.Uint32(row[4:]),
		First:     int64(binary.LittleEndian.Uint64(row[8:])),
	}
}
