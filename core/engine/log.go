package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// maxBlock is how large a block grows before appenders wait for the committer; one larger entry gets a block of its own.
// A log therefore holds at most two of these, or two entries, that are not durable yet.
const maxBlock = 1 << 20

// Bounds of counts, which strangers tell us: of an entry, and of a block, whose layout has 31 bits for them.
const (
	maxCount      = 1 << 20
	maxBlockCount = 1 << 30
)

// log is one running journal. buf is shared by appenders and the committer under its leaf mutex; tail is written by the
// committer and read by everybody; the rest belongs to the committer goroutine.
type log struct {
	eng      *Engine
	name     string
	epoch    uint64
	volatile bool // of non-persistent topics: metadata does not know it
	journal  journal.Journal
	kick     chan struct{}   // capacity 1: the active buffer deserves a look
	life     context.Context // of its goroutines; it ends early when the log is removed
	finish   func()
	running  sync.WaitGroup
	last     int64 // commit time of the last block, unix ms
	extents  []journal.Extent
	saved    meta.JournalRecord // as recovery found it
	thinning thinning           // the warden's
	views    views
	reserve  reserve
	scanner  scanner
	parking  atomic.Pointer[parking]

	buf struct {
		sync.Mutex
		space    sync.Cond // a block was taken away or has landed, or the log failed
		active   *buffer
		spare    *buffer
		flying   uint64 // number of the block that is on its way to the disk, 0 = none
		landed   uint64 // number of the newest block that is durable
		settling int    // wait in space for landed to grow
		pace     pace
		failed   error
	}
	tail struct {
		sync.RWMutex
		parts     map[uint32]*Partition
		blocks    []tailBlock // oldest first, dense Seqs
		seq       journal.Seq // of the newest durable block
		time      int64       // its commit time
		marks     []mark
		sinceMark int64 // bytes since the newest mark
		unsaved   int   // marks at the end of marks that metadata does not have
		savedSeq  journal.Seq
	}
}

// buffer collects what the next block will hold.
type buffer struct {
	number  uint64         // of the block, counted since start
	extents []extentBuffer // the first n are in use; the others keep their memory
	n       int
	pending // what the committer's rule looks at
	count   int64
	first   time.Time // when it stopped being empty
	touched []*appender
	counted []counted // sources that have something new in it
	again   int       // producers of the last block that have something in this one
	held    bool      // the committer waits for more
	found   bool      // somebody wrote again meanwhile
	urgent  bool      // commit without waiting

	notBefore int64 // commit time, unix ms: what was parked is not released early
}

type extentBuffer struct {
	p     *Partition
	first core.Offset
	count int64
	data  []byte
}

func newLog(e *Engine, name string, epoch uint64, j journal.Journal) *log {
	l := &log{eng: e, name: name, epoch: epoch, journal: j, kick: make(chan struct{}, 1)}
	l.life, l.finish = context.WithCancel(context.Background())
	l.buf.space.L = &l.buf
	l.buf.pace.window = e.cfg.Window
	// Numbers start so high that "two blocks ago" never means a producer that has not written yet.
	l.buf.active, l.buf.spare = &buffer{number: 3}, &buffer{number: 2}
	l.tail.parts = map[uint32]*Partition{}
	l.views.init(l)
	l.reserve.limits, l.reserve.floors = map[uint32]core.Offset{}, map[uint32]core.Offset{}
	if s, ok := j.(journal.Syncer); ok {
		l.reserve.deferred = s.Deferred()
	}
	return l
}

// start is tasks.start for a goroutine of the log.
func (l *log) start(f func(context.Context)) bool {
	l.running.Add(1)
	started := l.eng.tasks.start(func(ctx context.Context) {
		defer l.running.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.life, cancel)()
		f(ctx)
	})
	if !started {
		l.running.Done()
	}
	return started
}

func (l *log) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// add encodes an entry into the active buffer and returns its base offset. The caller holds l.buf.
func (b *buffer) add(p *Partition, e *core.Entry) core.Offset {
	if p.extent < 0 {
		p.extent = b.n
		if b.n == len(b.extents) {
			b.extents = append(b.extents, extentBuffer{})
		}
		b.n++
		x := &b.extents[p.extent]
		x.p, x.first, x.count, x.data = p, p.next, 0, x.data[:0]
	}
	x := &b.extents[p.extent]
	base, before := p.next, len(x.data)
	x.data = core.AppendEntry(x.data, e)
	x.count += int64(e.Count)
	p.next += int64(e.Count)
	b.bytes += len(x.data) - before
	b.count += int64(e.Count)
	return base
}

// full tells whether an entry of this size has to wait for the next block.
func (b *buffer) full(size int) bool {
	return b.bytes > 0 && b.bytes+size > maxBlock || b.count > maxBlockCount-maxCount
}

// maxKept bounds the memory that a buffer keeps for its next block.
const maxKept = 2 * maxBlock

func (b *buffer) reset() {
	kept := 0
	for i := range b.extents {
		x := &b.extents[i]
		x.p = nil
		if kept += cap(x.data); kept > maxKept {
			kept -= cap(x.data)
			x.data = nil
		}
	}
	clear(b.counted)
	if cap(b.counted) > maxReceipts {
		b.counted = nil
	}
	*b = buffer{number: b.number, extents: b.extents, touched: b.touched[:0], counted: b.counted[:0]}
}
