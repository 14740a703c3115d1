package disk

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func unhex(t *testing.T, lines ...string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(lines, ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\ngot  %x\nwant %x", what, got, want)
	}
}

// The bytes on disk stay readable from version to version.
func TestGolden(t *testing.T) {
	s := &segment{generation: 0x1122334455667788, capacity: 1 << 20, base: 5, next: 9, end: 4096}
	wantBytes(t, "record", appendFrame(nil, s.generation, 5, []byte("block")), unhex(t,
		"1fd2b268",         // CRC32C of all that follows
		"05000000",         // length
		"0500000000000000", // Seq
		"8877665544332211", // generation
		"626c6f636b",       // the block
		"000000",           // padding
	))
	wantBytes(t, "header", s.header(3), unhex(t,
		"4953544853454701", // magic ISTHSEG, version 1
		"8877665544332211", // generation
		"0500000000000000", // Seq of the first block
		"0000100000000000", // capacity
		"0300000000000000", // epoch
		strings.Repeat("00", 20),
		"991219f6", // CRC32C
	))
	wantBytes(t, "footer", s.footer(100, 7), unhex(t,
		"49535448454e4401", // magic ISTHEND, version 1
		"8877665544332211", // generation
		"0900000000000000", // next Seq
		"0010000000000000", // end of the records
		"6400000000000000", // length of the index
		"0700000000000000", // greatest commit time
		strings.Repeat("00", 12),
		"68ee3c5c", // CRC32C
	))
	dir := t.TempDir()
	if err := raiseFence(osFS{}, dir, 3); err != nil {
		t.Fatal(err)
	}
	fence, err := os.ReadFile(filepath.Join(dir, fenceName))
	if err != nil {
		t.Fatal(err)
	}
	wantBytes(t, "fence", fence, unhex(t,
		"4953544846454e01", // magic ISTHFEN, version 1
		"0300000000000000", // epoch
		"00b9956a",         // CRC32C
	))
	x := &index{stretches: []stretch{{seq: 5, pos: 64, time: 7}}, marks: []mark{{partition: 2, next: 40}}}
	wantBytes(t, "index", x.encode(), unhex(t,
		"01000000", // kind: sparse
		"130351ab", // CRC32C
		"3000000000000000",
		"01000000", "01000000", // stretches, marks
		"0500000000000000", "4000000000000000", "0700000000000000", "00000000", // Seq, position, time, first mark
		"02000000", "2800000000000000", // partition, next offset
		"02000000", // kind: hashes
		"00000000", // CRC32C of nothing
		"0000000000000000",
	))
}
