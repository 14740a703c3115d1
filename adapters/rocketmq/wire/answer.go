package wire

import (
	"encoding/binary"
	"strconv"
)

// BrokerVersion is what answers claim. Java clients refuse SQL92 below 232, and later features only above 400.
//
// Spec: RocketMQ MQVersion@5.x
const BrokerVersion = 407

// Answer writes one response frame onto a buffer: Begin, then ext fields, then Body, then End. Answers are JSON whatever
// form the request had; both sides decode each frame by its own type byte.
type Answer struct {
	Dst    []byte // grows; the body is appended here after Body
	start  int
	opaque int32
	ext    bool
	body   bool
}

// Begin opens the answer to the request with this opaque. A remark is left out when empty.
func Begin(dst []byte, code Code, opaque int32, remark string) Answer {
	a := Answer{start: len(dst), opaque: opaque}
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	if remark != "" {
		dst = append(dst, `,"remark":`...)
		dst = appendQuoted(dst, remark)
	}
	a.Dst = append(dst, `,"extFields":{`...) // always there: Java reads it without a nil check
	return a
}

func (a *Answer) key(k string) {
	if a.ext {
		a.Dst = append(a.Dst, ',')
	}
	a.ext = true
	a.Dst = append(a.Dst, '"')
	a.Dst = append(a.Dst, k...)
	a.Dst = append(a.Dst, '"', ':')
}

// Str adds a text field; k must need no escaping.
func (a *Answer) Str(k, v string) {
	a.key(k)
	a.Dst = appendQuoted(a.Dst, v)
}

// Bytes adds a text field.
func (a *Answer) Bytes(k string, v []byte) {
	a.key(k)
	a.Dst = appendQuoted(a.Dst, v)
}

// Int adds a number, as text like every ext field.
func (a *Answer) Int(k string, v int64) {
	a.key(k)
	a.Dst = append(a.Dst, '"')
	a.Dst = strconv.AppendInt(a.Dst, v, 10)
	a.Dst = append(a.Dst, '"')
}

// Body closes the header; what is appended to Dst from here on is the body.
func (a *Answer) Body() {
	a.body = true
	// The language is one that every client knows: older ones reject names they have never heard of.
	a.Dst = append(a.Dst, `},"flag":1,"language":"JAVA","opaque":`...)
	a.Dst = strconv.AppendInt(a.Dst, int64(a.opaque), 10)
	a.Dst = append(a.Dst, `,"serializeTypeCurrentRPC":"JSON","version":`...)
	a.Dst = strconv.AppendInt(a.Dst, BrokerVersion, 10)
	a.Dst = append(a.Dst, '}')
	binary.BigEndian.PutUint32(a.Dst[a.start+4:], uint32(len(a.Dst)-a.start-8))
}

// End fills in the frame length and returns the buffer. Without a body, Body need not be called.
func (a *Answer) End() []byte {
	if !a.body {
		a.Body()
	}
	binary.BigEndian.PutUint32(a.Dst[a.start:], uint32(len(a.Dst)-a.start-4))
	return a.Dst
}

// AppendFrame writes a request frame in JSON form. The broker uses it for its own calls to clients.
func AppendFrame(dst []byte, h *Header, body []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = h.AppendJSON(dst)
	binary.BigEndian.PutUint32(dst[start+4:], uint32(len(dst)-start-8))
	dst = append(dst, body...)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}
