package core

import (
	"slices"
	"testing"
)

func TestAppendHashes(t *testing.T) {
	var b []byte
	for _, e := range []Entry{
		{Count: 1, Data: []byte("neither")},
		{Count: 1, Flags: FlagHasKey, Key: []byte("dev-1"), Data: []byte("key")},
		{Count: 3, AddressHash: 77, Data: []byte("topic")},
		{Count: 1, Flags: FlagHasKey | FlagRetain, AddressHash: 78, OrderingKey: []byte("other"), Data: []byte("both, the key is empty")},
	} {
		b = AppendEntry(b, &e)
	}
	want := []uint32{5, HashKey([]byte("dev-1")), 77, 78, HashKey(nil)}
	if got := AppendHashes([]uint32{5}, b); !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	if HashKey(nil) == 0 {
		t.Fatal("a key without a hash")
	}
}

// Whatever the bytes, the journal's room for two hashes an entry is enough.
func FuzzAppendHashes(f *testing.F) {
	e := Entry{Count: 1, Flags: FlagHasKey, Key: []byte("k"), AddressHash: 7}
	f.Add(AppendEntry(nil, &e))
	f.Add(AppendEntry(AppendEntry(nil, &e), &Entry{Count: 1}))
	f.Add([]byte{56, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(AppendHashes(nil, b)); n > len(b)/28 {
			t.Fatalf("%d hashes of %d bytes", n, len(b))
		}
	})
}
