package wire

import (
	"encoding/binary"
	"fmt"
)

// Command is a message that lists its fields once, for reading and for writing.
type Command interface{ fields(f *fields) }

// fields walks the fields of a Command. While reading, each step of the loop takes one field off the wire and the one
// call that names its number stores it; while writing, every call appends its field when there is something to say.
type fields struct {
	r       reader
	num, wt int
	hit     bool
	writing bool
	out     []byte
	need    uint64 // required fields, as bits
	seen    uint64
}

// Parse reads a command. Values that the bytes do not name keep what c had: set defaults first.
func Parse(b []byte, c Command) error {
	f := fields{r: reader{b: b}}
	for {
		var ok bool
		if f.num, f.wt, ok = f.r.next(); !ok {
			break
		}
		f.hit = false
		c.fields(&f)
		if !f.hit {
			f.r.skip(f.wt)
		}
	}
	f.num = 0
	c.fields(&f) // collects the required ones also when there was no field at all
	if f.r.err == nil && f.seen&f.need != f.need {
		f.r.err = fmt.Errorf("required field missing: %w", ErrMalformed)
	}
	if f.r.err != nil {
		return fmt.Errorf("%T: %w", c, f.r.err)
	}
	return nil
}

func appendFields(dst []byte, c Command) []byte {
	f := fields{writing: true, out: dst}
	c.fields(&f)
	return f.out
}

// at reports whether field num is the one to read now.
func (f *fields) at(num int) bool {
	if f.writing || f.num != num {
		return false
	}
	f.hit = true
	f.seen |= 1 << num
	return true
}

func (f *fields) require(num int) { f.need |= 1 << num }

// uint is a required unsigned field.
func (f *fields) uint(num int, v *uint64) {
	f.require(num)
	if f.writing {
		f.out = appendUint(f.out, num, *v)
	}
	if f.at(num) {
		*v = f.r.uint(f.wt)
	}
}

// optUint is an optional field with default 0.
func (f *fields) optUint(num int, v *uint64) {
	if f.writing && *v != 0 {
		f.out = appendUint(f.out, num, *v)
	}
	if f.at(num) {
		*v = f.r.uint(f.wt)
	}
}

// hasUint is an optional field whose presence matters.
func (f *fields) hasUint(num int, v *uint64, has *bool) {
	if f.writing && *has {
		f.out = appendUint(f.out, num, *v)
	}
	if f.at(num) {
		*v, *has = f.r.uint(f.wt), true
	}
}

// int is an optional int32 or enum with default def.
func (f *fields) int(num int, v *int32, def int32) {
	if f.writing && *v != def {
		f.out = appendUint(f.out, num, uint64(int64(*v)))
	}
	if f.at(num) {
		*v = int32(f.r.uint(f.wt))
	}
}

// reqInt is a required int32 or enum.
func (f *fields) reqInt(num int, v *int32) {
	f.require(num)
	if f.writing {
		f.out = appendUint(f.out, num, uint64(int64(*v)))
	}
	if f.at(num) {
		*v = int32(f.r.uint(f.wt))
	}
}

// long is an optional int64 with default def.
func (f *fields) long(num int, v *int64, def int64) {
	if f.writing && *v != def {
		f.out = appendUint(f.out, num, uint64(*v))
	}
	if f.at(num) {
		*v = int64(f.r.uint(f.wt))
	}
}

// bool is an optional field with default def.
func (f *fields) bool(num int, v *bool, def bool) {
	if f.writing && *v != def {
		b := uint64(0)
		if *v {
			b = 1
		}
		f.out = appendUint(f.out, num, b)
	}
	if f.at(num) {
		*v = f.r.uint(f.wt) != 0
	}
}

// str is an optional string; empty is not written.
func (f *fields) str(num int, v *string) {
	if f.writing && *v != "" {
		f.out = appendBytes(f.out, num, *v)
	}
	if f.at(num) {
		*v = string(f.r.raw(f.wt))
	}
}

// reqStr is a required string.
func (f *fields) reqStr(num int, v *string) {
	f.require(num)
	if f.writing {
		f.out = appendBytes(f.out, num, *v)
	}
	if f.at(num) {
		*v = string(f.r.raw(f.wt))
	}
}

// bytes is an optional byte string; nil is not written, empty is. What is read is a view.
func (f *fields) bytes(num int, v *[]byte) {
	if f.writing && *v != nil {
		f.out = appendBytes(f.out, num, *v)
	}
	if f.at(num) {
		*v = f.r.raw(f.wt)
	}
}

// reqBytes is a required byte string.
func (f *fields) reqBytes(num int, v *[]byte) {
	f.require(num)
	if f.writing {
		f.out = appendBytes(f.out, num, *v)
	}
	if f.at(num) {
		*v = f.r.raw(f.wt)
	}
}

// strs is a repeated string.
func (f *fields) strs(num int, v *[]string) {
	if f.writing {
		for _, s := range *v {
			f.out = appendBytes(f.out, num, s)
		}
	}
	if f.at(num) {
		*v = append(*v, string(f.r.raw(f.wt)))
	}
}

// longs is a repeated int64, packed or not.
func (f *fields) longs(num int, v *[]int64) {
	if f.writing {
		for _, x := range *v {
			f.out = appendUint(f.out, num, uint64(x))
		}
	}
	if !f.at(num) {
		return
	}
	*v = f.r.longs(f.wt, *v)
}

func (r *reader) longs(wt int, dst []int64) []int64 {
	if wt == wireVarint {
		return append(dst, int64(r.varint()))
	}
	packed := reader{b: r.raw(wt)}
	for len(packed.b) > 0 {
		dst = append(dst, int64(packed.varint()))
	}
	if packed.err != nil {
		r.fail("packed field")
	}
	return dst
}

// nested is an optional message. has tells whether it is there.
func (f *fields) nested(num int, c Command, has *bool) {
	if f.writing && *has {
		var start int
		f.out, start = openNested(f.out, num)
		f.out = closeNested(appendFields(f.out, c), start)
	}
	if f.at(num) {
		*has = true
		if err := Parse(f.r.raw(f.wt), c); err != nil && f.r.err == nil {
			f.r.err = err
		}
	}
}

// each is a repeated message: n of them to write, add makes room for one that is read.
func (f *fields) each(num, n int, at func(i int) Command, add func() Command) {
	for i := 0; f.writing && i < n; i++ {
		var start int
		f.out, start = openNested(f.out, num)
		f.out = closeNested(appendFields(f.out, at(i)), start)
	}
	if f.at(num) {
		if err := Parse(f.r.raw(f.wt), add()); err != nil && f.r.err == nil {
			f.r.err = err
		}
	}
}

// Append appends a whole frame with command c of type t.
func Append(dst []byte, t Type, c Command) []byte {
	dst, frame := openFrame(dst, t)
	dst, start := openNested(dst, int(t))
	if c != nil {
		dst = appendFields(dst, c)
	}
	return closeFrame(closeNested(dst, start), frame)
}

// openFrame reserves the two sizes and writes the type; closeFrame fills the sizes of a frame without payload.
func openFrame(dst []byte, t Type) ([]byte, int) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	return appendUint(dst, 1, uint64(t)), start
}

func closeFrame(dst []byte, start int) []byte {
	n := len(dst) - start
	binary.BigEndian.PutUint32(dst[start:], uint32(n-4))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(n-8))
	return dst
}
