package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by every error that means: these bytes are not what the protocol promises.
var ErrMalformed = errors.New("malformed")

// Wire types of protobuf.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// reader takes protobuf fields off the front of b. After the first error everything is zero and next says false, so a
// parser needs to look once, at the end.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", what, ErrMalformed)
	}
	r.b = nil
}

// next reads the tag of the next field.
func (r *reader) next() (num, wt int, ok bool) {
	if len(r.b) == 0 || r.err != nil {
		return 0, 0, false
	}
	tag := r.varint()
	num, wt = int(tag>>3), int(tag&7)
	if tag > 1<<32-1 || num == 0 {
		r.fail("field number")
	}
	return num, wt, r.err == nil
}

func (r *reader) varint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := uint64(r.b[0])
		r.b = r.b[1:]
		return v
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("varint")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.varint()
	if n > uint64(len(r.b)) {
		r.fail("length")
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// skip passes over a field that nobody asked for.
func (r *reader) skip(wt int) {
	switch wt {
	case wireVarint:
		r.varint()
	case wireBytes:
		r.bytes()
	case wire64:
		r.drop(8)
	case wire32:
		r.drop(4)
	default: // groups were never used by this protocol
		r.fail("wire type")
	}
}

func (r *reader) drop(n int) {
	if len(r.b) < n {
		r.fail("fixed field")
		return
	}
	r.b = r.b[n:]
}

// uint and raw read a field of an expected wire type; another one is malformed.
func (r *reader) uint(wt int) uint64 {
	if wt != wireVarint {
		r.fail("wire type")
		return 0
	}
	return r.varint()
}

func (r *reader) raw(wt int) []byte {
	if wt != wireBytes {
		r.fail("wire type")
		return nil
	}
	return r.bytes()
}

func appendTag(dst []byte, num, wt int) []byte {
	return binary.AppendUvarint(dst, uint64(num)<<3|uint64(wt))
}

func appendUint(dst []byte, num int, v uint64) []byte {
	return binary.AppendUvarint(appendTag(dst, num, wireVarint), v)
}

func appendBytes[T ~string | ~[]byte](dst []byte, num int, v T) []byte {
	dst = binary.AppendUvarint(appendTag(dst, num, wireBytes), uint64(len(v)))
	return append(dst, v...)
}

// openNested starts a length-delimited field whose size is not known yet; closeNested writes the size.
func openNested(dst []byte, num int) ([]byte, int) {
	dst = append(appendTag(dst, num, wireBytes), 0)
	return dst, len(dst)
}

func closeNested(dst []byte, start int) []byte {
	n := len(dst) - start
	if n < 0x80 {
		dst[start-1] = byte(n)
		return dst
	}
	var size [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(size[:], uint64(n))
	dst = append(dst, size[:k-1]...) // room for the longer size
	copy(dst[start-1+k:], dst[start:start+n])
	copy(dst[start-1:], size[:k])
	return dst
}
