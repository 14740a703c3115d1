package disk

import (
	"encoding/binary"
	"hash/crc32"

	"isthmus/core/journal"
)

// A record on disk, little-endian, aligned to 8 bytes:
//
//	 0  u32  CRC32C of everything from byte 4 to the end of the padding
//	 4  u32  length of the block
//	 8  u64  Seq
//	16  u64  generation of the segment
//	24  the block, then zeros up to the next multiple of 8
//
// The generation is drawn at random when a segment comes into use. Bytes of the file's earlier life
// carry another one, and no producer can put a frame of this segment into a message.
const frameHeader = 24

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func frameSize(block int) int64 { return int64(frameHeader+block+7) &^ 7 }

// putFrame makes the header of a record; what follows are the block and the padding.
func putFrame(h *[frameHeader]byte, generation uint64, seq journal.Seq, block []byte) (padding []byte) {
	binary.LittleEndian.PutUint32(h[4:], uint32(len(block)))
	binary.LittleEndian.PutUint64(h[8:], uint64(seq))
	binary.LittleEndian.PutUint64(h[16:], generation)
	padding = zeros[:frameSize(len(block))-int64(frameHeader+len(block))]
	crc := crc32.Update(crc32.Checksum(h[4:], castagnoli), castagnoli, block)
	binary.LittleEndian.PutUint32(h[:], crc32.Update(crc, castagnoli, padding))
	return padding
}

func appendFrame(dst []byte, generation uint64, seq journal.Seq, block []byte) []byte {
	var h [frameHeader]byte
	padding := putFrame(&h, generation, seq, block)
	dst = append(dst, h[:]...)
	dst = append(dst, block...)
	return append(dst, padding...)
}

// frame is the header of a record as found; nothing in it is trusted yet.
type frame struct {
	crc, length uint32
	seq         journal.Seq
	generation  uint64
}

func parseFrame(b []byte) frame {
	return frame{
		crc:        binary.LittleEndian.Uint32(b),
		length:     binary.LittleEndian.Uint32(b[4:]),
		seq:        journal.Seq(binary.LittleEndian.Uint64(b[8:])),
		generation: binary.LittleEndian.Uint64(b[16:]),
	}
}

// size is the number of bytes that the frame claims to fill.
func (f frame) size() int64 { return (frameHeader + int64(f.length) + 7) &^ 7 }

// whole tells whether b, of f.size() bytes, is what was written.
func (f frame) whole(b []byte) bool {
	return crc32.Checksum(b[4:], castagnoli) == f.crc
}
