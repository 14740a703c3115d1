package core

import "testing"

// S1.17: the function from key to partition and to slot never changes. The vectors are those of ACCEPTANCE appendix A, with
// keys on both sides of 2^31 and one that is not ASCII.
func TestMurmur3_32Golden(t *testing.T) {
	for _, v := range []struct {
		key          string
		masked       uint32
		of11, inSlot uint32
	}{
		{"dev-1", 0x15617aaa, 7, 31402},
		{"dev-2", 0x2660014d, 1, 333},
		{"dev-3", 0x77c5d2bf, 10, 53951},
		{"dev-42", 0x464156c0, 10, 22208},
		{"dev-1001", 0x6dd2c283, 2, 49795},
		{"sensor-a", 0x157d2215, 0, 8725},
		{"sensor-b", 0x275777ea, 7, 30698},
		{"vdevo170000000000001", 0x49ae74d2, 3, 29906},
		{"1", 0x1416ac93, 4, 44179},
		{"2", 0x0129e217, 8, 57879},
		{"naïve/ü", 0x6557fc68, 3, 64616},
	} {
		h := Murmur3_32([]byte(v.key)) & 0x7fffffff
		if h != v.masked || h%11 != v.of11 || h%65536 != v.inSlot {
			t.Errorf("%q: got %#08x, partition %d, slot %d; want %#08x, %d, %d", v.key, h, h%11, h%65536, v.masked, v.of11, v.inSlot)
		}
		if slot := KeySlot([]byte(v.key)); slot != v.inSlot {
			t.Errorf("%q: slot %d, want %d", v.key, slot, v.inSlot)
		}
	}
}

// Published vectors of MurmurHash3_x86_32 with seed 0: every length of tail, and the sign bit set.
func TestMurmur3_32Public(t *testing.T) {
	for key, want := range map[string]uint32{
		"":              0,
		"a":             0x3c2569b2,
		"abc":           0xb3dd93fa,
		"test":          0xba6bd213,
		"Hello, world!": 0xc0363e43,
		"The quick brown fox jumps over the lazy dog": 0x2e4ff723,
	} {
		if got := Murmur3_32([]byte(key)); got != want {
			t.Errorf("%q: got %#08x, want %#08x", key, got, want)
		}
	}
}

// Spec: Pulsar StickyKeyConsumerSelector: 0 means "not set", so a key that falls there is moved to 1.
func TestKeySlotIsNeverZero(t *testing.T) {
	if h := Murmur3_32(nil); h%KeySlots != 0 {
		t.Fatalf("the empty key has hash %#x", h)
	}
	if got := KeySlot(nil); got != 1 {
		t.Errorf("slot %d", got)
	}
}
