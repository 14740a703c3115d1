package wire_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"isthmus/adapters/pulsar/wire"
	"isthmus/adapters/pulsar/wire/wiretest"
)

// Frames that a stock client sent are read as what they are, and where the codec is symmetric it writes the same bytes.
func TestFramesOfTheGoClient(t *testing.T) {
	b, err := os.ReadFile("testdata/go-client-0.19.txt")
	if err != nil {
		t.Fatal(err)
	}
	parse := map[string]wiretest.Sample{}
	for _, s := range wiretest.Samples() {
		parse[s.Type.String()] = s
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "#" {
			continue
		}
		frame, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		f, n, err := wire.Split(frame, 1<<20)
		if err != nil || n != len(frame) || f.Type.String() != name {
			t.Fatalf("%s: %v, %d of %d bytes: %v", name, f.Type, n, len(frame), err)
		}
		v := parse[name].Fresh()
		if err := parse[name].Parse(f.Command, v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		switch c := v.(type) {
		case *wire.Flow:
			same(t, c.Append(nil), frame)
		case *wire.Ack:
			same(t, c.Append(nil), frame)
		case *wire.Close:
			same(t, wire.Append(nil, f.Type, c), frame)
		case *wire.GetLastMessageID:
			same(t, wire.Append(nil, f.Type, c), frame)
		case *wire.Send:
			message(t, f, c)
		}
		seen[name] = true
	}
	for _, name := range []string{"CONNECT", "LOOKUP", "PRODUCER", "SEND", "SUBSCRIBE", "FLOW", "ACK", "UNSUBSCRIBE", "CLOSE_CONSUMER"} {
		if !seen[name] {
			t.Errorf("no %s", name)
		}
	}
}

func same(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("\n got %x\nwant %x", got, want)
	}
}

// message reads what a SEND carries, down to the bodies.
func message(t *testing.T, f wire.Frame, c *wire.Send) {
	t.Helper()
	p, err := wire.ParsePayload(f.Payload)
	if err != nil || !p.HasSum || p.Sum != wire.Checksum(p.Checked) {
		t.Fatalf("checksum 0x%x, computed 0x%x, %v", p.Sum, wire.Checksum(p.Checked), err)
	}
	var m wire.Metadata
	if err := m.Parse(p.Metadata); err != nil {
		t.Fatal(err)
	}
	body, err := wire.Decompress(m.Compression, p.Body, m.UncompressedSize, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if !m.Batch {
		got = []string{string(body)}
	}
	for m.Batch && len(body) > 0 {
		var s wire.Single
		if body, err = s.Next(body); err != nil {
			t.Fatal(err)
		}
		got = append(got, string(s.Body))
	}
	want := map[uint64]string{1: "plain", 2: "one two three", 3: "compressed compressed compressed"}[c.ProducerID]
	if strings.Join(got, " ") != want || int(c.NumMessages) != len(got) || int(m.NumMessages) != len(got) {
		t.Errorf("producer %d sent %q", c.ProducerID, got)
	}
	if c.ProducerID == 1 && (string(m.Key) != "k" || string(m.OrderingKey) != "o" || m.EventTime != 1700000000123) {
		t.Errorf("metadata %+v", m)
	}
}
