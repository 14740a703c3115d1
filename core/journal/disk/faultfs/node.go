package faultfs

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// sector is what a disk writes as a whole, mostly.
const sector = 512

// node is a file or a directory. Nothing of a file is on the disk but its synced bytes; of a directory, its synced names.
type node struct {
	dir     bool
	now     map[string]*node // what readers see
	disk    map[string]*node
	changes []change // of names, since the last sync, in order

	data   []byte // what readers see
	synced []byte
	dirty  []write // since the last sync, in order
}

// change sets names, all or none of them; nil takes one away.
type change map[string]*node

// write is one write to a file, which is this long afterwards.
type write struct {
	off  int64
	data []byte
	size int64
}

func newDir() *node { return &node{dir: true, now: map[string]*node{}, disk: map[string]*node{}} }

func split(name string) []string {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

func (n *node) apply(c change) {
	c.on(n.now)
	n.changes = append(n.changes, c)
}

func (c change) on(names map[string]*node) {
	for name, n := range c {
		if n == nil {
			delete(names, name)
		} else {
			names[name] = n
		}
	}
}

func (n *node) write(b []byte, off, size int64) {
	w := write{off, slices.Clone(b), max(size, off+int64(len(b)), int64(len(n.data)))}
	n.data = w.on(n.data)
	n.dirty = append(n.dirty, w)
}

func (w write) on(data []byte) []byte {
	if grow := int(w.size) - len(data); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	copy(data[w.off:], w.data)
	return data
}

// sync writes what is dirty to the disk; what a failed sync before dropped is not among it.
func (n *node) sync() {
	for _, w := range n.dirty {
		n.synced = w.on(n.synced)
	}
	n.dirty = nil
}

// luck is how much of what was not synced is there after all.
type luck struct {
	r    *rand.Rand
	odds int // of four
}

func (l luck) kept() bool { return l.r.IntN(4) < l.odds }

// lose lets part of what is dirty reach the disk, in any order of sectors, and forgets the rest.
func (n *node) lose(l luck) {
	for _, w := range n.dirty {
		for len(w.data) > 0 {
			piece := w
			size := min(int64(len(w.data)), sector-w.off%sector)
			piece.data = w.data[:size]
			w.off, w.data = w.off+size, w.data[size:]
			if !l.kept() {
				continue
			}
			if l.r.IntN(16) == 0 { // torn inside the sector
				piece.data = piece.data[:l.r.IntN(len(piece.data))]
			}
			n.synced = piece.on(n.synced)
		}
		if w.size > int64(len(n.synced)) && l.kept() {
			n.synced = append(n.synced, make([]byte, w.size-int64(len(n.synced)))...)
		}
	}
	n.dirty = nil
}

// settle is what a power loss leaves of a tree.
func (n *node) settle(draw func() luck) {
	if !n.dir {
		n.lose(draw())
		n.data = slices.Clone(n.synced)
		return
	}
	l := draw()
	for _, c := range n.changes {
		if l.kept() {
			c.on(n.disk)
		}
	}
	n.now, n.changes = maps.Clone(n.disk), nil
	done := map[*node]bool{}
	for _, name := range slices.Sorted(maps.Keys(n.disk)) { // a file may be left under two names
		if c := n.disk[name]; !done[c] {
			done[c] = true
			c.settle(draw)
		}
	}
}

func (n *node) clone() *node {
	if !n.dir {
		return &node{data: slices.Clone(n.data), synced: slices.Clone(n.data)}
	}
	c := newDir()
	for name, child := range n.now {
		c.now[name] = child.clone()
	}
	c.disk = maps.Clone(c.now)
	return c
}

func (n *node) walk(at string, each func(string, []byte)) {
	if !n.dir {
		each(at, n.data)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.now)) {
		n.now[name].walk(path.Join(at, name), each)
	}
}
