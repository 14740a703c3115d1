package wire

import "encoding/binary"

// PropertyID is the identifier of a version 5 property.
type PropertyID byte

// Spec: MQTT5 2.2.2.2
const (
	PayloadFormat       PropertyID = 0x01
	MessageExpiry       PropertyID = 0x02
	ContentType         PropertyID = 0x03
	ResponseTopic       PropertyID = 0x08
	CorrelationData     PropertyID = 0x09
	SubscriptionID      PropertyID = 0x0B
	SessionExpiry       PropertyID = 0x11
	AssignedClientID    PropertyID = 0x12
	ServerKeepAlive     PropertyID = 0x13
	AuthMethod          PropertyID = 0x15
	AuthData            PropertyID = 0x16
	RequestProblemInfo  PropertyID = 0x17
	WillDelay           PropertyID = 0x18
	RequestResponseInfo PropertyID = 0x19
	ResponseInfo        PropertyID = 0x1A
	ServerReference     PropertyID = 0x1C
	ReasonString        PropertyID = 0x1F
	ReceiveMaximum      PropertyID = 0x21
	TopicAliasMaximum   PropertyID = 0x22
	TopicAlias          PropertyID = 0x23
	MaximumQoS          PropertyID = 0x24
	RetainAvailable     PropertyID = 0x25
	UserProperty        PropertyID = 0x26
	MaximumPacketSize   PropertyID = 0x27
	WildcardAvailable   PropertyID = 0x28
	SubIDAvailable      PropertyID = 0x29
	SharedAvailable     PropertyID = 0x2A
	maxPropertyID                  = 0x2A
)

type kind byte

const (
	none kind = iota
	kByte
	kTwo
	kFour
	kVarint
	kText
	kBinary
	kPair
)

// property is a row of the table: how a value is encoded, where its slot is, where it may stand, what it may be.
type property struct {
	kind     kind
	slot     byte
	in       uint16
	min, max uint32 // of a number; max 0: no bound
}

var acks = in(PUBACK, PUBREC, PUBREL, PUBCOMP)

// table is the one place that knows properties. Slots number the values of a kind of storage.
// Spec: MQTT5 2.2.2.2 table 2-4
var table = [maxPropertyID + 1]property{
	PayloadFormat:       {kByte, 0, in(PUBLISH, will), 0, 1},
	MessageExpiry:       {kFour, 1, in(PUBLISH, will), 0, 0},
	SessionExpiry:       {kFour, 2, in(CONNECT, CONNACK, DISCONNECT), 0, 0},
	ServerKeepAlive:     {kTwo, 3, in(CONNACK), 0, 0},
	RequestProblemInfo:  {kByte, 4, in(CONNECT), 0, 1},
	WillDelay:           {kFour, 5, in(will), 0, 0},
	RequestResponseInfo: {kByte, 6, in(CONNECT), 0, 1},
	ReceiveMaximum:      {kTwo, 7, in(CONNECT, CONNACK), 1, 0},
	TopicAliasMaximum:   {kTwo, 8, in(CONNECT, CONNACK), 0, 0},
	TopicAlias:          {kTwo, 9, in(PUBLISH), 0, 0}, // 0 is the session's to refuse: it has a reason of its own
	MaximumQoS:          {kByte, 10, in(CONNACK), 0, 1},
	RetainAvailable:     {kByte, 11, in(CONNACK), 0, 1},
	MaximumPacketSize:   {kFour, 12, in(CONNECT, CONNACK), 1, 0},
	WildcardAvailable:   {kByte, 13, in(CONNACK), 0, 1},
	SubIDAvailable:      {kByte, 14, in(CONNACK), 0, 1},
	SharedAvailable:     {kByte, 15, in(CONNACK), 0, 1},

	ContentType:      {kText, 0, in(PUBLISH, will), 0, 0},
	ResponseTopic:    {kText, 1, in(PUBLISH, will), 0, 0},
	CorrelationData:  {kBinary, 2, in(PUBLISH, will), 0, 0},
	AssignedClientID: {kText, 3, in(CONNACK), 0, 0},
	AuthMethod:       {kText, 4, in(CONNECT, CONNACK, AUTH), 0, 0},
	AuthData:         {kBinary, 5, in(CONNECT, CONNACK, AUTH), 0, 0},
	ResponseInfo:     {kText, 6, in(CONNACK), 0, 0},
	ServerReference:  {kText, 7, in(CONNACK, DISCONNECT), 0, 0},
	ReasonString:     {kText, 8, acks | in(CONNACK, SUBACK, UNSUBACK, DISCONNECT, AUTH), 0, 0},

	SubscriptionID: {kVarint, 0, in(PUBLISH, SUBSCRIBE), 1, 0},
	UserProperty: {kPair, 0, acks | in(CONNECT, CONNACK, PUBLISH, will, SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK,
		DISCONNECT, AUTH), 0, 0},
}

// Pair is one user property, as views.
type Pair struct{ Key, Value []byte }

// Properties of one packet. Values are views into what was parsed.
type Properties struct {
	User            []Pair   // in order, names may repeat
	SubscriptionIDs []uint32 // several only in a PUBLISH to a client

	set  uint64 // bit per identifier
	nums [16]uint32
	text [9][]byte
}

// Reset empties p and keeps its lists' memory.
func (p *Properties) Reset() {
	p.set, p.User, p.SubscriptionIDs = 0, p.User[:0], p.SubscriptionIDs[:0]
}

// Has tells whether a single-valued property is there.
func (p *Properties) Has(id PropertyID) bool { return p.set&(1<<id) != 0 }

// Num returns a numeric property, or the given default.
func (p *Properties) Num(id PropertyID, absent uint32) uint32 {
	if !p.Has(id) {
		return absent
	}
	return p.nums[table[id].slot]
}

// Text returns a text or binary property; nil when absent.
func (p *Properties) Text(id PropertyID) []byte {
	if !p.Has(id) {
		return nil
	}
	return p.text[table[id].slot]
}

// SetNum sets a numeric property.
func (p *Properties) SetNum(id PropertyID, v uint32) {
	p.set |= 1 << id
	p.nums[table[id].slot] = v
}

// SetText sets a text or binary property.
func (p *Properties) SetText(id PropertyID, v []byte) {
	p.set |= 1 << id
	p.text[table[id].slot] = v
}

// parse reads a property list with its length. Before version 5 there is none.
// Spec: MQTT5 2.2.2 [MQTT-2.2.2-1]
func (p *Properties) parse(r *reader, v Version, place Type, l *Limits) {
	p.Reset()
	if v < V5 {
		return
	}
	n := int(r.varint())
	if n > len(r.b) {
		r.fail(errTruncated)
		return
	}
	list := reader{b: r.b[:n:n]}
	r.b = r.b[n:]
	for len(list.b) > 0 && list.err == nil {
		p.parseOne(&list, place, l)
	}
	if list.err != nil {
		r.fail(list.err)
	}
}

func (p *Properties) parseOne(r *reader, place Type, l *Limits) {
	id := PropertyID(r.u8())
	if id > maxPropertyID || table[id].kind == none {
		r.fail(malformed("unknown property"))
		return
	}
	row := &table[id]
	if row.in&(1<<place) == 0 {
		r.fail(protocol("property does not belong in this packet"))
		return
	}
	if row.kind != kPair && (row.kind != kVarint || place != PUBLISH) && p.Has(id) {
		r.fail(protocol("property stands twice"))
		return
	}
	p.set |= 1 << id
	switch row.kind {
	case kByte:
		p.number(r, row, uint32(r.u8()))
	case kTwo:
		p.number(r, row, uint32(r.u16()))
	case kFour:
		p.number(r, row, r.u32())
	case kVarint:
		if v := r.varint(); v == 0 {
			r.fail(protocol("subscription identifier 0"))
		} else {
			p.SubscriptionIDs = append(p.SubscriptionIDs, v)
		}
	case kText:
		p.text[row.slot] = r.text()
		if id == ResponseTopic && !topicLike(p.text[row.slot]) {
			r.fail(protocol("wildcard in the response topic"))
		}
	case kBinary:
		p.text[row.slot] = r.bytes()
	case kPair:
		p.User = append(p.User, Pair{r.text(), r.text()})
		if l.UserProperties > 0 && len(p.User) > l.UserProperties {
			r.fail(&Error{QuotaExceeded, "too many user properties"})
		}
	case none:
	}
}

func (p *Properties) number(r *reader, row *property, v uint32) {
	if v < row.min || row.max > 0 && v > row.max {
		r.fail(protocol("property value is out of range"))
	}
	p.nums[row.slot] = v
}

// Spec: MQTT5 3.3.2.3.5 [MQTT-3.3.2-14]
func topicLike(b []byte) bool {
	for _, c := range b {
		if c == '+' || c == '#' {
			return false
		}
	}
	return true
}

// append writes the list with its length; before version 5 nothing.
func (p *Properties) append(dst []byte, v Version) []byte {
	if v < V5 {
		return dst
	}
	return p.AppendList(appendVarint(dst, p.size()))
}

// sizeWithLength is what append will add.
func (p *Properties) sizeWithLength(v Version) int {
	if v < V5 {
		return 0
	}
	n := p.size()
	return varintLen(n) + n
}

// AppendList writes the properties without the length of the list, in the order of their identifiers.
func (p *Properties) AppendList(dst []byte) []byte {
	for id := PropertyID(1); id <= maxPropertyID; id++ {
		row := &table[id]
		switch {
		case row.kind == kVarint:
			for _, s := range p.SubscriptionIDs {
				dst = appendVarint(append(dst, byte(id)), int(s))
			}
		case row.kind == kPair:
			for i := range p.User {
				dst = appendBytes(appendBytes(append(dst, byte(id)), p.User[i].Key), p.User[i].Value)
			}
		case !p.Has(id):
		case row.kind == kByte:
			dst = append(dst, byte(id), byte(p.nums[row.slot]))
		case row.kind == kTwo:
			dst = binary.BigEndian.AppendUint16(append(dst, byte(id)), uint16(p.nums[row.slot]))
		case row.kind == kFour:
			dst = binary.BigEndian.AppendUint32(append(dst, byte(id)), p.nums[row.slot])
		default:
			dst = appendBytes(append(dst, byte(id)), p.text[row.slot])
		}
	}
	return dst
}

func (p *Properties) size() (n int) {
	for _, s := range p.SubscriptionIDs {
		n += 1 + varintLen(int(s))
	}
	for i := range p.User {
		n += 5 + len(p.User[i].Key) + len(p.User[i].Value)
	}
	for id := PropertyID(1); id <= maxPropertyID; id++ {
		if !p.Has(id) {
			continue
		}
		switch row := &table[id]; row.kind {
		case kByte:
			n += 2
		case kTwo:
			n += 3
		case kFour:
			n += 5
		case kText, kBinary:
			n += 3 + len(p.text[row.slot])
		case none, kVarint, kPair:
		}
	}
	return n
}
