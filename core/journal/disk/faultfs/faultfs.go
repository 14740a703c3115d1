package faultfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"sync"

	"isthmus/core/journal/disk"
)

// ErrPower is what every operation says after the power has failed. A hook that returns it ends the power.
var ErrPower = errors.New("power failed")

// Op is an operation that changes something.
type Op struct {
	N    int    // counted since the Disk was made
	Kind string // create, write, allocate, sync, rename, remove, mkdir, syncdir, or as a caller of Step says
	Path string
}

// Disk implements disk.FS. The mutex guards all of it.
type Disk struct {
	mu   sync.Mutex
	rand *rand.Rand
	root *node
	ops  int
	life int // handles of an earlier one are dead
	down bool
	hook func(Op) error
}

var _ disk.FS = (*Disk)(nil)

// New returns an empty disk.
func New(seed uint64) *Disk {
	return &Disk{rand: rand.New(rand.NewPCG(seed, 1)), root: newDir()}
}

// Before has f asked before each operation that changes something; nil ends it. f must not use the Disk.
func (d *Disk) Before(f func(Op) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hook = f
}

// Ops is the number of operations so far.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// PowerOff ends the power between two operations.
func (d *Disk) PowerOff() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = true
}

// Step counts an operation of somebody else who shares the power, such as a metadata store. When the power fails in it,
// landed tells whether it was done all the same.
func (d *Disk) Step(kind string) (landed bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.down
	if err = d.ask(kind, ""); errors.Is(err, ErrPower) && !was {
		landed = d.rand.IntN(2) == 0
	}
	return landed, err
}

// Restart brings the power back: what was not synced is there or not, by chance.
func (d *Disk) Restart() { d.restart(func() luck { return luck{d.rand, d.rand.IntN(5)} }) }

// RestartEmpty brings the power back, and nothing that was not synced.
func (d *Disk) RestartEmpty() { d.restart(func() luck { return luck{d.rand, 0} }) }

func (d *Disk) restart(draw func() luck) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down, d.hook = false, nil
	d.life++
	d.root.settle(draw)
}

// ask is called with the mutex held.
func (d *Disk) ask(kind, name string) error {
	if d.down {
		return ErrPower
	}
	d.ops++
	if d.hook == nil {
		return nil
	}
	err := d.hook(Op{d.ops, kind, name})
	if errors.Is(err, ErrPower) {
		d.down = true
	}
	return err
}

// find returns the node of a path as readers see it.
func (d *Disk) find(name string) (*node, error) {
	n := d.root
	for _, part := range split(name) {
		if n = n.now[part]; n == nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
	}
	return n, nil
}

// parent returns the directory of a path, and the last name in it.
func (d *Disk) parent(name string) (*node, string, error) {
	dir, err := d.find(path.Dir(path.Clean("/" + name)))
	if err == nil && !dir.dir {
		err = fmt.Errorf("%s: not a directory", name)
	}
	return dir, path.Base(name), err
}

// change is an operation on one directory. When the power fails in it, it is under way.
func (d *Disk) change(kind, name string, make func(dir *node, base string) (change, error)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, base, err := d.parent(name)
	if err != nil {
		return err
	}
	c, err := make(dir, base)
	if err != nil {
		return err
	}
	err = d.ask(kind, name)
	if err == nil || errors.Is(err, ErrPower) {
		dir.apply(c)
	}
	return err
}

// MkdirAll implements disk.FS.
func (d *Disk) MkdirAll(name string) error {
	at := "/"
	for _, part := range split(name) {
		at = path.Join(at, part)
		err := d.change("mkdir", at, func(dir *node, base string) (change, error) {
			if dir.now[base] != nil {
				return nil, fs.ErrExist
			}
			return change{base: newDir()}, nil
		})
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// ReadDir implements disk.FS.
func (d *Disk) ReadDir(name string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(n.now)), nil
}

// Create implements disk.FS.
func (d *Disk) Create(name string) (disk.File, error) {
	n := &node{}
	err := d.change("create", name, func(_ *node, base string) (change, error) { return change{base: n}, nil })
	if err != nil {
		return nil, err
	}
	return d.handle(name, n), nil
}

// Open implements disk.FS.
func (d *Disk) Open(name string, _ bool) (disk.File, error) {
	d.mu.Lock()
	n, err := d.find(name)
	down := d.down
	d.mu.Unlock()
	if down {
		return nil, ErrPower
	}
	if err != nil {
		return nil, err
	}
	return d.handle(name, n), nil
}

func (d *Disk) handle(name string, n *node) *file {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &file{d: d, life: d.life, name: name, n: n}
}

// Rename implements disk.FS; both names are in one directory.
func (d *Disk) Rename(from, to string) error {
	return d.change("rename", from, func(dir *node, base string) (change, error) {
		n := dir.now[base]
		if n == nil || path.Dir(from) != path.Dir(to) {
			return nil, &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
		}
		return change{base: nil, path.Base(to): n}, nil
	})
}

// Remove implements disk.FS.
func (d *Disk) Remove(name string) error {
	return d.change("remove", name, func(dir *node, base string) (change, error) {
		if dir.now[base] == nil {
			return nil, &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
		}
		return change{base: nil}, nil
	})
}

// SyncDir implements disk.FS.
func (d *Disk) SyncDir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(name)
	if err != nil {
		return err
	}
	if err := d.ask("syncdir", name); err != nil {
		return err
	}
	n.disk, n.changes = maps.Clone(n.now), nil
	return nil
}

// Clone returns a disk with the same content, all of it synced.
func (d *Disk) Clone(seed uint64) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := New(seed)
	c.root = d.root.clone()
	return c
}

// Files calls each for every file, in order of their paths.
func (d *Disk) Files(each func(name string, data []byte)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.root.walk("/", each)
}

// Flip changes bits of one byte, on the disk and for readers.
func (d *Disk) Flip(name string, at int64, mask byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(name)
	if err != nil {
		return err
	}
	n.sync()
	n.data[at] ^= mask
	n.synced = slices.Clone(n.data)
	return nil
}
