package wire

import (
	"bytes"
	"testing"
)

// FuzzPacket: any bytes are refused or understood; what is understood encodes to a packet that means the same.
func FuzzPacket(f *testing.F) {
	for _, g := range golden {
		f.Add(unhex(f, g.hex), byte(g.v))
	}
	for _, r := range refused {
		f.Add(unhex(f, r.hex), byte(r.v))
	}
	f.Fuzz(func(t *testing.T, b []byte, version byte) {
		v := Version(version)
		if v != V31 && v != V311 {
			v = V5
		}
		once, err := recode(b, v)
		if err != nil {
			return
		}
		if Type(b[0]>>4) == CONNECT {
			v = V5 // its own level byte counts
		}
		twice, err := recode(once, v)
		if err != nil {
			t.Fatalf("our own encoding is refused: %v\nin  %x\nout %x", err, b, once)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("not stable\nin    %x\nonce  %x\ntwice %x", b, once, twice)
		}
	})
}
