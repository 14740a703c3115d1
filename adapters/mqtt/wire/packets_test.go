package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

var limits = Limits{Packet: 1 << 20, Topic: 1024, Levels: 32, Filters: 100, UserProperties: 64}

// recode parses one whole packet and encodes what was understood.
func recode(b []byte, v Version) ([]byte, error) {
	h, body, n, err := Split(b, v, limits.Packet)
	if err != nil {
		return nil, err
	}
	if n == 0 || n != len(b) {
		return nil, errors.New("not one whole packet")
	}
	switch h.Type {
	case CONNECT:
		var p Connect
		if err := p.Parse(body, &limits); err != nil {
			return nil, err
		}
		return p.Append(nil), nil
	case CONNACK:
		var p Connack
		if err := p.Parse(body, v, &limits); err != nil {
			return nil, err
		}
		return p.Append(nil, v), nil
	case PUBLISH:
		var p Publish
		if err := p.Parse(h.Flags, body, v, &limits); err != nil {
			return nil, err
		}
		return p.Append(nil, v), nil
	case PUBACK, PUBREC, PUBREL, PUBCOMP:
		var p Ack
		if err := p.Parse(h.Type, body, v, &limits); err != nil {
			return nil, err
		}
		return p.Append(nil, h.Type, v), nil
	case SUBSCRIBE:
		var p Subscribe
		if err := p.Parse(body, v, &limits); err != nil {
			return nil, err
		}
		return p.Append(nil, v), nil
	case SUBACK, UNSUBACK:
		var p Suback
		if err := p.Parse(h.Type, body, v, &limits); err != nil {
			return nil, err
		}
		return p.Append(nil, h.Type, v), nil
	case UNSUBSCRIBE:
		var p Unsubscribe
		if err := p.Parse(body, v, &limits); err != nil {
			return nil, err
		}
		return p.Append(nil, v), nil
	case PINGREQ, PINGRESP:
		if err := ParsePing(body); err != nil {
			return nil, err
		}
		return AppendPing(nil, h.Type), nil
	}
	var p Disconnect
	if err := p.Parse(h.Type, body, v, &limits); err != nil {
		return nil, err
	}
	return p.Append(nil, h.Type, v), nil
}

// unhex reads hex with spaces and comments from // to the end of a line.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	var clean strings.Builder
	for line := range strings.Lines(s) {
		code, _, _ := strings.Cut(line, "//")
		clean.WriteString(strings.Join(strings.Fields(code), ""))
	}
	b, err := hex.DecodeString(clean.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// golden packets are in their canonical form: what is parsed encodes to the same bytes.
var golden = []struct {
	name string
	v    Version
	hex  string
}{
	{"CONNECT 3.1", V31, `10 0f
		0006 4d5149736470 // MQIsdp
		03 02 003c        // level, clean session, keep alive 60
		0001 61           // client id`},
	{"CONNECT 3.1.1 will and credentials", V311, `10 1e
		0004 4d515454 04
		ee 000a           // user, password, will retain, will QoS 1, will, clean
		0001 61           // client id
		0003 772f74       // will topic w/t
		0002 6279         // will payload
		0002 7573         // user name
		0002 7077         // password`},
	{"CONNECT 5 with everything", V5, `10 36
		0004 4d515454 05
		26 0000           // will retain, will, clean
		14                // properties
		  11 0000000a     // session expiry
		  17 00           // request problem information
		  19 01           // request response information
		  21 0014         // receive maximum
		  22 000a         // topic alias maximum
		  27 00010000     // maximum packet size
		0000              // client id: assign one
		0f                // will properties
		  01 01           // payload format
		  02 00000005     // message expiry
		  03 0000         // content type
		  09 0002 beef    // correlation data
		0001 77           // will topic
		0000              // will payload`},
	{"CONNACK 3.1.1", V311, "20 02 01 00"},
	{"CONNACK 5", V5, `20 0d 00 00 0a
		21 0400           // receive maximum
		24 01             // maximum QoS
		27 00000100       // maximum packet size`},
	{"PUBLISH QoS 0", V311, "30 05 0001 61 6869"},
	{"PUBLISH QoS 1 retain dup", V311, "3b 06 0001 61 0007 21"},
	{"PUBLISH 5 without properties", V5, "32 07 0001 61 0007 00 21"},
	{"PUBLISH 5 with properties", V5, `32 2b 0001 61 0007 24
		01 01             // payload format
		02 0000003c       // message expiry
		03 0001 74        // content type
		08 0001 72        // response topic
		09 0001 63        // correlation data
		23 0002           // topic alias
		26 0001 6b 0001 76 // user property
		26 0001 6b 0001 77 // again, with another value
		21                // payload`},
	{"PUBLISH 5 by alias", V5, "30 06 0000 03 230001"},
	{"PUBLISH 5 to a subscriber", V5, "30 09 0001 61 05 0b 01 0b 80 01"},
	{"PUBACK", V311, "40 02 0007"},
	{"PUBACK 5 with reason", V5, "40 03 0007 87"},
	{"PUBACK 5 with reason string", V5, "40 08 0007 87 04 1f 0001 78"},
	{"PUBREC", V311, "50 02 0007"},
	{"PUBREL", V311, "62 02 0007"},
	{"PUBCOMP 5", V5, "70 03 0007 92"},
	{"SUBSCRIBE 3.1.1", V311, "82 0c 0001 0001 61 01 0003 622f23 00"},
	{"SUBSCRIBE 5", V5, `82 0a 0001
		03 0b 80 01       // subscription identifier 128
		0001 61 2d        // retain handling 2, as published, no local, QoS 1`},
	{"SUBACK 3.1.1", V311, "90 05 0001 00 01 80"},
	{"SUBACK 5", V5, "90 05 0001 00 01 8f"},
	{"UNSUBSCRIBE", V311, "a2 05 0001 0001 61"},
	{"UNSUBSCRIBE 5", V5, "a2 06 0001 00 0001 61"},
	{"UNSUBACK 3.1.1", V311, "b0 02 0001"},
	{"UNSUBACK 5", V5, "b0 05 0001 00 00 11"},
	{"PINGREQ", V311, "c0 00"},
	{"PINGRESP", V311, "d0 00"},
	{"DISCONNECT", V311, "e0 00"},
	{"DISCONNECT 5 with reason", V5, "e0 01 8e"},
	{"DISCONNECT 5 with session expiry", V5, "e0 07 00 05 11 00000000"},
	{"AUTH 5", V5, "f0 08 18 06 15 0003 782d79"},
}

func TestGolden(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			want := unhex(t, g.hex)
			got, err := recode(want, g.v)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("\ngot  %x\nwant %x", got, want)
			}
		})
	}
}

// Every packet cut at every byte is incomplete, and a packet whose body is cut is refused or understood, never
// a panic.
func TestTruncatedAtEveryByte(t *testing.T) {
	for _, g := range golden {
		whole := unhex(t, g.hex)
		for i := range whole {
			if _, _, n, err := Split(whole[:i], g.v, 0); n != 0 || err != nil {
				t.Fatalf("%s cut at %d: n=%d err=%v", g.name, i, n, err)
			}
			if i >= 2 {
				cut := append([]byte{whole[0], byte(i - 2)}, whole[2:i]...)
				recode(cut, g.v)
			}
		}
	}
}

// What a peer may send that must be refused, with the reason it is told.
var refused = []struct {
	name string
	v    Version
	hex  string
	want Reason
}{
	// Spec: MQTT5 2.1.3 [MQTT-2.1.3-1]
	{"reserved type", V311, "00 00", MalformedPacket},
	{"PINGREQ with flags", V311, "c1 00", MalformedPacket},
	{"SUBSCRIBE with flags 0", V311, "80 06 0001 0001 61 00", MalformedPacket},
	// Spec: MQTT5 1.5.5 [MQTT-1.5.5-1]
	{"remaining length of five bytes", V311, "c0 80 80 80 80 01", MalformedPacket},
	{"remaining length longer than needed", V311, "c0 80 00", MalformedPacket},
	{"packet over the limit", V311, "30 ff ff ff 7f", PacketTooLarge},
	// Spec: MQTT5 3.1.2.3 [MQTT-3.1.2-3]
	{"reserved connect flag", V311, "10 0d 0004 4d515454 04 03 003c 0001 61", MalformedPacket},
	// Spec: MQTT5 3.1.2.6 [MQTT-3.1.2-11]; MQTT5 3.1.2.7 [MQTT-3.1.2-13]
	{"will QoS without will", V311, "10 0d 0004 4d515454 04 0a 003c 0001 61", MalformedPacket},
	{"will retain without will", V311, "10 0d 0004 4d515454 04 22 003c 0001 61", MalformedPacket},
	// Spec: MQTT5 3.1.2.6 [MQTT-3.1.2-12]
	{"will QoS 3", V311, "10 12 0004 4d515454 04 1e 003c 0001 61 0001 77 0000", MalformedPacket},
	// Spec: MQTT3 3.1.2.9 [MQTT-3.1.2-22]
	{"3.1.1 password without user", V311, "10 10 0004 4d515454 04 42 003c 0001 61 0001 70", MalformedPacket},
	{"bytes after CONNECT", V311, "10 0e 0004 4d515454 04 02 003c 0001 61 00", MalformedPacket},
	{"wrong protocol name", V311, "10 0d 0004 4d515458 04 02 003c 0001 61", ProtocolError},
	{"unknown level", V311, "10 0d 0004 4d515454 06 02 003c 0001 61", UnsupportedVersion},
	// Spec: MQTT5 1.5.4 [MQTT-1.5.4-1] [MQTT-1.5.4-2]
	{"user name not UTF-8", V311, "10 10 0004 4d515454 04 82 003c 0001 61 0001 ff", MalformedPacket},
	{"client id with NUL", V311, "10 0d 0004 4d515454 04 02 003c 0001 00", MalformedPacket},
	{"surrogate in client id", V311, "10 0f 0004 4d515454 04 02 003c 0003 eda080", MalformedPacket},
	{"receive maximum twice", V5, "10 14 0004 4d515454 05 02 003c 06 210001 210001 0001 61", ProtocolError},
	{"receive maximum 0", V5, "10 11 0004 4d515454 05 02 003c 03 210000 0001 61", ProtocolError},
	{"maximum packet size 0", V5, "10 13 0004 4d515454 05 02 003c 05 2700000000 0001 61", ProtocolError},
	{"request problem information 2", V5, "10 10 0004 4d515454 05 02 003c 02 1702 0001 61", ProtocolError},
	{"auth data without method", V5, "10 12 0004 4d515454 05 02 003c 04 160001 78 0001 61", ProtocolError},
	{"property crosses the list's end", V5, "10 10 0004 4d515454 05 02 003c 02 2100 01 0001", MalformedPacket},
	// Spec: MQTT5 3.3.1.1 [MQTT-3.3.1-2]; MQTT5 3.3.1.2 [MQTT-3.3.1-4]
	{"QoS 3", V311, "36 05 0001 61 0001", MalformedPacket},
	{"DUP at QoS 0", V311, "38 03 0001 61", MalformedPacket},
	// Spec: MQTT5 2.2.1 [MQTT-2.2.1-3]
	{"packet id 0", V311, "32 05 0001 61 0000", ProtocolError},
	// Spec: MQTT5 3.3.2.1 [MQTT-3.3.2-2]; MQTT5 4.7.3 [MQTT-4.7.3-1]
	{"topic with wildcard", V311, "30 03 0001 23", MalformedPacket},
	{"empty topic", V311, "30 02 0000", MalformedPacket},
	{"empty topic without alias", V5, "30 03 0000 00", MalformedPacket},
	{"topic not UTF-8", V311, "30 04 0002 c3 28", MalformedPacket},
	{"33 levels", V311, "30 22 0020 " + strings.Repeat("2f", 32), TopicNameInvalid},
	{"message expiry twice", V5, "30 0e 0001 61 0a 0200000001 0200000001", ProtocolError},
	{"payload format 2", V5, "30 06 0001 61 02 0102", ProtocolError},
	// Spec: MQTT5 3.3.2.3.5 [MQTT-3.3.2-14]
	{"wildcard in response topic", V5, "30 08 0001 61 04 08 0001 23", ProtocolError},
	{"property of another packet", V5, "30 07 0001 61 03 210001", ProtocolError},
	{"unknown property", V5, "30 06 0001 61 02 7f01", MalformedPacket},
	{"unknown PUBACK reason", V5, "40 03 0001 7f", ProtocolError},
	{"PUBACK reason of CONNACK", V5, "40 03 0001 85", ProtocolError},
	// Spec: MQTT5 3.8.3 [MQTT-3.8.3-2]
	{"SUBSCRIBE without filter", V311, "82 02 0001", ProtocolError},
	{"SUBSCRIBE without options", V5, "82 06 0001 00 0001 61", MalformedPacket},
	// Spec: MQTT5 3.8.3.1 [MQTT-3.8.3-5]
	{"subscription QoS 3", V311, "82 06 0001 0001 61 03", MalformedPacket},
	{"reserved subscription options", V5, "82 07 0001 00 0001 61 40", MalformedPacket},
	{"retain handling 3", V5, "82 07 0001 00 0001 61 30", ProtocolError},
	{"subscription identifier 0", V5, "82 09 0001 02 0b00 0001 61 00", ProtocolError},
	{"two subscription identifiers", V5, "82 0b 0001 04 0b01 0b02 0001 61 00", ProtocolError},
	// Spec: MQTT5 3.10.3 [MQTT-3.10.3-2]
	{"UNSUBSCRIBE without filter", V311, "a2 02 0001", ProtocolError},
	{"PINGREQ with a body", V311, "c0 01 00", MalformedPacket},
	{"3.1.1 DISCONNECT with a body", V311, "e0 01 00", MalformedPacket},
	{"user property not UTF-8", V5, "e0 09 00 07 26 0001 ff 0001 61", MalformedPacket},
}

func TestRefused(t *testing.T) {
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			if tt.want != PacketTooLarge && len(b) > 2 && b[1] < 0x80 {
				b[1] = byte(len(b) - 2)
			}
			_, err := recode(b, tt.v)
			var e *Error
			if !errors.As(err, &e) || e.Reason != tt.want {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// Rare and legal: a decoder that is too strict loses real devices.
func TestAccepted(t *testing.T) {
	for name, h := range map[string]struct {
		v   Version
		hex string
	}{
		"empty will payload":             {V311, "10 11 0004 4d515454 04 06 003c 0001 61 0001 77 0000"},
		"empty password":                 {V311, "10 12 0004 4d515454 04 c2 003c 0001 61 0001 75 0000"},
		"5: password without user":       {V5, "10 12 0004 4d515454 05 42 003c 00 0001 61 0001 70"},
		"BOM in a topic is a character":  {V311, "30 05 0003 efbbbf"},
		"topic of one slash":             {V311, "30 03 0001 2f"},
		"SUBSCRIBE to an odd filter":     {V311, "82 07 0001 0002 2361 00"},
		"PUBACK 5 with empty properties": {V5, "40 04 0001 00 00"},
		"3.1 SUBSCRIBE with DUP":         {V31, "8a 06 0001 0001 61 00"},
	} {
		b := unhex(t, h.hex)
		b[1] = byte(len(b) - 2)
		if _, err := recode(b, h.v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidFilter(t *testing.T) {
	for f, want := range map[string]bool{
		"a": true, "#": true, "+": true, "a/#": true, "+/a": true, "a/+/c": true, "/": true, "//": true, "/+/#": true,
		"": false, "a#": false, "a/#/b": false, "#/a": false, "a+": false, "+a/b": false, "a/b+": false, "##": false, "a\x01": false,
	} {
		if ValidFilter(f, &limits) != want {
			t.Errorf("%q: want %v", f, want)
		}
	}
}
