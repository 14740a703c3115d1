package wire

import (
	"bytes"
	"testing"
)

var body = []byte("\x00\x00\x00\x09\x0a\x01p\x10\x05\x18\xc0\x84\x3dhello")

// The broker entry metadata that a server may put before the checksum is passed over.
func TestPayloadSections(t *testing.T) {
	plain := body
	summed := appendPayload(nil, Checksum(body), body)
	broker := append([]byte{0x0e, 0x02, 0, 0, 0, 2, 0x10, 0x05}, summed...)
	for name, b := range map[string][]byte{"plain": plain, "summed": summed, "broker": broker} {
		p, err := ParsePayload(b)
		if err != nil || !bytes.Equal(p.Checked, body) || string(p.Body) != "hello" || p.HasSum != (name != "plain") {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
}
