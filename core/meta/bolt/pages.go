package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"isthmus/core/meta"
)

// The file, as bbolt writes it: pages of one size, each led by id u64, flags u16, count u16, overflow u32. Pages 0 and 1 are
// the metas, with a checksum; the newest one names the root and the list of free pages. This reader trusts no byte: bbolt
// itself maps the file and follows what it finds.
const (
	pageHeader = 16
	elemSize   = 16
	metaSize   = 64

	flagBranch, flagLeaf, flagMeta, flagFree = 1, 2, 4, 16
	leafIsBucket                             = 1
	boltMagic, boltVersion                   = 0xED0CDAED, 2
	deepest                                  = 64
)

var le = binary.LittleEndian

// pages is a file under examination.
type pages struct {
	file   string
	data   []byte
	size   int64  // of a page
	high   uint64 // pages from here on are not in use
	used   map[uint64]bool
	errs   []*meta.Damage
	record func(bucket meta.Bucket, key, value []byte, at int64)
}

type metaPage struct {
	root, free, high, txid uint64
	pageSize               uint32
}

func (p *pages) damage(at int64, format string, args ...any) {
	p.errs = append(p.errs, &meta.Damage{File: p.file, Position: at, What: fmt.Sprintf(format, args...)})
}

func readMeta(b []byte) (m metaPage, ok bool) {
	if len(b) < pageHeader+metaSize || le.Uint16(b[8:]) != flagMeta {
		return m, false
	}
	b = b[pageHeader:][:metaSize]
	h := fnv.New64a()
	h.Write(b[:56])
	m = metaPage{root: le.Uint64(b[16:]), free: le.Uint64(b[32:]), high: le.Uint64(b[40:]), txid: le.Uint64(b[48:]), pageSize: le.Uint32(b[8:])}
	ok = le.Uint32(b) == boltMagic && le.Uint32(b[4:]) == boltVersion && h.Sum64() == le.Uint64(b[56:]) &&
		m.pageSize >= 512 && m.pageSize <= 1<<16 && m.pageSize&(m.pageSize-1) == 0
	return m, ok
}

// walk finds everything that is wrong, and hands out every record that it can reach.
func (p *pages) walk() {
	m, ok := p.metas()
	if !ok {
		return
	}
	p.high, p.used = m.high, map[uint64]bool{0: true, 1: true}
	if p.high < 2 || p.high > uint64(int64(len(p.data))/p.size) {
		p.damage(pageHeader+40, "%d pages, and the file has room for %d", p.high, int64(len(p.data))/p.size)
		return
	}
	p.tree(m.root, nil, 0)
	p.freelist(m.free)
	for id := range p.high {
		if !p.used[id] {
			p.damage(int64(id)*p.size, "page %d is neither in use nor free", id)
		}
	}
}

// metas returns the newest meta page. Both must be whole: a sector is written as a whole or not at all, and a meta is less.
func (p *pages) metas() (best metaPage, ok bool) {
	first, ok0 := readMeta(p.data)
	sizes := []int64{int64(first.pageSize)}
	if !ok0 {
		sizes = []int64{4096, 512, 1024, 2048, 8192, 16384, 32768, 65536}
	}
	for _, size := range sizes {
		second, ok1 := metaPage{}, false
		if size < int64(len(p.data)) {
			second, ok1 = readMeta(p.data[size:])
			ok1 = ok1 && int64(second.pageSize) == size
		}
		switch {
		case ok0 && ok1 && second.txid > first.txid, ok1 && !ok0:
			best, ok = second, true
		case ok0:
			best, ok = first, true
		default:
			continue
		}
		if p.size = size; !ok0 {
			p.damage(0, "meta page 0 is broken")
		}
		if !ok1 {
			p.damage(size, "meta page 1 is broken")
		}
		return best, true
	}
	p.damage(0, "neither meta page is whole")
	return best, false
}

// page returns a page that is not in use elsewhere.
func (p *pages) page(id uint64) []byte {
	at := int64(id) * p.size
	if id < 2 || id >= p.high || p.used[id] {
		p.damage(0, "page %d is referred to, which is taken or beyond the end", id)
		return nil
	}
	b := p.data[at:]
	n := uint64(le.Uint32(b[12:])) + 1
	if le.Uint64(b) != id || n > p.high-id {
		p.damage(at, "page %d has a broken header", id)
		return nil
	}
	for i := range n {
		if p.used[id+i] {
			p.damage(at, "page %d is in use twice", id+i)
			return nil
		}
		p.used[id+i] = true
	}
	return b[:int64(n)*p.size]
}

func (p *pages) freelist(id uint64) {
	b := p.page(id)
	if b == nil {
		return
	}
	at := int64(id) * p.size
	n, ids := uint64(le.Uint16(b[10:])), b[pageHeader:]
	if n == 0xffff && len(ids) >= 8 {
		n, ids = le.Uint64(ids), ids[8:]
	}
	if le.Uint16(b[8:]) != flagFree || n > uint64(len(ids)/8) {
		p.damage(at, "page %d is no list of free pages", id)
		return
	}
	for i := range n {
		free := le.Uint64(ids[8*i:])
		if free < 2 || free >= p.high || p.used[free] {
			p.damage(at, "page %d is called free, which is taken or beyond the end", free)
			continue
		}
		p.used[free] = true
	}
}

// tree walks the pages of a bucket; nil is the root, whose records are buckets.
func (p *pages) tree(id uint64, bucket []byte, depth int) {
	b := p.page(id)
	if b == nil {
		return
	}
	at := int64(id) * p.size
	if depth > deepest {
		p.damage(at, "page %d lies too deep", id)
		return
	}
	p.node(b, at, bucket, depth)
}

// node walks the elements of one branch or leaf, which may be inside another page.
func (p *pages) node(b []byte, at int64, bucket []byte, depth int) {
	flags, n := le.Uint16(b[8:]), int(le.Uint16(b[10:]))
	if flags != flagLeaf && flags != flagBranch || pageHeader+n*elemSize > len(b) {
		p.damage(at, "neither branch nor leaf")
		return
	}
	var last []byte
	for i := range n {
		head := pageHeader + i*elemSize
		e := b[head:]
		pos, keyLen, valLen := le.Uint32(e), le.Uint32(e[4:]), uint32(0)
		if flags == flagLeaf {
			pos, keyLen, valLen = le.Uint32(e[4:]), le.Uint32(e[8:]), le.Uint32(e[12:])
		}
		from := uint64(head) + uint64(pos)
		if from < uint64(pageHeader+n*elemSize) || from+uint64(keyLen)+uint64(valLen) > uint64(len(b)) {
			p.damage(at+int64(head), "element %d lies outside of its page", i)
			continue
		}
		key, value := b[from:][:keyLen], b[from+uint64(keyLen):][:valLen]
		if i > 0 && bytes.Compare(last, key) >= 0 {
			p.damage(at+int64(head), "element %d is out of order", i)
		}
		last = key
		switch {
		case flags == flagBranch:
			p.tree(le.Uint64(e[8:]), bucket, depth+1)
		case (le.Uint32(e) == leafIsBucket) != (bucket == nil) || le.Uint32(e) > leafIsBucket:
			p.damage(at+int64(head), "element %d is of an unknown kind", i)
		case bucket == nil:
			p.bucket(key, value, at+int64(from), depth)
		default:
			p.record(meta.Bucket(bucket), key, value, at+int64(from))
		}
	}
}

// bucket walks a bucket: it has pages of its own, or lies inside the value when it is small.
func (p *pages) bucket(name, value []byte, at int64, depth int) {
	switch {
	case len(value) < 16 || len(name) == 0:
		p.damage(at, "bucket %q is cut short", name)
	case le.Uint64(value) != 0:
		p.tree(le.Uint64(value), name, depth+1)
	case len(value) < 16+pageHeader:
		p.damage(at, "bucket %q is cut short", name)
	default:
		p.node(value[16:], at, name, depth+1)
	}
}
