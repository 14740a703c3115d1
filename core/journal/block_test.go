package journal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// golden is one block of two extents, a comment per field.
var golden = strings.Join([]string{
	"4942",             // magic IB
	"01",               // version
	"00",               // reserved
	"367de937",         // CRC32C of all that follows
	"57000000",         // length 87
	"02000000",         // extents
	"0700000000000000", // epoch 7
	"00e40b5402000000", // time 10000000000
	"01000000",         // partition 1
	"03000000",         // count 3
	"0500000000000000", // first offset 5
	"50000000",         // position 80
	"05000000",         // length 5
	"ffff0f00",         // partition 2^20-1
	"01000000",         // count 1
	"0001000000000000", // first offset 256
	"55000000",         // position 85
	"02000000",         // length 2
	hex.EncodeToString([]byte("helloyo")),
}, "")

func goldenBytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(golden)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func goldenExtents() []Extent {
	return []Extent{
		{Partition: 1, First: 5, Count: 3, Data: []byte("hello")},
		{Partition: 1<<20 - 1, First: 256, Count: 1, Data: []byte("yo")},
	}
}

func TestBlockGolden(t *testing.T) {
	want := goldenBytes(t)
	got := AppendBlock([]byte("before"), 7, 10000000000, goldenExtents()...)
	if got = got[len("before"):]; !bytes.Equal(got, want) {
		t.Fatalf("got  %x\nwant %x", got, want)
	}
	b, err := ParseBlock(want)
	if err != nil {
		t.Fatal(err)
	}
	if b.Epoch != 7 || b.Time != 10000000000 || b.Len() != 2 || len(want) != BlockSize(goldenExtents()...) {
		t.Fatalf("parsed %+v", b)
	}
	i := 0
	for e := range b.Extents() {
		w := goldenExtents()[i]
		if e.Partition != w.Partition || e.First != w.First || e.Count != w.Count || !bytes.Equal(e.Data, w.Data) {
			t.Fatalf("extent %d: %+v, want %+v", i, e, w)
		}
		i++
	}
	for e := range b.Of(1<<20 - 1) {
		if i++; e.Next() != 257 {
			t.Fatalf("of a partition: %+v", e)
		}
	}
	for range b.Of(2) {
		t.Fatal("found a partition that is not there")
	}
	if i != 3 {
		t.Fatal("a partition was not found")
	}
}

func TestBlockTruncated(t *testing.T) {
	want := goldenBytes(t)
	for n := range want {
		if _, err := ParseBlock(want[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if _, err := Header(want[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("header of %d bytes: %v", n, err)
		}
	}
	if _, err := ParseBlock(append(slices.Clone(want), 0)); !errors.Is(err, ErrDamaged) {
		t.Fatalf("one byte more: %v", err)
	}
}

func TestBlockFlipped(t *testing.T) {
	want := goldenBytes(t)
	for i := range want {
		bad := slices.Clone(want)
		bad[i] ^= 0x40
		if _, err := ParseBlock(bad); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
	}
}

func TestBlockImpossible(t *testing.T) {
	for name, es := range map[string][]Extent{
		"negative offset": {{First: -1, Count: 1}},
		"offset overflow": {{First: math.MaxInt64, Count: 1}},
		"count overflow":  {{Count: math.MaxUint32}},
	} {
		if _, err := ParseBlock(AppendBlock(nil, 1, 1, es...)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseBlock(AppendBlock(nil, 1, 1)); err != nil {
		t.Errorf("no extents: %v", err)
	}
}

func TestParseBlockAllocates(t *testing.T) {
	raw := goldenBytes(t)
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		b, err := ParseBlock(raw)
		if err != nil {
			t.Fatal(err)
		}
		for e := range b.Extents() {
			sum += len(e.Data)
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
	buf := make([]byte, 0, 256)
	es := goldenExtents()
	if n := testing.AllocsPerRun(100, func() { buf = AppendBlock(buf[:0], 1, 2, es...) }); n != 0 {
		t.Fatalf("%v allocations to append", n)
	}
}

func TestHintWants(t *testing.T) {
	b, err := ParseBlock(goldenBytes(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		h    Hint
		want bool
	}{
		{Hint{}, true},
		{Hint{Since: 10000000000}, true},
		{Hint{Since: 10000000001}, false},
		{Hint{HasPartition: true, Partition: 1, From: 7}, true},
		{Hint{HasPartition: true, Partition: 1, From: 8}, false},
		{Hint{HasPartition: true, Partition: 3}, false},
	} {
		if got := c.h.Wants(b); got != c.want {
			t.Errorf("%+v: %v", c.h, got)
		}
	}
}

// FuzzParseBlock: whatever parses is canonical, and nothing else panics or reads out of bounds.
func FuzzParseBlock(f *testing.F) {
	f.Add(goldenBytes(f))
	f.Add(AppendBlock(nil, 1, 1))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := Header(raw)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("unnamed error %v", err)
			}
			return
		}
		es := slices.Collect(b.Extents())
		again := AppendBlock(nil, b.Epoch, b.Time, es...)
		if _, err := ParseBlock(again); err != nil {
			t.Fatal(err)
		}
		if _, err := ParseBlock(raw); err == nil && !bytes.Equal(again, raw) {
			t.Fatalf("two encodings of one block\n%x\n%x", raw, again)
		}
	})
}
