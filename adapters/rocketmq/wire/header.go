package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Language is the client's language code.
type Language byte

// Languages that matter to the server.
const (
	Java  Language = 0
	CPP   Language = 1
	Other Language = 7
	Go    Language = 9
)

var languages = [...]string{"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS"}

func parseLanguage(name []byte) Language {
	for i, l := range languages {
		if l == string(name) {
			return Language(i)
		}
	}
	return Other
}

// Field is one ext field; both slices point into the frame.
type Field struct{ Key, Value []byte }

// Header is the envelope of a command. Its slices point into the frame it was parsed from.
type Header struct {
	Code     Code
	Language Language
	Version  int32
	Opaque   int32
	Flag     int32
	Remark   []byte
	Ext      []Field
}

// Oneway tells that the caller wants no answer.
func (h *Header) Oneway() bool { return h.Flag&FlagOneway != 0 }

// Response tells that this is an answer to a request of ours.
func (h *Header) Response() bool { return h.Flag&FlagResponse != 0 }

// maxExt bounds the ext fields of one header; real requests have at most about twenty.
const maxExt = 128

func (h *Header) reset() { *h = Header{Language: Other, Ext: h.Ext[:0]} }

func (h *Header) add(key, value []byte) error {
	if len(h.Ext) >= maxExt {
		return fmt.Errorf("%w: more than %d ext fields", ErrMalformed, maxExt)
	}
	h.Ext = append(h.Ext, Field{key, value})
	return nil
}

// Get returns an ext field, nil when it is absent.
func (h *Header) Get(key string) []byte {
	for i := range h.Ext {
		if string(h.Ext[i].Key) == key {
			return h.Ext[i].Value
		}
	}
	return nil
}

// String returns an ext field as a string of its own.
func (h *Header) String(key string) string { return string(h.Get(key)) }

// Int reads a required number.
func (h *Header) Int(key string) (int64, error) {
	v := h.Get(key)
	if v == nil {
		return 0, fmt.Errorf("%w: the custom field <%s> is null", ErrMalformed, key)
	}
	return parseInt(key, v)
}

func parseInt(key string, v []byte) (int64, error) {
	n, ok := atoi(v)
	if !ok {
		return 0, fmt.Errorf("%w: the custom field <%s> is no number", ErrMalformed, key)
	}
	return n, nil
}

func parseInt32(key string, v []byte) (int32, error) {
	n, err := parseInt(key, v)
	if err == nil && (n < math.MinInt32 || n > math.MaxInt32) {
		err = fmt.Errorf("%w: the custom field <%s> is out of range", ErrMalformed, key)
	}
	return int32(n), err
}

// atoi is strconv.ParseInt over bytes without the error value and without allocation.
func atoi(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	neg := b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case neg && n <= 1<<63:
		return -int64(n), true
	case !neg && n < 1<<63:
		return int64(n), true
	}
	return 0, false
}

// parseBinary decodes the ROCKETMQ header form.
//
// Spec: RocketMQ RocketMQSerializable@5.x
func (h *Header) parseBinary(b []byte) error {
	h.reset()
	r := reader{b: b}
	h.Code = int32(int16(r.u16()))
	h.Language = Language(r.u8())
	h.Version = int32(int16(r.u16()))
	h.Opaque = int32(r.u32())
	h.Flag = int32(r.u32())
	h.Remark = r.take(int64(int32(r.u32())))
	ext := reader{b: r.take(int64(int32(r.u32())))}
	if r.bad {
		return fmt.Errorf("%w: binary header is cut short", ErrMalformed)
	}
	for len(ext.b) > 0 {
		key := ext.take(int64(ext.u16()))
		value := ext.take(int64(int32(ext.u32())))
		if ext.bad {
			return fmt.Errorf("%w: ext fields are cut short", ErrMalformed)
		}
		if err := h.add(key, value); err != nil {
			return err
		}
	}
	return nil
}

// AppendBinary writes the ROCKETMQ form; the server never sends it, tests and links do.
func (h *Header) AppendBinary(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Code))
	dst = append(dst, byte(h.Language))
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Opaque))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Flag))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(h.Remark)))
	dst = append(dst, h.Remark...)
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, f := range h.Ext {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(f.Key)))
		dst = append(dst, f.Key...)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.Value)))
		dst = append(dst, f.Value...)
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// AppendJSON writes the JSON form of a request.
func (h *Header) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(h.Code), 10)
	dst = append(dst, `,"language":"`...)
	lang := languages[Other]
	if int(h.Language) < len(languages) {
		lang = languages[h.Language]
	}
	dst = append(dst, lang...)
	dst = append(dst, `","version":`...)
	dst = strconv.AppendInt(dst, int64(h.Version), 10)
	dst = append(dst, `,"opaque":`...)
	dst = strconv.AppendInt(dst, int64(h.Opaque), 10)
	dst = append(dst, `,"flag":`...)
	dst = strconv.AppendInt(dst, int64(h.Flag), 10)
	if len(h.Remark) > 0 {
		dst = append(dst, `,"remark":`...)
		dst = appendQuoted(dst, h.Remark)
	}
	dst = append(dst, `,"extFields":{`...)
	for i, f := range h.Ext {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(dst, f.Key)
		dst = append(dst, ':')
		dst = appendQuoted(dst, f.Value)
	}
	return append(dst, `}}`...)
}
