package wire_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"isthmus/adapters/pulsar/wire"
	"isthmus/adapters/pulsar/wire/wiretest"
)

var body = []byte("\x00\x00\x00\x09\x0a\x01p\x10\x05\x18\xc0\x84\x3dhello")

// A frame that is cut anywhere is incomplete, a command that is cut anywhere is an error or another valid command, never
// a panic.
func TestTruncation(t *testing.T) {
	for _, s := range wiretest.Samples() {
		for i := range s.Frame {
			if _, n, err := wire.Split(s.Frame[:i], 1<<20); n != 0 || err != nil {
				t.Fatalf("%v cut at %d: n=%d err=%v", s.Type, i, n, err)
			}
		}
		f, _, _ := wire.Split(s.Frame, 1<<20)
		for i := range f.Command {
			if err := s.Parse(f.Command[:i], s.Fresh()); err != nil && !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("%v cut at %d: %v", s.Type, i, err)
			}
		}
		for i := range f.Payload {
			p, err := wire.ParsePayload(f.Payload[:i])
			if err == nil && wire.Checksum(p.Checked) == p.Sum {
				t.Fatalf("%v: payload cut at %d is whole", s.Type, i)
			}
		}
	}
}

func TestRequiredFields(t *testing.T) {
	for _, s := range wiretest.Samples() {
		if s.Type == wire.TypeActiveConsumerChange {
			continue
		}
		if err := s.Parse(nil, s.Fresh()); s.Type != wire.TypeSendReceipt && s.Type != wire.TypeMessage && !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%v without fields: %v", s.Type, err)
		}
	}
}

func TestSplitLimits(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      error
	}{
		{"2 GiB", "80000000", wire.ErrFrameTooLarge},
		{"4 GiB", "ffffffff", wire.ErrFrameTooLarge},
		{"no room for a command", "00000003", wire.ErrMalformed},
		{"command larger than the frame", "0000000800000005", wire.ErrMalformed},
		{"command without a type", "0000000400000000", wire.ErrMalformed},
		{"field number 0", "000000060000000200ff", wire.ErrMalformed},
	} {
		b, _ := hex.DecodeString(c.hex)
		if _, _, err := wire.Split(b, 5<<20); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestHotCommandsAllocateNothing(t *testing.T) {
	ss := map[wire.Type][]byte{}
	for _, s := range wiretest.Samples() {
		f, _, _ := wire.Split(s.Frame, 1<<20)
		ss[s.Type] = f.Command
	}
	meta := wire.OutMetadata{Producer: "p", HasKey: true, Key: []byte("k")}
	metadata := meta.Append(nil, nil)
	var ack wire.Ack
	_ = ack.Parse(ss[wire.TypeAck])
	dst := make([]byte, 0, 4096)
	var m wire.Metadata
	for name, f := range map[string]func(){
		"SEND":            func() { var c wire.Send; _ = c.Parse(ss[wire.TypeSend]) },
		"FLOW":            func() { var c wire.Flow; _ = c.Parse(ss[wire.TypeFlow]) },
		"ACK":             func() { _ = ack.Parse(ss[wire.TypeAck]) },
		"MessageMetadata": func() { _ = m.Parse(metadata) },
		"SEND_RECEIPT": func() {
			c := wire.SendReceipt{ProducerID: 1, SequenceID: 2, ID: wire.MessageID{Ledger: 1, Entry: 2, Partition: -1, BatchIndex: -1}}
			c.Append(dst)
		},
		"MESSAGE": func() {
			c := wire.Message{ConsumerID: 1, ID: wire.MessageID{Ledger: 1, Entry: 2, Partition: -1, BatchIndex: -1}}
			c.Append(dst, 0, body)
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
